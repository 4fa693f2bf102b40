package attach

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const methods = "GET, HEAD, PUT"

// ServeHTTP answers for SignPath: GET and HEAD give the attachment, PUT makes
// one that is reserved. The token in the url is the only credential, so that
// the answers may be shown on pages of any origin. Whatever is wrong with it,
// the answer is one: 403.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private")
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodPut:
	case http.MethodHead:
		method = http.MethodGet
	default:
		h.Set("Allow", methods)
		answer(w, http.StatusMethodNotAllowed, "expected one of "+methods)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), SignPath)
	if !ok {
		answer(w, http.StatusNotFound, "")
		return
	}
	ref, err := s.admit(rest, r.URL.RawQuery, method)
	if err != nil {
		answer(w, http.StatusForbidden, "the url is not signed for this, or has expired")
		return
	}
	if method == http.MethodPut {
		s.servePut(w, r, ref)
		return
	}
	s.serveGet(w, r, ref)
}

func (s *Store) serveGet(w http.ResponseWriter, r *http.Request, ref Ref) {
	f, o, created, err := s.open(ref)
	if err != nil {
		s.fail(w, ref, err)
		return
	}
	defer func() { _ = f.Close() }()
	h := w.Header()
	h.Set("Content-Type", o.MimeType)
	h.Set("Content-Disposition", disposition(o))
	h.Set("ETag", `"`+strings.TrimSuffix(path.Base(o.Path), path.Ext(o.Path))+`"`) // the bytes at a path never change
	http.ServeContent(w, r, "", created, f)
}

func (s *Store) servePut(w http.ResponseWriter, r *http.Request, ref Ref) {
	o, err := s.complete(r.Context(), ref, r.Body, r.ContentLength)
	if err != nil {
		s.fail(w, ref, err)
		return
	}
	b, err := json.Marshal(o)
	if err != nil {
		s.fail(w, ref, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(b) // the client is told or gone
}

// Status is what the sender of a file is answered with for an error of Put; false
// if the error is ours.
func Status(err error) (status int, known bool) {
	for _, known := range []struct {
		err    error
		status int
	}{
		{ErrNotFound, http.StatusNotFound},
		{ErrExpired, http.StatusForbidden},
		{ErrTaken, http.StatusConflict},
		{ErrTooLarge, http.StatusRequestEntityTooLarge},
		{ErrType, http.StatusUnsupportedMediaType},
		{ErrEmpty, http.StatusBadRequest},
		{ErrShort, http.StatusBadRequest},
		{errBody, http.StatusBadRequest},
		{ErrTooMany, http.StatusTooManyRequests},
		{ErrFull, http.StatusInsufficientStorage},
	} {
		if errors.Is(err, known.err) {
			return known.status, true
		}
	}
	return http.StatusInternalServerError, false
}

// fail answers for an error behind a good token.
func (s *Store) fail(w http.ResponseWriter, ref Ref, err error) {
	if status, known := Status(err); known {
		if wait := RetryAfter(err); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		}
		answer(w, status, err.Error())
		return
	}
	s.log.Error("serve attachment", "attachment", ref.String(), "error", err)
	answer(w, http.StatusInternalServerError, "")
}

// answer writes a problem (RFC 9457).
func answer(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{http.StatusText(status), status, detail})
}
