package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
)

// poisons is text that means something to what a host is made of: SQL, its LIKE
// and its full-text search, logs, terminals, paths, templates, JSON.
var poisons = []string{
	`' OR '1'='1`, `'; DROP TABLE message; --`, `" OR ""="`, `1; DELETE FROM channel`, `') UNION SELECT hash FROM token --`, `%`, `_`, `%' ESCAPE '`, `\`, `''`, "`id`",
	`text MATCH 'x`, `"unclosed`, `NEAR(a b`, `*`, `a AND`, `(((`, `-`, `col:x`, `^x`,
	"x\r\ntime=2026-01-01T00:00:00Z level=ERROR msg=forged", "x\nmsg=forged", "\x1b[2J\x1b]0;forged\x07", "\u009b31m", "\u2028msg=forged", "\u202egpj.exe",
	`../../../../etc/passwd`, `..%2f..%2fetc%2fpasswd`, `..\..\x`, `/etc/passwd`, `file:///etc/passwd`, `$(id)`, `${PATH}`, `{{7*7}}`, `%s%n%d`, `${jndi:ldap://127.0.0.1/x}`,
	`{"$ne":null}`, `[]`, `null`, `true`, `-1`, `1e309`, `9223372036854775808`, `<script>forged()</script>`, `\u0000`, "\x00", "\ufffe", strings.Repeat("a", 5000), strings.Repeat("'", 300), strings.Repeat("[", 300),
}

// document is what of an OpenAPI document an attacker reads.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]schemaOf }
}

type operation struct {
	Parameters  []struct{ Name, In string }
	RequestBody struct {
		Content map[string]struct{ Schema schemaOf }
	}
}

type schemaOf struct {
	Ref        string `json:"$ref"`
	Type       any
	Properties map[string]schemaOf
	Items      *schemaOf
}

// TestHostileText puts hostile text into every parameter and every field of every
// operation: nothing breaks, nothing is lost, and nobody is shown what is another's.
func TestHostileText(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("bystander", "")
	status, text := h.request("GET", "/openapi.json", "")
	var doc document
	if err := json.Unmarshal([]byte(text), &doc); err != nil || status != http.StatusOK || len(doc.Paths) < 20 {
		t.Fatalf("OpenAPI: %d, %v, %d paths", status, err, len(doc.Paths))
	}
	words := poisons
	if !torture.Siege() {
		words = slices.Concat(poisons[:6], poisons[20:24], poisons[26:28], poisons[36:38], poisons[43:46])
	}
	tries, broken := 0, 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for _, word := range words {
				for _, kept := range []string{word, "bystander"} { // an owner that is there, and one that is not
					request, body, applies := doc.fill(path, op, word, kept)
					if !applies || strings.HasSuffix(path, "/events") || kept == "bystander" && destroys(method, path) {
						continue
					}
					tries++
					status, answer, err := h.try(strings.ToUpper(method), strings.TrimPrefix(request, "/api/v1"), body)
					if err != nil || status >= 500 && status != http.StatusServiceUnavailable {
						broken++
						t.Errorf("%s %s with %.60q: %d, %v\n%.300s", method, path, word, status, err, answer)
					}
				}
			}
		}
	}
	torture.Attack(t, "hostile text in every field of the API", tries, broken, "an answer of 5xx, or none")
	h.wholesome("bystander")
}

// destroys reports what an attacker with the operator's key may rightly do to the
// bystander.
func destroys(method, path string) bool {
	return method == "delete" || method == "patch" && strings.HasSuffix(path, "/channels/{id}") || strings.HasSuffix(path, "/tokens")
}

// fill makes a request whose parameters and strings all are the word; its first
// path parameter is owner. It does not apply if the request has none.
func (d *document) fill(path string, op operation, word, owner string) (request, body string, applies bool) {
	query := url.Values{}
	first := true
	for _, p := range op.Parameters {
		switch p.In {
		case "path":
			value := word
			if first {
				value = owner
			}
			first, applies = false, true
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(value), 1)
		case "query":
			if p.Name != "follow" {
				query.Set(p.Name, word)
				applies = true
			}
		}
	}
	if c, ok := op.RequestBody.Content["application/json"]; ok {
		b, err := json.Marshal(d.value(c.Schema, word, 0))
		if err != nil {
			panic(err) // of strings, numbers and their maps
		}
		body, applies = string(b), true
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, body, applies
}

