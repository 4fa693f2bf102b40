package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// What a reader of a stream may cost.
const (
	takeIn = 10 * time.Second // who takes nothing for so long is given up
	endIn  = time.Second      // for the end of a stream, of whose reader the credential has ended
)

// errEnded is the error of what is not written since the stream's reader may not read
// on.
var errEnded = errors.New("the credential has ended")

// sse writes server-sent events to one reader. But for endWith it is for one goroutine.
type sse struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	until time.Time // by when what is held for it must be taken; zero = nothing is
	text  *[]byte   // gathered and not written; nil = nothing is

	mu      sync.Mutex // guards what follows
	writing bool
	over    bool
}

func newSSE(w http.ResponseWriter) *sse { return &sse{w: w, c: http.NewResponseController(w)} }

// endWith has nothing written once ctx is over, and ends what is being written then: a
// reader that takes nothing could else have its stream outlive its key. stop must be
// called.
func (e *sse) endWith(ctx context.Context) (stop func()) {
	unhook := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
		end := time.Now().Add(endIn)
		if e.writing {
			end = time.Unix(1, 0) // now
		}
		_ = e.c.SetWriteDeadline(end)
	})
	return func() { unhook() }
}

// hold says that so many bytes of messages are held until they are written.
func (e *sse) hold(bytes int64) { e.until = time.Now().Add(paging.Patience(bytes)) }

// write sends text at once; a reader that takes nothing for takeIn is given up.
func (e *sse) write(text string) error {
	if err := e.gather(text); err != nil {
		return err
	}
	return e.flush()
}

// maxText is how much is gathered for one write.
const maxText = 16 << 10

// texts are where streams gather: an idle one has none.
var texts = sync.Pool{New: func() any { b := make([]byte, 0, maxText); return &b }}

// gather is write, but that the text may wait for the next flush.
func (e *sse) gather(text string) error {
	if e.text != nil && len(*e.text)+len(text) > maxText {
		if err := e.pour(); err != nil {
			return err
		}
	}
	if len(text) > maxText {
		return e.out(func() error {
			_, err := io.WriteString(e.w, text)
			return err
		})
	}
	if e.text == nil {
		e.text = texts.Get().(*[]byte)
	}
	*e.text = append(*e.text, text...)
	return nil
}

// pour writes what was gathered. It may still wait in net/http.
func (e *sse) pour() error {
	if e.text == nil {
		return nil
	}
	err := e.out(func() error {
		_, err := e.w.Write(*e.text)
		return err
	})
	*e.text = (*e.text)[:0]
	texts.Put(e.text)
	e.text = nil
	return err
}

// flush sends what was gathered.
func (e *sse) flush() error {
	if err := e.pour(); err != nil {
		return err
	}
	return e.out(e.c.Flush)
}

// out calls write, unless the stream is over.
func (e *sse) out(write func() error) error {
	deadline := time.Now().Add(takeIn)
	if !e.until.IsZero() && e.until.Before(deadline) {
		deadline = e.until
	}
	e.mu.Lock()
	if e.over {
		e.mu.Unlock()
		return errEnded
	}
	e.writing = true
	_ = e.c.SetWriteDeadline(deadline)
	e.mu.Unlock()
	err := write()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writing = false
	return err
}
