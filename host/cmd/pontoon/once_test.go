package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// postOnce sends a message with an Idempotency-Key.
func (h *host) postOnce(key, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest("POST", h.url+"/api/v1/channels/c/messages", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		h.t.Error(err)
	}
	_, body, _ = strings.Cut(b.String(), "\r\n\r\n")
	return resp.StatusCode, body
}

// TestOnce: a request that comes more than once, also at once, is one message.
func TestOnce(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	const hello = `{"conversation_id":"room","text":"hello"}`
	if status, body := h.postOnce("k1", hello); status != http.StatusConflict {
		t.Errorf("without an adapter: %d %s", status, body)
	}
	a := h.attach(token)
	var wg sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		wg.Go(func() { _, answers[i] = h.postOnce("k1", hello) }) // what was refused may be sent again
	}
	wg.Wait()
	for _, answer := range answers {
		if answer != answers[0] || !strings.Contains(answer, `"state":"sent"`) {
			t.Errorf("answers differ: %s and %s", answers[0], answer)
		}
	}
	if status, body := h.postOnce("k1", `{"conversation_id":"room","text":"other"}`); status != http.StatusUnprocessableEntity || !strings.Contains(body, "header.Idempotency-Key") {
		t.Errorf("another message: %d %s", status, body)
	}
	if status, body := h.postOnce("k2", hello); status != http.StatusAccepted {
		t.Errorf("another key: %d %s", status, body)
	}
	if got := h.history("c"); len(got) != 2 {
		t.Errorf("%d messages, expected 2", len(got))
	}
	a.next("send")
	a.next("send")
}

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
