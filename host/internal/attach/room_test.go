package attach

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// When the disk has no room left nothing is begun, and an upload that was
// promised can be made once there is.
func TestNoRoom(t *testing.T) {
	var free atomic.Int64
	free.Store(100)
	h := newHost(t, Options{Room: func(n int64) error {
		if have := free.Load(); have <= 0 || have < n {
			return errors.New("the disk is nearly full")
		}
		return nil
	}})
	_, err := h.Reserve("owner-1", Claim{MimeType: "text/plain"}, 101)
	refused(t, err, ErrFull, "nearly full")
	res := h.reserve(t, Claim{MimeType: "text/plain"}, 5)
	before := h.files(t)
	free.Store(0)
	if r := do(t, http.MethodPut, res.URL, nil, strings.NewReader("hello")); r.status != http.StatusInsufficientStorage || !strings.Contains(r.body, "no room") {
		t.Errorf("found %d %s", r.status, r.body)
	}
	_, err = h.PutBytes(t.Context(), "owner-1", []byte("hello"), Claim{Name: "a.txt"})
	refused(t, err, ErrFull, "")
	if after := h.files(t); len(after) != len(before) {
		t.Errorf("on disk: found %v, expected %v", after, before)
	}
	free.Store(100)
	if r := do(t, http.MethodPut, res.URL, nil, strings.NewReader("hello")); r.status != http.StatusCreated {
		t.Errorf("found %d %s", r.status, r.body)
	}
}
