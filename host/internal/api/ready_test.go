package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// A host that ends is not ready from then on, however fresh an answer of before is.
func TestNotReadyWhileItEnds(t *testing.T) {
	t.Parallel()
	var ending atomic.Bool
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		s.API = func(_ *hosttest.Host, o *api.Options) { o.Ending = ending.Load }
	})
	if a := h.Get(h.URL() + "/readyz"); a.Status != http.StatusOK {
		t.Fatalf("at first: %d %s", a.Status, a.Body)
	}
	ending.Store(true)
	if a := h.Get(h.URL() + "/readyz"); a.Status != http.StatusServiceUnavailable || !strings.Contains(a.Body, "stopping") {
		t.Errorf("while it ends: %d %s", a.Status, a.Body)
	}
}
