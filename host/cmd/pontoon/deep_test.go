package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// nested is JSON that lies n levels deep.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// levels is how far objects and arrays of valid JSON lie in each other.
func levels(text string) (most int) {
	d := json.NewDecoder(strings.NewReader(text))
	for now := 0; ; {
		t, err := d.Token()
		if err != nil {
			return most
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			now++
			most = max(most, now)
		case json.Delim(']'), json.Delim('}'):
			now--
		}
	}
}

// pythonReads fails the test if Python's parser of JSON, which minds more than Go's,
// does not take a text.
func pythonReads(t *testing.T, what, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", "-c", "import json, sys; json.load(sys.stdin)")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", what, err, out)
	}
}

// A message that no reader of JSON could take, or that another hand broke, takes no
// list down: it is shown as far as it can be, and says what of it is missing.
func TestOneRowBlindsNobody(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.attach(h.channel("c", `,"queue":true,"agent":"none"`), "text")
	const deep, n = 9_998, 11
	contexts := []string{strings.Repeat("7", 200_000), "1e999999"} // the last ones are deep
	digits := strings.Repeat("7", 5_000)
	contexts = append(contexts, slices.Repeat([]string{nested(deep)}, n-len(contexts))...)
	for i, ctx := range contexts {
		p.send(frame{"type": "message", "conversation_id": "r", "user_id": "alice", "text": "hello " + strconv.Itoa(i), "reply_ctx": json.RawMessage(ctx)})
	}
	eventually(t, "all are stored", func() bool { return len(h.history("c")) == n })
	first := h.history("c")[n-1].ID
	h.must(nil, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"answer"}`)
	if ctx, err := json.Marshal(p.next("send")["reply_ctx"]); err != nil || string(ctx) != contexts[n-1] {
		t.Errorf("reply_ctx came back as %d bytes, %v, expected it as it was sent", len(ctx), err)
	}
	for _, content := range []string{
		`"text":"x","metadata":{"k":` + digits + `}`, `"text":"x","metadata":{"k":1e999}`, `"parts":[{"type":"custom","payloadType":"x","data":` + digits + `}]`,
	} {
		if status, text := h.request("POST", "/channels/c/messages", `{"conversation_id":"r",`+content+`}`); status != 400 && status != 422 {
			t.Errorf("numbers: %d %.200s", status, text)
		}
	}
	for levels, want := range map[int]string{message.MaxDepth + 1: "metadata.k: too_deep: found ", deep - 2: "body: too_deep: found "} {
		body := `{"conversation_id":"r","text":"x","metadata":{"k":` + nested(levels) + `}}`
		if status, text := h.request("POST", "/channels/c/messages", body); status != 422 && status != 400 || !strings.Contains(text, want) {
			t.Errorf("metadata of %d levels: %d %.200s", levels, status, text)
		}
	}
	h.must(nil, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"x","metadata":{"k":`+nested(message.MaxDepth)+`}}`)
	h.stop()
	d, err := sql.Open("sqlite", filepath.Join(h.data, "pontoon.db"))
	if err != nil {
		t.Fatal(err)
	}
	broken := []string{
		`meta = CAST('{"k":` + nested(deep) + `,"l":1}' AS BLOB)`, // as an older host took it
		`meta = CAST('{"k":' AS BLOB)`,
		`parts = CAST('[{"type":"te' AS BLOB)`,
		`parts = CAST('[{"type":"x","x":` + nested(deep) + `}]' AS BLOB)`,
		`meta = CAST('{"k":` + digits + `}' AS BLOB)`,
		`meta = CAST('{"k":-1e999999}' AS BLOB)`,
		`parts = CAST('[{"type":"x","x":` + digits + `}]' AS BLOB)`,
		`origin = CAST('{"session_key"' AS BLOB)`,
		`notes = x'00ff'`,
		`meta = x'7b226b223a22ff227d'`, // bytes that are no UTF-8 within a string
	}
	for i, set := range broken {
		_, err := d.ExecContext(t.Context(), "UPDATE message SET "+set+", state = 6, reason = 'ttl' WHERE id = (SELECT id FROM message ORDER BY id LIMIT 1 OFFSET ?)", i)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	h.again()
	h.shownWhole(n+2, len(broken), first)
}

