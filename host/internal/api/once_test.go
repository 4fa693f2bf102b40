package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// postOnce sends a message with an Idempotency-Key.
func postOnce(h *hosttest.Host, key, body string) (int, string) {
	r := h.Request(h.Key, "POST", "/channels/c/messages", body, "Idempotency-Key", key)
	return r.Status, r.Body
}

// TestOnce: a request that comes more than once, also at once, is one message.
func TestOnce(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	token := h.Make("c", "")
	const hello = `{"conversation_id":"room","text":"hello"}`
	if status, body := postOnce(h, "k1", hello); status != http.StatusConflict {
		t.Errorf("without an adapter: %d %s", status, body)
	}
	a := h.Peer(token)
	var wg sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wg.Go(func() { _, answers[i] = postOnce(h, "k1", hello) }) // what was refused may be sent again
	}
	wg.Wait()
	for _, answer := range answers {
		if answer != answers[0] || !strings.Contains(answer, `"state":"sent"`) {
			t.Errorf("answers differ: %s and %s", answers[0], answer)
		}
	}
	if status, body := postOnce(h, "k1", `{"conversation_id":"room","text":"other"}`); status != http.StatusUnprocessableEntity || !strings.Contains(body, "header.Idempotency-Key") {
		t.Errorf("another message: %d %s", status, body)
	}
	if status, body := postOnce(h, "k2", hello); status != http.StatusAccepted {
		t.Errorf("another key: %d %s", status, body)
	}
	if got := h.Messages("c"); len(got) != 2 {
		t.Errorf("%d messages, expected 2", len(got))
	}
	a.Next("send")
	a.Next("send")
}
