package hosttest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Ask calls the REST API with the operator's key. A request that fails has status 0
// and its error as the answer, so that any goroutine may ask.
func (h *Host) Ask(method, path, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(h.T.Context(), method, "http://"+h.Addr+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+h.Key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// Operator calls the REST API and wants the status.
func (h *Host) Operator(method, path, body string, status int) {
	h.T.Helper()
	if got, answer := h.Ask(method, path, body); got != status {
		h.T.Fatalf("%s %s: status %d, want %d: %.300s", method, path, got, status, answer)
	}
}

// Call is Operator for an answer that is read; 204 has none.
func Call[T any](h *Host, method, path, body string, status int) (v T) {
	h.T.Helper()
	got, answer := h.Ask(method, path, body)
	if got != status {
		h.T.Fatalf("%s %s: status %d, want %d: %.500s", method, path, got, status, answer)
	}
	if status != http.StatusNoContent {
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			h.T.Fatalf("%s %s: %v: %.500s", method, path, err, answer)
		}
	}
	return v
}
