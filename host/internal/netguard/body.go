package netguard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// discardTime bounds how long the rest of a body that nobody wants is read.
const discardTime = 5 * time.Second

// body is a request's body. It ends with an error when the client sends too
// slowly.
type body struct {
	io.ReadCloser
	c    *http.ResponseController
	pace pace
	err  error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	left := b.pace.next(0)
	if left <= 0 {
		b.err = errors.Join(errSlow, os.ErrDeadlineExceeded)
		return 0, b.err
	}
	began := time.Now()
	_ = b.c.SetReadDeadline(began.Add(left)) // where it can't be set nobody waits: there is no connection
	n, err := b.ReadCloser.Read(p)
	b.pace.note(n, time.Since(began))
	if err != nil {
		b.err = err
		if errors.Is(err, io.EOF) { // from now on net/http looks whether the client is still there
			_ = b.c.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// bound bounds the body of a request; false: it is refused, and answered.
func (g *Guard) bound(w http.ResponseWriter, r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	for _, coding := range r.Header["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			w.Header().Set("Accept-Encoding", "identity")
			refuse(w, http.StatusUnsupportedMediaType, "header Content-Encoding: found a compressed body, expected none: send it as it is")
			g.drop(w)
			return false
		}
	}
	most := g.MaxBody(r)
	if r.ContentLength > most {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("body: found %d bytes, expected at most %d", r.ContentLength, most))
		g.drop(w)
		return false
	}
	b := &body{ReadCloser: r.Body, c: http.NewResponseController(w), pace: pace{patience: g.patience}}
	r.Body = http.MaxBytesReader(w, b, most)
	_ = b.c.SetReadDeadline(time.Now().Add(g.patience)) // for what looks at the connection itself
	return true
}

// done is called when a request is answered: what is left of its body is read
// for a moment, so that the client sees the answer.
func (g *Guard) done(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	if own, _ := r.Context().Value(connKey{}).(*conn); own != nil && own.hijacked.Load() {
		return
	}
	g.drop(w)
}

func (g *Guard) drop(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTime))
}
