package socketio

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Socket is a client in one namespace.
type Socket struct {
	c         *conn
	namespace string
	id        string
	handler   Handler // guarded by conn.in
	pace      Pace    // nil = packets are counted; guarded by conn.mu

	mu   sync.Mutex // guards gone
	gone bool
}

func newSocket(c *conn, namespace string) *Socket {
	return &Socket{c: c, namespace: namespace, id: rand.Text()}
}

// Query is a field of the query that the client connected with: where older ones
// put what belongs into the handshake. "" = it is not there, or is not looked at.
func (s *Socket) Query(name string) string { return s.c.query.Get(name) }

// Pace keeps a client from taking the host's time from all others.
type Pace interface {
	// Took is told of each packet when it had come, once it was acted on. It may wait. It
	// is called once at a time.
	Took(since time.Time)
}

// PaceBy is for clients that have shown who they are, and may speak for many: until the
// socket has gone p bounds what their connection may send, in place of a number of
// packets. Only Open may call it.
func (s *Socket) PaceBy(p Pace) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.pace, s.c.pace = p, p
}

// Remote is the address that the client came from.
func (s *Socket) Remote() string { return s.c.remote }

func (s *Socket) hello() json.RawMessage { return json.RawMessage(`{"sid":"` + s.id + `"}`) }

// Event makes an event that may be emitted to many sockets of one namespace. data
// must be marshalable.
func Event(name string, data any) (json.RawMessage, error) {
	b, err := json.Marshal([]any{name, data})
	if err != nil {
		return nil, fmt.Errorf("marshal event %s: %w", name, err)
	}
	return b, nil
}

// Emit sends what Event made. It does not block; a client that does not read is
// disconnected.
func (s *Socket) Emit(event json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	p := packet{kind: kindEvent, namespace: s.namespace, data: event}
	s.c.enqueue(p.append(nil))
}

// Close disconnects the socket once what was emitted is written. The handler's
// Closed is called soon after, and not by this call.
func (s *Socket) Close() {
	if !s.bye() {
		return
	}
	// Not in this goroutine, which may be in a call of the handler.
	s.c.s.spawn(func() {
		s.c.in.Lock()
		defer s.c.in.Unlock()
		s.c.leave(s)
	})
}

func (s *Socket) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// bye tells the client, once.
func (s *Socket) bye() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.gone = true
	p := packet{kind: kindDisconnect, namespace: s.namespace}
	s.c.enqueue(p.append(nil))
	return true
}

func (s *Socket) acknowledge(id string, err error) {
	data := json.RawMessage(`[{"ok":true}]`)
	if err != nil {
		b, merr := json.Marshal([]any{map[string]any{"ok": false, "error": err.Error()}})
		if merr != nil {
			return // a string: can't be
		}
		data = b
	}
	p := packet{kind: kindAck, namespace: s.namespace, id: id, data: data}
	s.c.enqueue(p.append(nil))
}

// Drop ends the client's whole connection, which it takes for a broken one: it
// comes back by itself.
func (s *Socket) Drop(why string) { s.c.drop(why) }
