package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
	"github.com/pontoon-bridge/pontoon/host/internal/console"
)

// pieces are the routes that show no page: parts of pages, and streams.
var pieces = []string{
	"GET /console/live", "GET /console/channels/{id}/attached", "GET /console/channels/{channel}/frames/live", "GET /console/conversations/{channel}/live",
	"GET /console/metrics/charts", "GET /console/plugins/{name}/lines", "GET /console/session",
	"GET /console/dead/{id}/{act}", // leads to the message's story
}

// unseen are the patterns of pages that none of the paths (below /console/) is of.
func unseen(t *testing.T, paths []string) []string {
	t.Helper()
	mux := http.NewServeMux()
	left := map[string]bool{}
	for _, pattern := range console.Patterns() {
		mux.Handle(pattern, http.NotFoundHandler())
		left[pattern] = !strings.HasPrefix(pattern, "POST ") && !slices.Contains(pieces, pattern)
	}
	for _, path := range paths {
		_, pattern := mux.Handler(httptest.NewRequest("GET", "/console/"+path, nil))
		left[pattern] = false
	}
	var out []string
	for pattern, is := range left {
		if is {
			out = append(out, pattern)
		}
	}
	return out
}

// TestConsolePages looks at every page as a host in use shows it: at 360 and 1440
// points, light and dark, for what keeps people out. `make screenshots` keeps the
// pictures.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "plugins.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "plugins:\n  - {name: webchat, command: [%q, adapter, run, webchat], config: {listen: \"127.0.0.1:0\"}}\n"+
		"  - {name: broken, command: [/bin/false], restart: {backoff: 100ms, max_backoff: 200ms, quarantine_after: 2}}\n", pontoonBinary), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, "--plugins", file)
	p := h.console("agents/new")
	p.Accessible("agent-kinds")

	h.must(nil, "POST", "/agents", `{"name":"helper","kind":"websocket"}`)
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"https://agent.example.org/"}}`)
	support := h.attach(h.channel("support", `,"accept_capabilities":["text","buttons","typing"]`), "text", "buttons", "card", "telepathy")
	support.ask("room/1", "hello", "echo: hello")
	h.channel("irc-home", `,"queue":true,"agent":"helper"`)
	h.must(nil, "POST", "/channels/irc-home/messages", `{"conversation_id":"#ops","text":"for later"}`)
	h.channel("night", `,"enabled":false`)
	eventually(t, "the broken plugin is given up", func() bool {
		var st struct{ State string }
		h.must(&st, "GET", "/plugins/broken", "")
		return st.State == "quarantined"
	})

	// Keys of every state, dead letters and their replay.
	h.must(nil, "POST", "/keys", `{"name":"dashboard","scopes":["read"],"expires":"720h"}`)
	h.must(nil, "POST", "/keys", `{"name":"night-shift-of-the-second-team","scopes":["read","send","manage","agent:run"]}`)
	var key struct{ ID string }
	h.must(&key, "POST", "/keys", `{"name":"old","scopes":["read"]}`)
	h.must(nil, "DELETE", "/keys/"+key.ID, "")
	doubtful := h.dial("?token="+h.channel("doubtful", ""), nil)
	doubtful.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	doubtful.next("register_ack")
	h.must(nil, "POST", "/channels/doubtful/messages", `{"conversation_id":"room","text":"refused"}`)
	doubtful.send(frame{"type": "message_ack", "message_id": doubtful.next("send")["message_id"], "ok": false, "error": "the room is closed"})
	eventually(t, "it is dead", func() bool {
		_, text := h.request("GET", "/dead-letters", "")
		return strings.Contains(text, `"channel":"doubtful"`)
	})
	var replay struct{ ID string }
	h.must(&replay, "POST", "/dead-letters/replays?channel=doubtful", "")
	doubtful.send(frame{"type": "message_ack", "message_id": doubtful.next("send")["message_id"], "ok": false, "error": "the room is closed"})

	support.send(frame{"type": "message", "conversation_id": "room/1", "user_id": "u", "user_name": "u", "text": "", "parts": []any{
		frame{"type": "file", "fileName": "a\u202egnp.exe", "url": "https://example.org/x", "sizeBytes": -1, "mimeType": "application/octet-stream"}}})
	eventually(t, "the odd file is there", func() bool { return len(h.history("support")) > 2 })
	message := h.history("support")[0].ID
	var tokens struct{ Tokens []struct{ ID string } }
	h.must(&tokens, "GET", "/channels/support/tokens", "")
	var keys struct{ Keys []struct{ ID string } }
	h.must(&keys, "GET", "/agents/helper/keys", "")
	seen := []string{}
	look := func(p *browser.Tab, name, path string) {
		p.Go(h.url + "/console/" + path)
		p.Accessible(name)
		seen = append(seen, path)
	}
	for name, path := range map[string]string{
		"overview": "", "channels": "channels", "channel-new": "channels/new", "channel": "channels/support", "channel-queued": "channels/irc-home",
		"channel-plugin": "channels/webchat", "channel-edit": "channels/support/edit", "adapters": "adapters", "plugins": "plugins", "plugin": "plugins/webchat",
		"plugin-quarantined": "plugins/broken", "agents": "agents", "agent": "agents/helper", "agent-webhook": "agents/hook", "agent-edit": "agents/hook/edit",
		"agent-new": "agents/new?kind=websocket", "agent-new-webhook": "agents/new?kind=webhook", "conversations": "conversations", "found": "conversations?q=hello",
		"conversation": "conversations/support?c=" + url.QueryEscape("room/1"), "message": "messages/" + message, "dead-letters": "dead", "account": "account", "missing": "no-such-page",
		"metrics": "metrics", "connections": "connections", "connections-channel": "connections?channel=support&what=attached", "metrics-day": "metrics?window=day&channel=support", "access": "access", "key": "access/" + key.ID, "audit": "audit", "audit-filtered": "audit?action=key",
		"channel-disable": "channels/support/disable", "token-revoke": "channels/support/tokens/" + tokens.Tokens[0].ID + "/revoke",
		"agent-key-revoke": "agents/helper/keys/" + keys.Keys[0].ID + "/revoke",
		"frames-support":   "channels/support/frames", "replay-ask": "dead/replay?channel=doubtful", "replay": "dead/replays/" + replay.ID,
	} {
		look(p, name, path)
	}
	nobody := browser.Open(t, h.url+"/console/login")
	look(nobody, "login", "login")
	look(nobody, "setup", "setup?code=x")
	nobody.Quiet()
	if missed := unseen(t, seen); len(missed) > 0 {
		t.Errorf("nobody looks at %q: add each above, or to pieces if it is no page", missed)
	}
	p.Go(h.url + "/console/access")
	p.Type("name", "another")
	p.JS(nil, "document.querySelector('[name=scope]').click()")
	p.Press("Make key")
	p.Is("the key is shown once", "document.getElementById('secret').textContent.length > 20")
	p.Accessible("key-made")
	p.Quiet()

	p.Go(h.url + "/console/adapters")
	p.Shows("not allowed by the channel's policy")
	p.Shows("not known to this host")
	p.Go(h.url + "/console/plugins/broken")
	p.Press("Lift the quarantine and start")
	p.Shows("was let out of quarantine")
	p.Is("its lines come by themselves", "document.querySelectorAll('.log li').length > 6")

	if err := os.WriteFile(file, []byte("plugins:\n  - {name: webchat, comand: [x]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Go(h.url + "/console/plugins")
	p.Press("Reload plugins.yaml")
	p.Shows("nothing changed")
	p.Is("each line is named", "document.querySelector('.problem code').innerText.includes('plugins.yaml:2')")
	p.Accessible("plugins-refused")

	p.Go(h.url + "/console/agents/hook/edit")
	p.Type("config.url", "ftp://x")
	p.Press("Save")
	p.Is("the fault stands beside its field", "document.getElementById('config.url').matches('[aria-invalid=true]')")
	p.Accessible("agent-refused")
	p.Type("config.url", "https://other.example.org/")
	p.Press("Save")
	p.Shows("Saved.")
	p.Shows("https://other.example.org/")
	p.Go(h.url + "/console/agents/helper")
	p.Press("Rotate the key")
	p.Is("the key is shown once", "document.getElementById('secret').textContent.length > 20")
	p.Accessible("agent-key")
	p.Go(h.url + "/console/agents/helper")
	p.Type("confirm", "helper")
	p.Press("Delete helper")
	p.Shows("in use by channel irc-home")
}
