package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The culprits of Fair.
const (
	culpritNobody     = "nobody"               // nobody misbehaves: what is found of it is the measurement's own doing
	culpritFlood      = "flood"                // an adapter that sends more than its limit, as fast as it can
	culpritFloodAcks  = "flood-acks"           // the same of protocol 1.1: all has an id, and what comes is acknowledged
	culpritDeaf       = "deaf"                 // an adapter that asks for long answers and reads none
	culpritHistory    = "history"              // a reader of a long history, page after page
	culpritEvents     = "events"               // followers of the event stream that read nothing of it
	culpritRepeat     = "repeat"               // an adapter that sends one message again and again, with its message_id
	culpritSlow       = "slow-agent"           // an agent on which turns hang for seconds
	culpritSlowBeside = "slow-agent-websocket" // the same, while the others have an agent that dials in
	culpritFloodAgent = "flood-agent"          // an agent that streams drafts without end
	culpritDrain      = "drain"                // an adapter that comes back to a long queue, and takes all of it
	culpritExport     = "export"               // a reader that exports the audit log again and again
)

// CulpritNames are all of them.
var CulpritNames = []string{
	culpritNobody, culpritFlood, culpritFloodAcks, culpritDeaf, culpritHistory, culpritEvents, culpritRepeat,
	culpritSlow, culpritSlowBeside, culpritFloodAgent, culpritDrain, culpritExport,
}

// culprit is how one misbehaves, and what it needs for that.
type culprit struct {
	act    func(ctx context.Context, w culpritWork, did *Deeds) error
	once   bool   // it is measured from its beginning, and ends by itself
	others string // kind of the agent that answers the others; "" = the built-in echo
}

var culprits = map[string]culprit{
	culpritNobody: {act: behave}, culpritFlood: {act: flood}, culpritFloodAcks: {act: floodAcks}, culpritDeaf: {act: deafen}, culpritHistory: {act: pageHistory},
	culpritEvents: {act: follow}, culpritRepeat: {act: repeat}, culpritSlow: {act: hang}, culpritSlowBeside: {act: hang, others: "websocket"},
	culpritFloodAgent: {act: floodAgent}, culpritDrain: {act: drainQueue, once: true}, culpritExport: {act: export},
}

// Deeds are what a culprit did.
type Deeds struct {
	Acts   int       `json:"acts"`                   // frames sent, pages or files read, streams opened, messages taken
	Back   int       `json:"back"`                   // answers, drafts or lines that came back, where they are looked at
	Held   int       `json:"held,omitempty"`         // turns that its agent had at once, at most
	Closed int       `json:"closed"`                 // how often the host closed its connection
	Own    Count     `json:"own,omitzero"`           // its own messages, where they are followed to their end
	Took   []float64 `json:"took_seconds,omitempty"` // each time, of one that ends by itself: the measurement should not outlast it
}

func (d *Deeds) add(o Deeds) {
	d.Acts, d.Back, d.Closed, d.Held = d.Acts+o.Acts, d.Back+o.Back, d.Closed+o.Closed, max(d.Held, o.Held)
	d.Own.add(o.Own)
	d.Took = append(d.Took, o.Took...)
}

func (d Deeds) String() string {
	s := Number(float64(d.Acts), 0) + " acts, "
	if d.Back > 0 {
		s += Number(float64(d.Back), 0) + " back, "
	}
	if d.Held > 0 {
		s += Number(float64(d.Held), 0) + " at once, "
	}
	if len(d.Took) > 0 {
		took := SpreadOf(slices.Clone(d.Took))
		s += "in " + took.Show(2) + " s, "
	}
	return s + "closed " + Number(float64(d.Closed), 0) + "×"
}

// culpritWork is what a culprit's process is told.
type culpritWork struct {
	Name    string `json:"name"`
	URL     string `json:"url"` // of the host
	Bridge  string `json:"bridge"`
	Token   string `json:"token"`
	Channel string `json:"channel"`
	Data    string `json:"data"`          // directory with the operator's key
	Key     string `json:"key,omitempty"` // of its agent
	Run     int    `json:"run"`           // makes its message ids new
	Queued  int    `json:"queued"`        // messages that wait for it
}

// target is the host, for one connection as an adapter.
func (w culpritWork) target() target { return target{w.Name, w.Bridge, []string{w.Token}, 0} }

// rest is a client of the host's API. close must be called.
func (w culpritWork) rest() (*rest, error) {
	key, err := adminKey(w.Data)
	if err != nil {
		return nil, err
	}
	return newREST(w.URL, key), nil
}

// serveCulprit misbehaves as work says until ctx ends, then writes its Deeds.
func serveCulprit(ctx context.Context, work string, stdout, stderr io.Writer) error {
	var w culpritWork
	if err := json.Unmarshal([]byte(work), &w); err != nil {
		return fmt.Errorf("read work: %w", err)
	}
	if err := yieldProcessor(); err != nil {
		return err
	}
	c, ok := culprits[w.Name]
	if !ok {
		return fmt.Errorf("culprit: found %q, expected one of %s", w.Name, strings.Join(CulpritNames, ", "))
	}
	fmt.Fprintf(stdout, "culprit%snobody\n", listensOn)
	var did Deeds
	for ctx.Err() == nil {
		err := c.act(ctx, w, &did)
		if c.once {
			if err != nil {
				return err
			}
			break
		}
		if err != nil && ctx.Err() == nil {
			did.Closed++
			time.Sleep(10 * time.Millisecond) // as an adapter would wait, but less
		}
	}
	return json.NewEncoder(stderr).Encode(did)
}

// behave does nothing.
func behave(ctx context.Context, _ culpritWork, _ *Deeds) error {
	<-ctx.Done()
	return nil
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
	one := clientFrame(frame.Append(nil))
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
func flood(ctx context.Context, w culpritWork, did *Deeds) error {
	return misuse(ctx, w, message(100), 0, true, did)
}

// deafen asks for long answers and reads none of them.
func deafen(ctx context.Context, w culpritWork, did *Deeds) error {
	return misuse(ctx, w, message(10_000), 20*time.Millisecond, false, did)
}

// repeat sends a message that is stored already, some thousand times a second.
func repeat(ctx context.Context, w culpritWork, did *Deeds) error {
	m := message(100)
	m.MessageID = "the-same"
	return misuse(ctx, w, m, 20*time.Millisecond, true, did)
}

// pageHistory reads a channel's history from its end to its beginning.
func pageHistory(ctx context.Context, w culpritWork, did *Deeds) error {
	api, err := w.rest()
	if err != nil {
		return err
	}
	defer api.close()
	n := 0
	return api.history(ctx, w.Channel, func(entry) {
		if n++; n%500 == 0 {
			did.Acts++
		}
	})
}

// export reads the whole audit log as a file.
func export(ctx context.Context, w culpritWork, did *Deeds) error {
	api, err := w.rest()
	if err != nil {
		return err
	}
	defer api.close()
	resp, err := api.get(ctx, "/audit?format=ndjson")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Close() }()
	for lines := bufio.NewScanner(resp); ; did.Back++ {
		if !lines.Scan() {
			if lines.Err() == nil {
				did.Acts++
			}
			return lines.Err()
		}
	}
}

// follow opens the stream of events and reads nothing of it for a while.
func follow(ctx context.Context, w culpritWork, did *Deeds) error {
	api, err := w.rest()
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{Control: loopbackOnly}).DialContext(ctx, "tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	req, err := api.request(ctx, http.MethodGet, "/events", nil)
	if err != nil {
		return err
	}
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
