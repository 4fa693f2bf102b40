package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/internal/outbox"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var (
	errNoTurn   = errors.New("waiting for the host")
	errNoAnswer = errors.New("waiting for the host's acknowledgement")
	errGone     = errors.New("connection is gone")
)

// link is one connection to the host, from dial to its end.
type link struct {
	conn    transport.Conn
	out     *outbox.Outbox
	gone    chan struct{} // closed when the reader has ended
	made    time.Time
	reading atomic.Int64 // since when, after made, the reader waits for the host, in ns; 0 = it waits for the adapter

	dialect            // set before anybody else knows the link
	window  chan token // one for each frame that the host has not answered
	ahead   bool       // the host sends messages of a conversation before the one ahead of them is acknowledged

	mu      sync.Mutex
	waiting map[string][]chan answer // by the id of the frame, oldest first
}

type token struct{}

// answer is the host's word on one frame. One field is set.
type answer struct {
	ack    *wire.MessageAck
	upload *wire.UploadAck
	refuse *wire.Error
}

func newLink(c transport.Conn) *link {
	l := &link{conn: c, out: outbox.New(), gone: make(chan struct{}), made: time.Now(), waiting: map[string][]chan answer{}}
	l.out.Open(c, nil)
	l.waits()
	return l
}

// window of a host that does not say one, and the largest that is used.
const (
	usualWindow = 64
	mostWindow  = 1024
)

// lastMoment is how long an answer is awaited when nobody wants to wait any more,
// but the frame is out: an adapter that stops should know what became of it.
const lastMoment = time.Second

// accept takes what the host has granted. declared is what the adapter asked for.
func (l *link) accept(a *wire.RegisterAck, declared wire.Caps) {
	window := usualWindow
	l.dialect = dialect{wire.V10, declared & wire.CapsV10}
	if wire.Negotiate(a.Protocol) != wire.V10 {
		caps, _ := wire.ParseCapsFor(wire.V11.String(), a.Capabilities)
		l.dialect = dialect{wire.V11, declared & caps}
		if a.Limits.Window > 0 {
			window = min(a.Limits.Window, mostWindow)
		}
		l.ahead = a.Limits.InFlight > 1
	}
	l.window = make(chan token, window)
}

// ask writes a frame and waits for the host's answer to it. Beside errNoTurn and
// what the write says, the error may be errGone or errNoAnswer: the host may have
// the frame.
func (l *link) ask(ctx context.Context, id string, frame []byte) (answer, error) {
	select {
	case l.window <- token{}:
	default:
		select {
		case l.window <- token{}:
		case <-l.gone:
			return answer{}, errGone
		case <-ctx.Done():
			return answer{}, fmt.Errorf("%w: %w", errNoTurn, context.Cause(ctx))
		}
	}
	defer func() { <-l.window }()
	c := make(chan answer, 1)
	l.mu.Lock()
	l.waiting[id] = append(l.waiting[id], c)
	l.mu.Unlock()
	defer l.forget(id, c)
	if err := l.post(ctx, frame); err != nil {
		return answer{}, err
	}
	select {
	case a := <-c:
		return a, nil
	case <-l.gone:
		return answer{}, errGone
	case <-ctx.Done():
	}
	t := time.NewTimer(lastMoment)
	defer t.Stop()
	select {
	case a := <-c:
		return a, nil
	case <-l.gone:
	case <-t.C:
	}
	return answer{}, fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
}

// forget lets nobody wait for the answer any more.
func (l *link) forget(id string, c chan answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := slices.DeleteFunc(l.waiting[id], func(other chan answer) bool { return other == c })
	if l.waiting[id] = queue; len(queue) == 0 {
		delete(l.waiting, id)
	}
}

// settle passes the host's answer to who has waited for it longest; false = nobody does.
func (l *link) settle(id string, a answer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.waiting[id]
	if len(queue) == 0 {
		return false
	}
	queue[0] <- a // has room: it gets one
	if l.waiting[id] = queue[1:]; len(queue) == 1 {
		delete(l.waiting, id)
	}
	return true
}

