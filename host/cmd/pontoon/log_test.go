package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// logLine is what every line of the log looks like.
var logLine = regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO|WARN|ERROR) msg=`)

func TestLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--verbose")
	const token, wrong, text = "canary-of-the-token", "canary-of-no-token", "canary-of-the-text"
	h.channel("c", `,"token":"`+token+`"`)
	register := func(query string, header http.Header, inFrame string, ok bool) *peer {
		t.Helper()
		p := h.dial(query, header)
		p.send(frame{"type": "register", "token": inFrame, "platform": "p"})
		if ack := p.next("register_ack"); ack["ok"] != ok {
			t.Fatalf("register_ack: %v", ack)
		}
		return p
	}
	for _, secret := range []string{wrong, token} {
		ok := secret == token
		register("?token="+secret, nil, "", ok)
		register("", http.Header{"X-Bridge-Token": {secret}}, "", ok)
		register("", http.Header{"Authorization": {"Bearer " + secret}}, "", ok)
		register("", nil, secret, ok)
	}
	register("", nil, token, true).ask("room", text, "echo: "+text)
	forged := "\nlevel=ERROR msg=forged\r\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged"
	p := h.dial("?token="+token, nil)
	p.send(frame{
		"type": "register", "platform": "p" + forged, "capabilities": []string{"text", forged},
		"metadata": map[string]any{"v" + forged: forged},
	})
	p.next("register_ack")
	p.ask("room"+forged, text+forged, "echo: "+text+forged)
	p.send(frame{"type": "message", "conversation_id": "room", "text": []string{text}, "message_id": "id" + forged})
	p.next("error")
	p.send(frame{"type": "x" + forged, "text": text})
	p.next("error")
	p.say("room", "/agent nobody"+forged)
	p.next("send")
	h.request("POST", "/channels", `{"name":"x\nlevel=ERROR msg=forged"}`)
	h.request("GET", "/channels/x%0alevel=ERROR%20msg=forged", "")
	h.request("POST", "/channels/c/messages", `{"conversation_id":"room","text":"`+text+`"}`)
	for _, path := range []string{"/api/v1/channels/bridge/ws?token=" + token, "/api/v1/nowhere?token=" + token + "%0aforged", "/api/v1/events?token=" + token} {
		resp, err := http.Get(h.url + path) // no upgrade
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	const answer = "canary-of-the-answer"
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })) // no JSON
	defer hook.Close()
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"`+hook.URL+`","allow_private":true}}`)
	asker := h.attach(h.channel("hooked", `,"agent":"hook"`), "text")
	asker.say("room", "hello")
	asker.next("send") // an apology
	if said := h.cli("why", h.history("hooked")[1].ID); !strings.Contains(said, answer) {
		t.Errorf("why does not tell what the agent answered: %s", said)
	}
	key := h.key
	// A secret opens one thing only, and this one is the operator's.
	if status, text := h.request("POST", "/channels/c/tokens", `{"token":"`+key+`"}`); status != 409 {
		t.Errorf("the operator's key as a token: %d %s", status, text)
	}
	if status, text := h.request("POST", "/channels", `{"name":"new","token":"`+key+`"}`); status != 409 {
		t.Errorf("the operator's key as a first token: %d %s", status, text)
	}
	h.stop()

	log := h.errs.String()
	if !strings.Contains(log, `msg="turn failed"`) {
		t.Errorf("the log says nothing of the agent that failed: %s", log)
	}
	for _, secret := range []string{token, wrong, key, answer} {
		if strings.Contains(log, secret) || strings.Contains(h.out.String(), secret) {
			t.Errorf("a secret is in the log: %s", log)
		}
	}
	found := lines(log)
	for _, line := range found {
		if !logLine.MatchString(line) || strings.HasPrefix(line, "level=") || strings.HasPrefix(line, "time=2026-01-01") {
			t.Errorf("forged line %q", line)
		}
		if strings.Contains(line, text) && !strings.Contains(line, "level=DEBUG") {
			t.Errorf("message text above debug: %s", line)
		}
	}
	if len(found) < 10 || !strings.Contains(log, `reason="invalid token"`) {
		t.Errorf("the log says too little to prove anything: %s", log)
	}
}

// What an adapter says of itself is clipped in the log, however often it says it.
func TestLogBounded(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("loud", "")
	long := strings.Repeat("x", 60_000)
	const times = 30
	for i := range times {
		p := h.dial("", nil)
		p.send(frame{
			"type": "register", "token": token, "platform": "p", "capabilities": []string{"text", long},
			"metadata": map[string]any{"a": long, "b": long},
		})
		if ack := p.next("register_ack"); ack["ok"] != true {
			t.Fatalf("register %d: %v", i, ack)
		}
	}
	h.stop()
	log := h.errs.String()
	if len(log) > times*10_000 {
		t.Errorf("the log has %d bytes of %d registers", len(log), times)
	}
	for _, line := range lines(log) {
		if len(line) > 5_000 {
			t.Errorf("a line has %d bytes: %.200s", len(line), line)
		}
	}
	if !regexp.MustCompile(`metadata="\S*… \(1200\d\d bytes\)"`).MatchString(log) {
		t.Errorf("the log does not say what was clipped")
	}
}
