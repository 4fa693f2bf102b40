package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeadReason: dead letters are listed by their reason.
func TestDeadReason(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", `,"queue":true,"queue_limits":{"ttl_seconds":1}`)
	h.must(nil, "POST", "/channels/c/messages", `{"conversation_id":"room","text":"late"}`)
	eventually(t, "it expires", func() bool { return h.history("c")[0].State == "expired" })
	if out := h.cli("dead", "list", "--reason", "ttl"); !strings.Contains(out, "late") {
		t.Errorf("not listed: %s", out)
	}
	if out := h.cli("dead", "list", "--reason", "rejected"); strings.Contains(out, "late") {
		t.Errorf("listed: %s", out)
	}
	if status, body := h.request("GET", "/dead-letters?reason=bored", ""); status != http.StatusUnprocessableEntity || !strings.Contains(body, "query.reason") {
		t.Errorf("got %d %s", status, body)
	}
}
