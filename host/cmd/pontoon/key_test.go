package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// as calls the API with a key; of an event stream only the beginning is read.
func (h *host) as(key, method, path, body string) (int, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	from := io.Reader(resp.Body)
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		from = io.LimitReader(from, 1)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (h *host) newKey(name string, extra string) string {
	h.t.Helper()
	var made struct{ Key string }
	h.must(&made, "POST", "/keys", `{"name":"`+name+`",`+extra+`}`)
	return made.Key
}

// A key shows which of its channels are gone, and is deleted by its name.
func TestCLIKeyOfDeletedChannel(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("mine", "")
	key := h.newKey("viewer", `"scopes":["read"],"channels":["mine"]`)
	h.must(nil, "DELETE", "/channels/mine", "")
	if out := h.cli("key", "show", "viewer"); !strings.Contains(out, "(deleted)") {
		t.Errorf("key show:\n%s", out)
	}
	h.cli("key", "delete", "viewer")
	if status, _ := h.as(key, "GET", "/channels", ""); status != http.StatusUnauthorized {
		t.Errorf("the key still opens: %d", status)
	}
}

// problem is what a refused request is answered with.
type problem struct {
	Status        int
	Title, Detail string
	Errors        []struct{ Message, Location string }
}
