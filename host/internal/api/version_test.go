package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

// stale is the answer to a request that knows an older version.
type stale struct {
	Status  int
	ETag    string
	Changes []api.Changed
	Errors  []struct{ Location, Message string }
}

// Answers that show a channel or an agent carry the tag of its version, a request that
// names an older one is refused with what changed since, and changes nothing.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, made, first, second, after string }{
		"channel": {"/channels", `{"name":"c"}`, `{"enabled":false}`, `{"rate_limit":7}`, `{"enabled":false}`},
		"agent":   {"/agents", `{"name":"c","kind":"words","config":{"secret":"s3cret"}}`, `{"enabled":false}`, `{"config":{"x":1}}`, `{"enabled":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := hosttest.Start(t, words)
			made := h.Must(nil, "POST", c.list, c.made).Header.Get("ETag")
			var row struct{ ETag string }
			one := c.list + "/c"
			if got := h.Must(&row, "GET", one, "").Header.Get("ETag"); got == "" || got != made || got != row.ETag {
				t.Fatalf("POST's tag is %s, GET's %s, the body's %s", made, got, row.ETag)
			}
			second := h.Must(nil, "PATCH", one, c.first, "If-Match", made).Header.Get("ETag")
			if second == made {
				t.Fatalf("a change leaves the tag at %s", second)
			}
			if got := h.Must(nil, "PATCH", one, c.first).Header.Get("ETag"); got != second {
				t.Errorf("a change that changes nothing makes version %s of %s", got, second)
			}
			for _, method := range []string{"PATCH", "DELETE"} {
				a := h.Request(h.Key, method, one, c.second, "If-Match", made)
				var p stale
				if err := json.Unmarshal([]byte(a.Body), &p); err != nil || a.Status != 412 || p.Status != 412 || a.Header.Get("ETag") != second || p.ETag != second {
					t.Fatalf("%s with an old tag: %d, %v, %s", method, a.Status, a.Header, a.Body)
				}
				if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" {
					t.Errorf("%s with an old tag answers %s", method, ct)
				}
				if len(p.Changes) != 1 || p.Changes[0].Actor != "admin" || string(p.Changes[0].After) != c.after {
					t.Errorf("%s with an old tag tells of %+v", method, p.Changes)
				}
				if len(p.Errors) != 1 || p.Errors[0].Location != "body.enabled" || !strings.Contains(p.Errors[0].Message, "false by admin at ") {
					t.Errorf("%s with an old tag says %+v", method, p.Errors)
				}
				if strings.Contains(a.Body, "s3cret") {
					t.Errorf("%s with an old tag tells a secret", method)
				}
			}
			if got := h.Must(nil, "GET", one, "").Header.Get("ETag"); got != second {
				t.Errorf("a refused change makes version %s of %s", got, second)
			}
			other := `"00000000-000000000000-1"`
			for _, tag := range []string{second, "*", other + `, ` + second} {
				h.Must(nil, "PATCH", one, c.first, "If-Match", tag)
			}
			at := strings.LastIndexByte(second, '-')
			for _, tag := range []string{other, second[:at] + "-9" + second[at+1:]} {
				if a := h.Request(h.Key, "PATCH", one, c.second, "If-Match", tag); a.Status != 412 {
					t.Errorf("If-Match: %s is answered with %d", tag, a.Status)
				}
			}
			for tag, want := range map[string]string{
				"foo": "expected an ETag as it was answered", `"x"`: "expected an ETag as it was answered", strings.Trim(second, `"`): "in quotes", "W/" + second: "weak tag, which never matches",
			} {
				if a := h.Request(h.Key, "PATCH", one, c.second, "If-Match", tag); a.Status != 400 || !strings.Contains(a.Body, want) {
					t.Errorf("If-Match: %s is answered with %d %s", tag, a.Status, a.Body)
				}
			}
			third := h.Must(nil, "PATCH", one, c.second, "If-Match", second).Header.Get("ETag")
			h.Must(nil, "DELETE", one, "", "If-Match", third)
			h.Must(nil, "POST", c.list, c.made)
			if a := h.Request(h.Key, "DELETE", one, "", "If-Match", made); a.Status != 412 {
				t.Errorf("the tag of one that was deleted opens its successor: %d", a.Status)
			}
		})
	}
}

