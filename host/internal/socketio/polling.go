package socketio

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// poll answers a GET with what there is to say, as soon as there is something.
func (c *conn) poll(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	overlap, changed := c.polled, c.ws != nil
	if !overlap && !changed {
		c.polled = true
	}
	c.mu.Unlock()
	switch {
	case changed:
		refuse(w, http.StatusBadRequest, codeRequest, "Bad request: the session is a WebSocket by now")
		return
	case overlap:
		refuse(w, http.StatusBadRequest, codeRequest, "Bad request: another poll is under way")
		c.end("two polls at once")
		return
	}
	body := c.await(r)
	c.mu.Lock()
	c.polled = false
	c.mu.Unlock()
	if body == nil {
		refuse(w, http.StatusBadRequest, codeSession, "Session ID unknown")
		c.end("poll given up by the client")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(transport.WriteTimeout)) // where it can't be set, the server's counts
	_, err := w.Write(body)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		c.end("poll not answered: " + err.Error())
		return
	}
	_ = out.SetWriteDeadline(time.Time{})
	c.endDropped()
}

// await is what a poll is answered with; nil = the session has ended, or the
// client has.
func (c *conn) await(r *http.Request) []byte {
	var released <-chan time.Time
	for {
		if body, probing := c.batch(); body != nil {
			return body
		} else if probing && released == nil {
			t := time.NewTimer(pollReleased)
			defer t.Stop()
			released = t.C
		}
		select {
		case <-c.queue.Ready():
		case <-c.switched:
		case <-released:
			return []byte{eioNoop}
		case <-c.ctx.Done():
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// batch takes as many packets as go into one answer; nil = there are none.
func (c *conn) batch() (body []byte, probing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ws != nil {
		c.queue.Wake() // if it was this poll that was woken
		return []byte{eioNoop}, false
	}
	packets := c.queue.Some(MaxPayload, len(recordSeparator))
	if len(packets) == 0 {
		return nil, c.probing
	}
	return bytes.Join(packets, []byte(recordSeparator)), c.probing
}

// post takes the packets of a POST.
func (c *conn) post(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	busy := c.posted || c.ws != nil
	if !busy {
		c.posted = true
	}
	c.mu.Unlock()
	if busy {
		refuse(w, http.StatusBadRequest, codeRequest, "Bad request: another one is under way")
		c.end("two posts at once")
		return
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.posted = false
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, codeRequest, "Payload too large")
		c.end("payload too large")
		return
	case err != nil || !utf8.Valid(body):
		refuse(w, http.StatusBadRequest, codeRequest, "Bad request: expected packets in UTF-8")
		c.end("bad payload")
		return
	}
	for packet := range bytes.SplitSeq(body, []byte(recordSeparator)) {
		if err := c.take(packet); err != nil {
			refuse(w, http.StatusBadRequest, codeRequest, "Bad request")
			c.end(err.Error())
			return
		}
	}
	w.Header().Set("Content-Type", "text/html") // as clients expect
	_, _ = io.WriteString(w, "ok")
}