// shownWhole looks at all lists: they have all messages, of which some are dead, and
// no reader stumbles.
func (h *host) shownWhole(messages, dead int, first string) {
	t := h.t
	t.Helper()
	count := map[string]int{}
	damaged, encoded := map[string]bool{}, map[string]string{}
	for path, list := range map[string]string{
		"/channels/c/messages?limit=500": "messages", "/dead-letters?limit=500": "dead_letters", "/search?q=hello": "results", "/conversations": "conversations",
	} {
		status, text := h.request("GET", path, "")
		var all map[string]json.RawMessage
		var rows []json.RawMessage
		if err := json.Unmarshal([]byte(text), &all); err != nil || json.Unmarshal(all[list], &rows) != nil || status != 200 {
			t.Fatalf("%s: %d, %v, %.200s", path, status, err, text)
		}
		if d := levels(text); d > message.MaxDepth+8 || !utf8.ValidString(text) {
			t.Errorf("%s: %d levels, or no UTF-8", path, d)
		}
		var read any
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		pythonReads(t, path, text)
		count[list] = len(rows)
		for _, row := range rows {
			var m struct {
				ID      string
				Damaged []string
				Encoded map[string]string
				Reply   json.RawMessage `json:"reply_ctx"`
			}
			if err := json.Unmarshal(row, &m); err != nil {
				t.Fatal(err)
			}
			for _, what := range m.Damaged {
				damaged[what] = true
			}
			for what, how := range m.Encoded {
				encoded[what] = how
			}
			var given string
			if m.Encoded["reply_ctx"] == "json" && (json.Unmarshal(m.Reply, &given) != nil || !json.Valid([]byte(given))) {
				t.Errorf("%s: reply_ctx is %.80s", m.ID, m.Reply)
			}
			if m.ID != "" {
				h.must(nil, "GET", "/messages/"+m.ID, "")
				h.cli("why", m.ID)
			}
		}
	}
	if count["messages"] != messages || count["dead_letters"] != dead || count["results"] != messages-2 || count["conversations"] != 1 {
		t.Errorf("found %v, expected %d messages of which %d are dead", count, messages, dead)
	}
	for _, what := range []string{"origin", "parts", "metadata", "degraded"} {
		if !damaged[what] {
			t.Errorf("nothing says that its %s is damaged: %v", what, damaged)
		}
	}
	if encoded["reply_ctx"] != "json" || encoded["metadata.k"] == "" {
		t.Errorf("encoded: %v", encoded)
	}
	if lines := strings.Count(h.cli("messages", "c"), "\n"); lines < messages {
		t.Errorf("the command shows %d lines", lines)
	}
	h.cli("dead", "list")
	ctx, done := context.WithTimeout(t.Context(), wait)
	defer done()
	c, events := &client{base: h.url, key: h.key}, 0
	_ = c.events(ctx, "/events?channel=c", first, func() error { return nil }, func(_, data string) error {
		if json.Unmarshal([]byte(data), new(any)) != nil {
			t.Errorf("event %.100s", data)
		}
		if events++; events == messages-1 {
			done()
		}
		return nil
	})
	if events < messages-1 {
		t.Errorf("%d events, expected %d", events, messages-1)
	}
	b := h.setUpPlain()
	for page, want := range map[string]string{"dead": "hello 0", "conversations/c?c=r": "hello 0", "messages/" + first: "hello 0", "conversations": "r"} {
		if status, _, text := b.open("/console/"+page, url.Values(nil)); status != 200 || !strings.Contains(text, want) {
			t.Errorf("console page %s: %d, without %q", page, status, want)
		}
	}
}
