package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The culprits of Fair.
const (
	culpritFlood   = "flood"   // an adapter that sends more than its limit, as fast as it can
	culpritDeaf    = "deaf"    // an adapter that asks for long answers and reads none
	culpritHistory = "history" // a reader of a long history, page after page
	culpritEvents  = "events"  // followers of the event stream that read nothing of it
	culpritRepeat  = "repeat"  // an adapter that sends one message again and again, with its message_id
)

// CulpritNames are all of them.
var CulpritNames = []string{culpritFlood, culpritDeaf, culpritHistory, culpritEvents, culpritRepeat}

// Deeds are what a culprit did.
type Deeds struct {
	Acts   int `json:"acts"`   // frames sent, pages read or streams opened
	Closed int `json:"closed"` // how often the host closed its connection
}

func (d *Deeds) add(o Deeds) { d.Acts, d.Closed = d.Acts+o.Acts, d.Closed+o.Closed }

func (d Deeds) String() string {
	return Number(float64(d.Acts), 0) + " acts, closed " + Number(float64(d.Closed), 0) + "×"
}

// culpritWork is what a culprit's process is told.
type culpritWork struct {
	Name    string `json:"name"`
	URL     string `json:"url"` // of the host
	Bridge  string `json:"bridge"`
	Token   string `json:"token"`
	Channel string `json:"channel"`
	Data    string `json:"data"` // directory with the operator's key
}

// serveCulprit misbehaves as work says until ctx ends, then writes its Deeds.
func serveCulprit(ctx context.Context, work string, stdout, stderr io.Writer) error {
	var w culpritWork
	if err := json.Unmarshal([]byte(work), &w); err != nil {
		return fmt.Errorf("read work: %w", err)
	}
	key, err := adminKey(w.Data)
	if err != nil {
		return err
	}
	if err := yieldProcessor(); err != nil {
		return err
	}
	act, ok := map[string]func(context.Context, culpritWork, string, *Deeds) error{
		culpritFlood: flood, culpritDeaf: deafen, culpritHistory: pageHistory, culpritEvents: follow, culpritRepeat: repeat,
	}[w.Name]
	if !ok {
		return fmt.Errorf("culprit: found %q, expected one of %s", w.Name, strings.Join(CulpritNames, ", "))
	}
	fmt.Fprintf(stdout, "culprit%snobody\n", listensOn)
	var did Deeds
	for ctx.Err() == nil {
		if err := act(ctx, w, key, &did); err != nil && ctx.Err() == nil {
			did.Closed++
			time.Sleep(10 * time.Millisecond) // as an adapter would wait, but less
		}
	}
	return json.NewEncoder(stderr).Encode(did)
}

// misuse opens an adapter's connection and writes the frame again and again.
func misuse(ctx context.Context, w culpritWork, frame wire.Inbound, pause time.Duration, read bool, did *Deeds) error {
	protocol := wire.V10
	if frame.MessageID != "" {
		protocol = wire.V11 // 1.0 knows no repeats
	}
	ws, conn, err := connectAs(ctx, w.Bridge, w.Token, wire.Register{Protocol: protocol.String()})
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if read {
		ended := make(chan struct{})
		defer func() { _ = conn.Close(); <-ended }()
		go func() { // awaited by the line above
			defer close(ended)
			_, _ = io.Copy(io.Discard, conn.Conn)
		}()
	}
	payload := frame.Append(nil)
	one := append(clientHeader(len(payload)), payload...)
	var batch []byte
	n := max(1, (32<<10)/len(one))
	for range n {
		batch = append(batch, one...)
	}
	for {
		if _, err := conn.Conn.Write(batch); err != nil {
			return err
		}
		did.Acts += n
		time.Sleep(pause)
	}
}

func message(size int) wire.Inbound {
	return wire.Inbound{Type: wire.TypeMessage, UserID: "u", Text: strings.Repeat("x", size), Routing: wire.Routing{SessionKey: "s"}}
}

// flood sends as fast as the host reads.
func flood(ctx context.Context, w culpritWork, _ string, did *Deeds) error {
	return misuse(ctx, w, message(100), 0, true, did)
}

// deafen asks for long answers and reads none of them.
func deafen(ctx context.Context, w culpritWork, _ string, did *Deeds) error {
	return misuse(ctx, w, message(10_000), 20*time.Millisecond, false, did)
}

// repeat sends a message that is stored already, some thousand times a second.
func repeat(ctx context.Context, w culpritWork, _ string, did *Deeds) error {
	m := message(100)
	m.MessageID = "the-same"
	return misuse(ctx, w, m, 20*time.Millisecond, true, did)
}

func pageHistory(ctx context.Context, w culpritWork, key string, did *Deeds) error {
	api := newREST(w.URL, key)
	defer api.close()
	n := 0
	return api.history(ctx, w.Channel, func(entry) {
		if n++; n%500 == 0 {
			did.Acts++
		}
	})
}

// follow opens the stream of events and reads nothing of it for a while.
func follow(ctx context.Context, w culpritWork, key string, did *Deeds) error {
	conn, err := (&net.Dialer{Control: loopbackOnly}).DialContext(ctx, "tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/api/v1/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if err := req.Write(conn); err != nil {
		return err
	}
	did.Acts++
	select {
	case <-ctx.Done():
	case <-time.After(time.Second): // the host has cut it off by now, or not: another one comes
	}
	return nil
}
