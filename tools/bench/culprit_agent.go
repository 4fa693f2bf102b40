package bench

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// slowAgent is the kind of a webhook on which turns hang; it is for culprits alone.
const (
	slowAgent = "slow"
	slowTurns = 200             // that hang at once
	slowTime  = 3 * time.Second // each
)

// floodName is the host's name of the agent that floods.
const floodName = "bench-flood"

// culpritGrace is how long a culprit's last frames may take.
const culpritGrace = 5 * time.Second

// slow is an agent that answers late.
type slow struct {
	open atomic.Int32
	most atomic.Int32 // that were open at once, since somebody asked
}

// answer answers a turn that was posted, after a while; and GET with how many it had
// at once.
func (s *slow) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(w, s.most.Swap(0))
		return
	}
	n := s.open.Add(1)
	defer s.open.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	select {
	case <-r.Context().Done():
	case <-time.After(slowTime):
		answerHook(w, r)
	}
}

// hang keeps as many turns of the slow agent open as that may have.
func hang(ctx context.Context, w culpritWork, did *Deeds) error {
	return insist(ctx, w, shape(1, slowTurns, slowTurns, false), did)
}

// floodAgent is an agent with as many turns as it may have, each of which it answers by
// drafts without end; and the adapter that asks, and shows streams.
func floodAgent(ctx context.Context, w culpritWork, did *Deeds) error {
	ws, conn, err := dialAgent(ctx, w)
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	asker, from, err := connectAs(ctx, w.Bridge, w.Token, wire.Register{Protocol: wire.V11.String(), Capabilities: []string{"text", "stream"}})
	if err != nil {
		return err
	}
	shown := make(chan int, 1)
	go func() { shown <- countStreams(asker) }() // awaited below
	defer func() {
		_ = from.Close()
		did.Back += <-shown
	}()
	for i := range agentwire.Window {
		in := message(100)
		in.SessionKey = fmt.Sprintf("s%d", i)
		if _, err := from.Conn.Write(clientFrame(in.Append(nil))); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(culpritGrace)) })()
	turns, err := takeTurns(ws, agentwire.Window)
	if err != nil {
		return err
	}
	did.Held = len(turns)
	return streamDrafts(ctx, ws, conn, turns, did)
}

// dialAgent opens an agent's connection.
func dialAgent(ctx context.Context, w culpritWork) (*websocket.Conn, *corked, error) {
	ws, conn, err := dial(ctx, "ws"+strings.TrimPrefix(w.URL, "http")+agentwire.Path, "")
	if err != nil {
		return nil, nil, err
	}
	hello := agentwire.FromAgent{Type: agentwire.TypeHello, Key: w.Key}
	if err = ws.WriteMessage(websocket.TextMessage, hello.Append(nil)); err == nil {
		_ = ws.SetReadDeadline(time.Now().Add(dialTimeout))
		var frame []byte
		if _, frame, err = ws.ReadMessage(); err == nil && !strings.Contains(string(frame), `"ok":true`) {
			err = fmt.Errorf("hello: %w: answered %.200s", errNotRegistered, frame)
		}
	}
	if err != nil {
		_ = ws.Close()
		return nil, nil, err
	}
	return ws, conn, ws.SetReadDeadline(time.Time{})
}

// takeTurns waits for n turns, and returns their ids.
func takeTurns(ws *websocket.Conn, n int) (turns []string, err error) {
	for len(turns) < n {
		_, frame, err := ws.ReadMessage()
		if err != nil {
			return nil, fmt.Errorf("after %d of %d turns: %w", len(turns), n, err)
		}
		f, err := agentwire.DecodeFromHost(frame)
		if err != nil {
			return nil, err
		}
		if f.Turn != nil {
			turns = append(turns, f.Turn.TurnID)
		}
	}
	return turns, nil
}

// streamDrafts streams answers that grow to all turns, as fast as the host reads, until
// ctx ends; then it ends the turns and waits until the host has read that.
func streamDrafts(ctx context.Context, ws *websocket.Conn, conn *corked, turns []string, did *Deeds) error {
	ended := make(chan struct{})
	defer func() { _ = ws.Close(); <-ended }()
	go func() { // awaited by the line above
		defer close(ended)
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				return
			}
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		var batch []byte
		for _, id := range turns {
			text := strings.Repeat("so far ", 1+n%64)
			draft := agentwire.FromAgent{Type: agentwire.TypeStream, TurnID: id, Text: &text}
			batch = append(batch, clientFrame(draft.Append(nil))...)
		}
		if _, err := conn.Conn.Write(batch); err != nil {
			return err
		}
		did.Acts += len(turns)
	}
	for _, id := range turns {
		end := agentwire.FromAgent{Type: agentwire.TypeTurnEnd, TurnID: id}
		if _, err := conn.Conn.Write(clientFrame(end.Append(nil))); err != nil {
			return err
		}
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if _, err := conn.Conn.Write(append([]byte{0x88, 0x80 | byte(len(bye)), 0, 0, 0, 0}, bye...)); err != nil { //nolint:gosec // G115: two bytes
		return err
	}
	<-ended
	return nil
}

// countStreams counts the intermediate states of answers that an adapter gets, until
// its connection ends.
func countStreams(ws *websocket.Conn) (n int) {
	for {
		_, frame, err := ws.ReadMessage()
		if err != nil {
			return n
		}
		if wire.Type(value(frame, keyType)) == wire.TypeStream {
			n++
		}
	}
}
