package metrics

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// otherRoute is what is counted of a request for which there is no route.
const otherRoute = "other"

// Count counts the requests that next answers, by the pattern that a mux in next
// found for them: the request that next is given must be the one that the mux is.
func (m *Metrics) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		returned := false
		defer func() {
			if !returned && !a.begun { // a panic, which whoever is outside answers
				a.status = http.StatusInternalServerError
			}
			method, route := route(r)
			m.requests.WithLabelValues(method, route, strconv.Itoa(a.status)).Inc()
		}()
		next.ServeHTTP(a, r)
		returned = true
	})
}

// route is a request's pattern, in two.
func route(r *http.Request) (method, route string) {
	method, route, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		route = r.Pattern
		switch method = r.Method; method {
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		default:
			method = "OTHER"
		}
	}
	if route == "" || route == "/" {
		route = otherRoute
	}
	return method, route
}

// answer notes the status of what is written through it. It can do all that
// net/http's own can.
type answer struct {
	http.ResponseWriter
	status int
	begun  bool
}

var (
	_ http.Flusher  = (*answer)(nil)
	_ http.Hijacker = (*answer)(nil)
	_ io.ReaderFrom = (*answer)(nil)
)

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if !a.begun && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.status, a.begun = status, true
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	a.begun = true
	_ = http.NewResponseController(a.ResponseWriter).Flush() // the interface has no place for an error
}

// Hijack implements http.Hijacker: what follows is a WebSocket.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.status, a.begun = http.StatusSwitchingProtocols, true
	}
	return c, rw, err
}

// ReadFrom implements io.ReaderFrom, by which files are sent without copying.
func (a *answer) ReadFrom(from io.Reader) (int64, error) {
	a.begun = true
	return io.Copy(a.ResponseWriter, from)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