// Who may not read the audit log is told what changed, and not who did it.
func TestIfMatchOfLimitedKey(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, words)
	old := h.Must(nil, "POST", "/channels", `{"name":"c"}`).Header.Get("ETag")
	var key struct{ Key string }
	h.Must(&key, "POST", "/keys", `{"name":"k","scopes":["manage"],"channels":["c"]}`)
	h.Must(nil, "PATCH", "/channels/c", `{"rate_limit":7}`)
	a := h.Request(key.Key, "PATCH", "/channels/c", `{"rate_limit":8}`, "If-Match", old)
	if a.Status != 412 || !strings.Contains(a.Body, "was changed to 7 at") || strings.Contains(a.Body, "admin") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A restored backup counts versions again: the tag of what was there before does not
// match another content with the same number.
func TestIfMatchAfterRestore(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, words)
	h.Must(nil, "POST", "/channels", `{"name":"c"}`)
	h.Must(nil, "POST", "/agents", `{"name":"a","kind":"words","config":{"x":0}}`)
	tags := func(h *hosttest.Host, rate, x string) map[string]string {
		return map[string]string{
			"/channels/c": h.Must(nil, "PATCH", "/channels/c", `{"rate_limit":`+rate+`}`).Header.Get("ETag"),
			"/agents/a":   h.Must(nil, "PATCH", "/agents/a", `{"config":{"x":`+x+`}}`).Header.Get("ETag"),
		}
	}
	backup := t.TempDir()
	unlock := hosttest.LockStore(t, h.Dir)
	err := os.CopyFS(backup, os.DirFS(h.Dir))
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	before := tags(h, "7", "1")
	h.Stop()
	restored := hosttest.Start(t, words, func(s *hosttest.Setup) { s.Dir = backup })
	after := tags(restored, "8", "2")
	for path, tag := range before {
		if a := restored.Request(restored.Key, "DELETE", path, "", "If-Match", tag); a.Status != 412 || tag == after[path] {
			t.Errorf("%s: the tag %s from before the restore is answered with %d; it is %s now", path, tag, a.Status, after[path])
		}
	}
}

// A profile is changed field by field, and null takes one back.
func TestProfileMerges(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	h.Must(nil, "POST", "/channels", `{"name":"c"}`)
	for _, c := range []struct{ patch, want string }{
		{`{"profile":{"max_text":100}}`, `{"max_text":100}`},
		{`{"profile":{"markdown":"none"}}`, `{"max_text":100,"markdown":"none"}`},
		{`{"profile":{"max_buttons":3,"max_text":0}}`, `{"markdown":"none","max_buttons":3}`},
		{`{"profile":{"markdown":null}}`, `{"max_buttons":3}`},
		{`{"profile":{}}`, `{"max_buttons":3}`},
		{`{"rate_limit":5}`, `{"max_buttons":3}`},
		{`{"profile":null}`, `{}`},
	} {
		var got struct{ Profile json.RawMessage }
		if h.Must(&got, "PATCH", "/channels/c", c.patch); string(got.Profile) != c.want {
			t.Errorf("%s makes %s, want %s", c.patch, got.Profile, c.want)
		}
	}
	for _, wrong := range []string{`{"profile":{"max_text":-1}}`, `{"profile":{"markdown":"bold"}}`, `{"profile":{"colour":1}}`} {
		h.Operator("PATCH", "/channels/c", wrong, 422)
	}
}

// A key that may not list the agents learns none of their names from an error.
func TestAgentsAreNotTold(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, words)
	h.Must(nil, "POST", "/channels", `{"name":"c"}`)
	h.Must(nil, "POST", "/agents", `{"name":"hidden-one","kind":"words","config":{}}`)
	key := h.NewKey("k", `"scopes":["manage","read"],"channels":["c"]`)
	for _, body := range []string{`{"agent":"zzz"}`, `{"agents":["zzz"]}`} {
		if status, text := h.As(key, "PATCH", "/channels/c", body); status != 422 || strings.Contains(text, "hidden-one") || strings.Contains(text, "echo") {
			t.Errorf("%s: %d %s", body, status, text)
		}
		if _, text := h.Ask("PATCH", "/channels/c", body); !strings.Contains(text, "hidden-one") {
			t.Errorf("the operator is told %s", text)
		}
	}
}
