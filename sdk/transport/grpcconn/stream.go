package grpcconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pontoon-bridge/pontoon/sdk/internal/steady"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxMessage bounds a gRPC message: a frame, and room for what is too long to
// be told so.
const maxMessage = 1 << 20

// maxReason is that of a WebSocket's close frame, so that both transports can
// say the same.
const maxReason = 123

var errBroken = errors.New("stream broken off")

// half is one end of the stream as gRPC gives it.
type half interface {
	Send(*pb.Frame) error
	Recv() (*pb.Frame, error)
}

// Stream is a transport.Conn over the stream of a plugin, for both ends. What either end
// sends as its last is a close frame; a stream that ends without one was broken.
type Stream struct {
	half   half
	cancel context.CancelFunc          // ends the stream at once
	ask    func(context.Context) error // asks the far end for a sign of life; nil = it asks us
	asking atomic.Bool
	round  atomic.Int64 // how long the latest answer took, in nanoseconds; 0 = none came yet
	heard  steady.Moment
	closed atomic.Bool // Close was called
	ended  atomic.Bool
	stuck  atomic.Bool // a write took longer than it may
	over   atomic.Bool // gRPC has taken the stream back: nothing may be sent

	writing sync.Mutex
	watch   watch
}

var _ transport.Conn = (*Stream)(nil)

func newStream(h half, cancel context.CancelFunc) *Stream {
	s := &Stream{half: h, cancel: cancel}
	s.watch.hangs = func() {
		s.stuck.Store(true)
		cancel()
	}
	s.touch()
	return s
}

func (s *Stream) touch() { s.heard.Note() }

// Read implements transport.Conn.
func (s *Stream) Read() ([]byte, error) {
	if s.ended.Load() {
		return nil, transport.ErrClosed
	}
	for {
		f, err := s.half.Recv()
		switch {
		case err != nil:
			return nil, s.finish(s.meaning(err))
		case f.CloseCode != 0 && !s.closed.Load():
			return nil, s.finish(&transport.CloseError{Code: wire.CloseCode(f.CloseCode), Reason: clipReason(f.CloseReason)})
		case f.CloseCode != 0:
			return nil, s.finish(transport.ErrClosed) // both closed at once
		case s.closed.Load():
			continue // until the far end has seen our close frame
		}
		s.touch()
		switch {
		case len(f.Json) > wire.MaxFrame:
			_ = s.Close(wire.CloseTooLarge, "frame too large")
			err = fmt.Errorf("frame of %d bytes, at most %d are allowed", len(f.Json), wire.MaxFrame)
		case !utf8.Valid(f.Json):
			_ = s.Close(wire.CloseInvalidUTF8, "frame is not valid UTF-8")
			err = errors.New("frame is not valid UTF-8")
		default:
			return f.Json, nil
		}
		s.drain()
		return nil, s.finish(err)
	}
}

// drain reads until the far end has seen our close frame.
func (s *Stream) drain() {
	for {
		if f, err := s.half.Recv(); err != nil || f.CloseCode != 0 {
			return
		}
	}
}

// meaning is what an error of the stream means here.
func (s *Stream) meaning(err error) error {
	switch {
	case s.stuck.Load():
		return transport.ErrSlow
	case s.closed.Load():
		return transport.ErrClosed
	case errors.Is(err, io.EOF):
		return errors.New("stream ended without a close frame")
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("message too large, at most %d bytes are allowed", maxMessage)
	case status.Code(err) == codes.Canceled:
		return errBroken
	}
	return fmt.Errorf("stream broken: %s", clipReason(status.Convert(err).Message()))
}

func (s *Stream) finish(err error) error {
	s.ended.Store(true)
	s.cancel()
	return err
}

// Write implements transport.Conn.
func (s *Stream) Write(frames ...[]byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	switch {
	case s.closed.Load() || s.ended.Load():
		return transport.ErrClosed
	case s.over.Load():
		return errBroken
	}
	s.watch.begin()
	defer s.watch.end()
	for _, frame := range frames {
		if err := s.half.Send(&pb.Frame{Json: frame}); err != nil {
			switch {
			case s.stuck.Load():
				return transport.ErrSlow
			case s.ended.Load() || s.closed.Load():
				return transport.ErrClosed
			case s.over.Load():
				return errBroken
			}
			return fmt.Errorf("write to the stream: %w", err)
		}
	}
	return nil
}

// Ping implements transport.Conn: the host's end runs a health check in the background,
// one at a time. The adapter's end does nothing, since the host asks anyway.
func (s *Stream) Ping() error {
	if s.ask == nil || s.asking.Swap(true) {
		return nil
	}
	go func() { // ends with its deadline
		defer s.asking.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), transport.WriteTimeout)
		defer cancel()
		began := time.Now()
		if s.ask(ctx) == nil {
			s.round.Store(max(1, int64(time.Since(began))))
			s.touch()
		}
	}()
	return nil
}

// RoundTrip is how long the far end took to answer the latest ping that it
// answered; 0 = not known yet.
func (s *Stream) RoundTrip() time.Duration { return time.Duration(s.round.Load()) }

// Heard implements transport.Conn.
func (s *Stream) Heard() time.Time { return s.heard.Time() }

// Close implements transport.Conn.
func (s *Stream) Close(code wire.CloseCode, why string) error {
	if s.closed.Swap(true) {
		return nil
	}
	linger := time.AfterFunc(transport.LingerTimeout, s.cancel)
	go func() { // a write may hang; then the linger ends both
		s.writing.Lock()
		defer s.writing.Unlock()
		if s.over.Load() || s.half.Send(&pb.Frame{CloseCode: uint32(code), CloseReason: clipReason(why)}) != nil {
			linger.Stop()
			s.cancel()
		}
	}()
	return nil
}

// clipReason makes a reason fit: valid UTF-8 of at most maxReason bytes.
func clipReason(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "")
}