func (d *document) value(s schemaOf, word string, depth int) any {
	if s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	kind := fmt.Sprint(s.Type) // may be a list with null
	switch {
	case strings.Contains(kind, "boolean"):
		return true
	case strings.Contains(kind, "integer"), strings.Contains(kind, "number"):
		return 1
	case strings.Contains(kind, "array"):
		if s.Items == nil || depth > 4 {
			return []any{}
		}
		return []any{d.value(*s.Items, word, depth+1)}
	case strings.Contains(kind, "object"):
		out := map[string]any{}
		for name, p := range s.Properties {
			if depth < 5 && name != "$schema" {
				out[name] = d.value(p, word, depth+1)
			}
		}
		return out
	}
	return word
}

// wholeLine is how each line of the log begins.
var wholeLine = regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO|WARN|ERROR) msg=`)

// wholesome checks what no attack may have changed: the channel, the database and
// the form of the log.
func (h *host) wholesome(channel string) {
	h.t.Helper()
	token := h.channel("after-"+channel, "")
	p := h.dial("", http.Header{"X-Bridge-Token": {token}})
	p.send(frame{"type": "register", "platform": "test", "capabilities": []string{"text"}})
	p.next("register_ack")
	p.send(frame{"type": "message", "conversation_id": "c", "session_key": "k", "text": "still there?", "user_id": "u"})
	if got := p.next("send"); got["text"] != "echo: still there?" {
		h.t.Errorf("afterwards: %v", got)
	}
	h.must(nil, "GET", "/channels/"+channel, "")
	for at, line := range strings.Split(strings.TrimSuffix(h.errs.String(), "\n"), "\n") {
		if !wholeLine.MatchString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 && r != '\t' || r >= 0x7f && r < 0xa0 }) {
			h.t.Errorf("line %d of the log: %q", at+1, line)
		}
	}
	h.stop()
	r := runCommand(h.t, h.env(), "", "doctor", "--json")
	if !json.Valid([]byte(r.out)) {
		h.t.Fatalf("doctor: %s%s", r.out, r.err)
	}
	if strings.Contains(r.out, "malformed") || strings.Contains(r.out, "damaged") {
		h.t.Errorf("doctor: %s", r.out)
	}
}

// TestHostileFrames does the same to every field that an adapter fills in: each
// comes back as it was, and the log stays one line an entry.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--verbose")
	h.channel("bystander", "")
	token := h.channel("victim", "")
	tries, changed := 0, 0
	for _, word := range poisons {
		tries++
		p := h.dial("", http.Header{"X-Bridge-Token": {token}})
		p.send(frame{"type": "register", "platform": word, "capabilities": []string{"text", word}, "metadata": frame{word: word}, "protocol": word})
		if ack := p.next("register_ack"); ack["ok"] != true {
			t.Logf("refused %.40q: %v", word, ack)
			continue
		}
		asked := frame{"type": "message", "conversation_id": word, "session_key": word, "text": word, "user_id": word, "user_name": word, "reply_ctx": word}
		p.send(asked)
		_ = p.conn.WriteMessage(1, []byte(`{"type":"`+word)) // no frame at all: an error, and the connection lives
		p.send(frame{"type": "message", "conversation_id": "plain", "session_key": "plain", "text": "end"})
		for {
			got := p.any()
			if got["text"] == "echo: end" {
				break
			}
			if got["type"] == "send" && (got["text"] != "echo: "+asked["text"].(string) || got["conversation_id"] != word || got["session_key"] != word || got["reply_ctx"] != word) {
				changed++
				t.Errorf("%q came back as %v", word, got)
			}
		}
		_ = p.conn.Close()
	}
	torture.Attack(t, "hostile text in every field of a frame", tries, changed, "changed on its way")
	h.wholesome("bystander")
}

// any is the next frame.
func (p *peer) any() frame {
	p.t.Helper()
	select {
	case f, ok := <-p.frames:
		if !ok {
			p.t.Fatalf("connection closed with %d", p.code)
		}
		return f
	case <-time.After(wait):
		p.t.Fatal("no frame")
	}
	return nil
}
