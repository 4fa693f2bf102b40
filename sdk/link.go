package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var (
	errNoTurn = errors.New("waiting for the host")
	errGone   = errors.New("connection is gone")
)

// link is one connection to the host, from dial to its end.
type link struct {
	conn    transport.Conn
	turn    chan struct{} // holds one token while someone writes
	gone    chan struct{} // closed when the reader has ended
	made    time.Time
	reading atomic.Int64 // since when, after made, the reader waits for the host, in ns; 0 = it waits for the adapter
}

func newLink(c transport.Conn) *link {
	l := &link{conn: c, turn: make(chan struct{}, 1), gone: make(chan struct{}), made: time.Now()}
	l.waits()
	return l
}

// write waits for its turn as long as ctx allows (errNoTurn), then writes.
// After any other error the link is of no more use.
func (l *link) write(ctx context.Context, frame []byte) error {
	select {
	case l.turn <- struct{}{}:
	default:
		select {
		case l.turn <- struct{}{}:
		case <-l.gone:
			return errGone
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errNoTurn, context.Cause(ctx))
		}
	}
	defer func() { <-l.turn }()
	return l.conn.Write(frame)
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

// set makes l the connection to write to, unless the end has come.
func (s *links) set(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
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