// write waits for its turn as long as ctx allows (errNoTurn), then writes.
// After any other error the link is of no more use.
func (l *link) write(ctx context.Context, frame []byte) error {
	return l.wrote(ctx, l.out.Write(ctx, frame))
}

// post is write that does not wait for the writing: l is gone if that fails.
func (l *link) post(ctx context.Context, frame []byte) error {
	return l.wrote(ctx, l.out.Post(ctx, frame))
}

func (l *link) wrote(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, outbox.ErrNoRoom):
		return fmt.Errorf("%w: %w", errNoTurn, context.Cause(ctx))
	case err != nil:
		return errGone
	}
	return nil
}

// end is the end of the reader.
func (l *link) end() {
	close(l.gone)
	l.out.Shut(l.conn)
}

func (l *link) waits() { l.reading.Store(max(1, int64(time.Since(l.made)))) }

// read is conn.Read with a note that the host's silence counts from now.
func (l *link) read() ([]byte, error) {
	l.waits()
	defer l.reading.Store(0)
	return l.conn.Read()
}

// watch ends a connection on which nothing was heard for limit. Shortly before
// that it pings, in case the host does not. While the reader waits for the
// adapter nothing can be heard: pings then keep the host from giving up on us.
func (l *link) watch(limit time.Duration) {
	tick := time.NewTicker(limit / 5)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
		}
		since := l.reading.Load()
		if since == 0 {
			_ = l.conn.Ping()
			continue
		}
		quiet := time.Since(l.conn.Heard())
		if waited := time.Since(l.made) - time.Duration(since); waited < quiet {
			quiet = waited
		}
		switch {
		case quiet >= limit:
			_ = l.conn.Close(wire.CloseNormal, "nothing heard")
			return
		case quiet >= limit-limit/4:
			_ = l.conn.Ping()
		}
	}
}

// abandon closes the connection and reads until it is gone, as a Conn's owner must.
func (l *link) abandon(why string) {
	_ = l.conn.Close(wire.CloseNormal, why)
	for {
		if _, err := l.conn.Read(); err != nil {
			return
		}
	}
}

// links holds the registered connection, when there is one, for those who write.
type links struct {
	mu      sync.Mutex
	current *link
	ended   bool
	changed chan struct{} // closed and replaced when current or ended changes
	cursor  string        // that the host has committed
}

func newLinks() *links { return &links{changed: make(chan struct{})} }

// wait returns the registered connection, as soon as there is one.
func (s *links) wait(ctx context.Context) (*link, error) {
	for {
		s.mu.Lock()
		l, ended, changed := s.current, s.ended, s.changed
		s.mu.Unlock()
		switch {
		case ended:
			return nil, ErrStopped
		case l != nil:
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("not connected to the host: %w", context.Cause(ctx))
		}
	}
}

// set makes l the connection to write to, unless the end has come. cursor is
// what the host has committed, as it said.
func (s *links) set(l *link, cursor string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	if cursor != "" {
		s.cursor = cursor
	}
	s.current = l
	s.signal()
	return true
}

// drop takes l away if it is still current and makes its reader end.
func (s *links) drop(l *link) {
	s.mu.Lock()
	if s.current == l {
		s.current = nil
		s.signal()
	}
	s.mu.Unlock()
	_ = l.conn.Close(wire.CloseNormal, "")
}

// present is the registered connection; nil = none at the moment.
func (s *links) present() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// committed notes an event's cursor.
func (s *links) committed(cursor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor = cursor
}

func (s *links) position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor
}

// end closes the connection and lets nobody wait for another.
func (s *links) end() {
	s.mu.Lock()
	l := s.current
	if !s.ended {
		s.ended, s.current = true, nil
		s.signal()
	}
	s.mu.Unlock()
	if l != nil {
		_ = l.conn.Close(wire.CloseNormal, "adapter stopped")
	}
}

func (s *links) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}
