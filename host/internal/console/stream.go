package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// event is one of an event stream of the API. One without name and data only
// says that the stream lives.
type event struct{ ID, Name, Data string }

// stream asks the API for an event stream and hands each event to each, until
// the request ends or each fails. The header may hold Last-Event-ID. An error is
// a *Problem if the API refused, which is before the first event.
func (c *console) stream(r *http.Request, path string, header http.Header, each func(event) error) error {
	req, err := request(r, http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	if last := header.Get("Last-Event-ID"); last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	req.Header.Set("Accept", "text/event-stream")
	s := &streamReader{header: http.Header{}, status: http.StatusOK, each: each}
	if err := c.ask(s, req); err != nil {
		return err
	}
	if s.status >= 400 {
		return refusal(req, s.status, s.header, s.rest)
	}
	return s.err
}

// maxEvent bounds one event of the API, whose messages are bounded far below.
const maxEvent = 8 << 20

var errEvent = errors.New("event of the API too large")

// streamReader takes what the API's handler writes, and cuts it into events.
type streamReader struct {
	header http.Header
	status int
	rest   []byte // what is not yet a whole event
	each   func(event) error
	err    error // of each; then nothing is taken any more
}

func (s *streamReader) Header() http.Header              { return s.header }
func (s *streamReader) WriteHeader(status int)           { s.status = status }
func (s *streamReader) FlushError() error                { return s.err }
func (s *streamReader) SetWriteDeadline(time.Time) error { return nil } // who writes on sets one

func (s *streamReader) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.rest = append(s.rest, b...); len(s.rest) > maxEvent {
		s.err, s.rest = errEvent, nil
		return 0, s.err
	}
	for s.status < 400 {
		block, rest, whole := bytes.Cut(s.rest, []byte("\n\n"))
		if !whole {
			break
		}
		if s.err = s.each(parseEvent(string(block))); s.err != nil {
			return 0, s.err
		}
		s.rest = rest
	}
	s.rest = append([]byte(nil), s.rest...) // or each event would keep those before it
	return len(b), nil
}

func parseEvent(block string) event {
	var e event
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			if e.Data != "" {
				e.Data += "\n"
			}
			e.Data += value
		}
	}
	return e
}

// sender writes events to a browser.
type sender struct {
	w       http.ResponseWriter
	c       *http.ResponseController
	started bool
}

func newSender(w http.ResponseWriter) *sender {
	return &sender{w: w, c: http.NewResponseController(w)}
}

// send writes an event at once. A browser that takes nothing for 10 s is given
// up. Data may have many lines.
func (s *sender) send(e event) error {
	if !s.started {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.started = true
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	var b strings.Builder
	if e.ID != "" {
		b.WriteString("id: " + e.ID + "\n")
	}
	if e.Name != "" {
		b.WriteString("event: " + e.Name + "\n")
	}
	if e.Name == "" && e.Data == "" {
		b.WriteString(": alive\n")
	} else {
		for line := range strings.SplitSeq(strings.ReplaceAll(e.Data, "\r", ""), "\n") {
			b.WriteString("data: " + line + "\n")
		}
	}
	b.WriteString("\n")
	if _, err := s.w.Write([]byte(b.String())); err != nil {
		return err
	}
	return s.c.Flush()
}

// liveEvents are those that pages ask for anew upon: rare ones. What happens to
// messages is not among them, since there may be thousands a second: of those a page
// that wants them hears once in messagesPace.
var liveEvents = map[string]bool{
	"adapter.attached": true, "adapter.detached": true, "adapter.platform": true, "plugin.state": true, "agent.attached": true, "agent.detached": true,
}

const (
	eventMessages = "messages"
	messagesPace  = 500 * time.Millisecond
)

// live says by name that something changed, and no more: pages then ask for
// their part again, with the rights that they have.
func (c *console) live(w http.ResponseWriter, r *http.Request) error {
	out := &locked{out: newSender(w)}
	wanted := r.URL.Query().Get("message")
	// What happens first in a pause is said at its end, with all that followed.
	soon := &later{pace: messagesPace, do: func() { _ = out.send(event{Name: eventMessages, Data: "changed"}) }} // if it can't, the next that is sent can't either
	defer soon.stop()
	err := c.stream(r, "/events", nil, func(e event) error {
		switch {
		case liveEvents[e.Name]:
			return out.send(event{Name: e.Name, Data: "changed"})
		case e.Name == "":
			return out.send(event{})
		case wanted != "" && (e.Name == "gap" || messageEvents[e.Name] && (wanted == "*" || idOf(e) == wanted)):
			soon.begin()
		}
		return nil
	})
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return nil // the browser has gone, or the host stops
}

// messageEvents are those of messages that change what a list or a story says.
var messageEvents = map[string]bool{"message.created": true, "message.state": true}

// idOf is the message that an event is about.
func idOf(e event) string {
	var h change
	if json.Unmarshal([]byte(e.Data), &h) != nil {
		return ""
	}
	if h.Message != nil {
		return h.Message.ID
	}
	return h.ID
}

// locked is a sender for more than one goroutine.
type locked struct {
	mu  sync.Mutex // guards out
	out *sender
}

func (l *locked) send(e event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.send(e)
}

// later does something once, a while after it was first wanted. begin and stop are
// for one goroutine; after stop nothing is done any more.
type later struct {
	pace    time.Duration
	do      func()
	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	pending bool
	running sync.WaitGroup
}

func (l *later) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending {
		return
	}
	l.pending = true
	l.running.Add(1)
	l.timer = time.AfterFunc(l.pace, func() {
		defer l.running.Done()
		l.mu.Lock()
		l.pending = false
		l.mu.Unlock()
		l.do()
	})
}

// stop waits for what is being done.
func (l *later) stop() {
	l.mu.Lock()
	if l.pending && l.timer.Stop() {
		l.running.Done()
	}
	l.mu.Unlock()
	l.running.Wait()
}
