// Package transport carries frames between an adapter and the host: Conn, over
// a WebSocket, for both ends.
package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Conn carries whole frames. Read and Write may run at the same time, each from
// one goroutine; Ping, Heard and Close from any.
type Conn interface {
	// Read returns the next frame, valid UTF-8 of at most wire.MaxFrame bytes,
	// in a buffer that is good until the next Read. An error is final: the
	// connection is closed and its resources are freed. Whoever owns a Conn
	// must read until then. The error is a *CloseError if the peer said why.
	Read() ([]byte, error)
	// Write sends the frames in order, as many in one socket write as are not
	// larger together than wire.MaxFrame, and fails if the peer takes longer than
	// WriteTimeout for one of these writes. After an error it is unknown which
	// frames arrived.
	Write(frames ...[]byte) error
	// Ping asks the peer for a sign of life.
	Ping() error
	// Heard is when the peer last sent anything.
	Heard() time.Time
	// Close tells the peer why, and makes Read end within LingerTimeout.
	Close(code wire.CloseCode, why string) error
}

// Limits of one connection.
const (
	WriteTimeout  = 10 * time.Second
	LingerTimeout = time.Second // close frame sent → connection gone
)

// ErrClosed is what Read returns after the connection was closed from this side.
var ErrClosed = errors.New("connection closed")

// ErrSlow is wrapped by what Write and Read return when the peer took longer than
// WriteTimeout for one write.
var ErrSlow = fmt.Errorf("too slow: did not read what was sent within %s", WriteTimeout)

// CloseError is the peer's close frame.
type CloseError struct {
	Code   wire.CloseCode
	Reason string
}

func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("closed by the peer with code %d", e.Code)
	}
	return fmt.Sprintf("closed by the peer with code %d: %s", e.Code, e.Reason)
}
