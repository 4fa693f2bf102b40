package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A host that ends is not ready from then on, however fresh an answer of before is.
func TestNotReadyWhileItEnds(t *testing.T) {
	h := start(t, nil)
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		h.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}
	if status, text := ask(); status != http.StatusOK {
		t.Fatalf("at first: %d %s", status, text)
	}
	h.ending.Store(true)
	if status, text := ask(); status != http.StatusServiceUnavailable || !strings.Contains(text, "stopping") {
		t.Errorf("while it ends: %d %s", status, text)
	}
}
