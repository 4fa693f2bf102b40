package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// strange lists what came out of a message where only words should: elements and
// attributes that no page of the console has (charts, which are there once a minute has ended, have more), and addresses that lead elsewhere than
// to the web, a mail program, the console or an attachment.
const strange = `[...document.querySelectorAll('main *')].filter(e =>
	!['A', 'ARTICLE', 'AUDIO', 'B', 'BLOCKQUOTE', 'BR', 'BUTTON', 'CODE', 'DD', 'DEL', 'DIV', 'DL', 'DT', 'EM', 'FIELDSET', 'FIGCAPTION', 'FIGURE', 'FORM', 'H1', 'H2', 'H3', 'HEADER', 'HR', 'IMG',
	  'INPUT', 'LABEL', 'LEGEND', 'LI', 'MARK', 'NAV', 'OL', 'OPTION', 'P', 'PRE', 'Q', 'SECTION', 'SELECT', 'SMALL', 'SPAN', 'STRONG', 'SUMMARY', 'DETAILS', 'TABLE', 'TBODY', 'TD', 'TEXTAREA', 'TH', 'THEAD', 'TIME',
	  'TFOOT', 'TR', 'UL', 'VIDEO', 'CAPTION', 'svg', 'path'].includes(e.tagName) && !e.closest('figure.chart > svg') ||
	[...e.attributes].some(a => a.name.startsWith('on') || ['style', 'srcdoc', 'formaction', 'xlink:href', 'background'].includes(a.name)) ||
	e.tagName === 'A' && !/^(https?:|mailto:)/.test(e.href) ||
	e.tagName === 'A' && new URL(e.href).origin !== location.origin && e.rel !== 'noopener noreferrer nofollow' ||
	e.tagName === 'FORM' && !e.action.startsWith(location.origin + '/console/') ||
	e.src && !e.src.startsWith(location.origin + '/storage/') && !e.src.startsWith('data:image/')
).map(e => e.outerHTML.slice(0, 150))`

// turns lists the texts outside of messages that turn the direction of what follows,
// and texts of messages that nothing isolates.
const turns = `(() => { const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let n = walk.nextNode(); n; n = walk.nextNode())
		if (/[\u202a-\u202e\u2066-\u2069]/.test(n.data) && !n.parentElement.closest('textarea') && getComputedStyle(n.parentElement.closest('.said, .markdown') ?? document.body).unicodeBidi === 'normal')
			found.push(n.parentElement.outerHTML.slice(0, 150))
	return found })()`

// onlyWords checks a page: nothing on it is more than words.
func onlyWords(t *testing.T, p *browser.Tab, where string) {
	t.Helper()
	var found []string
	p.JS(&found, strange)
	if len(found) > 0 {
		t.Errorf("%s holds %q", where, found)
	}
	var turned []string
	p.JS(&turned, turns)
	if len(turned) > 0 {
		t.Errorf("%s: directions are turned by %q", where, turned)
	}
	if said := p.Said(); len(said) > 0 {
		t.Errorf("%s: %q", where, said)
	}
}

// hostileTexts are what every page is tried with.
func hostileTexts(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("../../../sdk/message/testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil || len(texts) < 20 {
		t.Fatalf("%d texts: %v", len(texts), err)
	}
	return texts
}

// poison makes text of every text in a JSON value, but for the types of parts.
func poison(key string, v any, text string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, value := range v {
			v[k] = poison(k, value, text)
		}
	case []any:
		for i := range v {
			v[i] = poison(key, v[i], text)
		}
	case string:
		if key != "type" {
			return text
		}
	}
	return v
}

// printable is the text as a conversation's id or a header may be.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, text)
}

// offHost is a text that is no address of this host, whose forgeries are refused.
func offHost(text string) string {
	if strings.HasPrefix(text, "/storage/") {
		return "https://example.org" + text
	}
	return text
}

// logIn opens a session by a browser that calls itself agent.
func (h *host) logIn(agent string) {
	h.t.Helper()
	req, err := http.NewRequest("POST", h.url+"/console/login", strings.NewReader(url.Values{"name": {operatorName}, "password": {operatorPassword}}.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", agent)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) == 0 {
		h.t.Fatalf("log in: status %d", resp.StatusCode)
	}
}

// TestConsoleHostile: whatever a platform, an adapter, an agent or a client puts
// into whichever field, the console shows words.
func TestConsoleHostile(t *testing.T) {
	t.Parallel()
	texts := hostileTexts(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "loud.txt"), strings.Join(texts, "\n"))
	writeFile(t, filepath.Join(dir, "loud.sh"), "cat "+dir+"/loud.txt >&2; exit 1\n")
	writeFile(t, filepath.Join(dir, "plugins.yaml"), fmt.Sprintf("plugins:\n  - {name: loud, command: [/bin/sh, %q], restart: {backoff: 100ms, max_backoff: 200ms, quarantine_after: 2}}\n", dir+"/loud.sh"))
	h := startHost(t, "--plugins", filepath.Join(dir, "plugins.yaml"))
	token := h.channel("red", `,"queue":true`)
	a := h.dial("", http.Header{"X-Bridge-Token": {token}})
	a.send(frame{"type": "register", "platform": texts[1], "capabilities": []string{"parts", "buttons", "ack", texts[0]}, "protocol": "1.1"})
	if ack := a.next("register_ack"); ack["ok"] != true {
		t.Fatalf("register_ack: %v", ack)
	}
	var all []any
	raw, err := os.ReadFile("../../../sdk/message/testdata/parts.json")
	if err != nil {
		t.Fatal(err)
	}
	h.must(nil, "PATCH", "/channels/red", `{"agent":"none"}`)
	p := h.console(talk("red", "all"))
	live(p)                          // what comes now is put in place by scripts
	for _, text := range texts[:3] { // each costs a hash that is meant to be slow
		h.logIn(printable(text))
	}
	for i, text := range texts {
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(err)
		}
		a.send(frame{"type": "message", "conversation_id": "all", "user_id": printable(text), "user_name": text, "text": text, "message_id": text, "metadata": map[string]any{text: text},
			"parts": poison("", all, offHost(text)), "session_key": printable(text)})
		a.send(frame{"type": "message", "conversation_id": printable(text), "user_id": "u", "user_name": text, "text": "found " + text})
		if i%2 == 0 { // the operator's side, refused by the adapter in the same words
			body, err := json.Marshal(map[string]any{"conversation_id": "all", "card": map[string]any{
				"header": map[string]any{"title": text}, "elements": []any{map[string]any{"type": "markdown", "content": text}, map[string]any{"type": "note", "text": text}}}})
			if err != nil {
				t.Fatal(err)
			}
			h.must(nil, "POST", "/channels/red/messages", string(body))
			for f := range a.frames {
				if f["type"] == "error" || f["ok"] == false {
					t.Errorf("%q is refused: %v", text, f)
				}
				if id, _ := f["message_id"].(string); f["type"] != "message_ack" && f["type"] != "error" && id != "" {
					a.send(frame{"type": "message_ack", "message_id": id, "ok": false, "error": text})
					break
				}
			}
		}
	}
	p.Is("all is there", "document.querySelectorAll('#talk > .msg').length >= %d", len(texts)+len(texts)/2)
	onlyWords(t, p, "the live page")
	for _, path := range []string{
		talk("red", "all"), "conversations", "conversations?q=found", "conversations?q=" + url.QueryEscape(texts[1]), "conversations?q=alert", "dead", "dead?channel=red", "dead/replay?channel=red",
		"", "channels", "channels/red", "adapters", "plugins", "plugins/loud", "agents", "account", "channels/red/frames", "conversations?channel=" + url.QueryEscape(texts[0]), "dead?reason=" + url.QueryEscape(texts[0]), url.PathEscape(texts[0]), "messages/" + url.PathEscape(texts[0]),
	} {
		p.Go(h.url + "/console/" + path)
		onlyWords(t, p, path)
	}
	var ids []row
	for _, m := range h.history("red") {
		if m.Conversation == "all" {
			ids = append(ids, m)
		}
	}
	for i := 0; i < len(ids); i += 8 {
		p.Go(h.url + "/console/messages/" + ids[i].ID)
		onlyWords(t, p, "the story of "+ids[i].Text)
	}
	p.Accessible("hostile-story")
	for _, text := range texts {
		p.Go(h.url + "/console/" + talk("red", printable(text)))
		onlyWords(t, p, "the conversation "+text)
	}
	p.Go(h.url + "/console/conversations")
	p.Accessible("hostile-talks")

	// A test of the test: what is forbidden is heard.
	p.Said()
	p.JS(nil, "document.querySelector('main').innerHTML = '<img src=x onerror=alert(1) style=color:red>'")
	var found []string
	p.JS(&found, strange)
	if len(found) == 0 {
		t.Error("nothing is strange to the test")
	}
	eventually(t, "the browser tells what the policy forbids", func() bool { p.Is("", "true"); return len(p.Said()) > 0 })
}
