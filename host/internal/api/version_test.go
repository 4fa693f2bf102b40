package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
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
	for name, c := range map[string]struct{ list, made, first, second, after string }{
		"channel": {"/channels", `{"name":"c"}`, `{"enabled":false}`, `{"rate_limit":7}`, `{"enabled":false}`},
		"agent":   {"/agents", `{"name":"c","kind":"words","config":{"secret":"s3cret"}}`, `{"enabled":false}`, `{"config":{"x":1}}`, `{"enabled":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, nil)
			made := h.must(nil, "POST", c.list, c.made).header.Get("ETag")
			var row struct{ ETag string }
			one := c.list + "/c"
			if got := h.must(&row, "GET", one, "").header.Get("ETag"); got == "" || got != made || got != row.ETag {
				t.Fatalf("POST's tag is %s, GET's %s, the body's %s", made, got, row.ETag)
			}
			second := h.must(nil, "PATCH", one, c.first, "If-Match", made).header.Get("ETag")
			if second == made {
				t.Fatalf("a change leaves the tag at %s", second)
			}
			if got := h.must(nil, "PATCH", one, c.first).header.Get("ETag"); got != second {
				t.Errorf("a change that changes nothing makes version %s of %s", got, second)
			}
			for _, method := range []string{"PATCH", "DELETE"} {
				a := h.call(method, one, c.second, "If-Match", made)
				var p stale
				if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != 412 || p.Status != 412 || a.header.Get("ETag") != second || p.ETag != second {
					t.Fatalf("%s with an old tag: %d, %v, %s", method, a.status, a.header, a.body)
				}
				if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
					t.Errorf("%s with an old tag answers %s", method, ct)
				}
				if len(p.Changes) != 1 || p.Changes[0].Actor != "admin" || string(p.Changes[0].After) != c.after {
					t.Errorf("%s with an old tag tells of %+v", method, p.Changes)
				}
				if len(p.Errors) != 1 || p.Errors[0].Location != "body.enabled" || !strings.Contains(p.Errors[0].Message, "false by admin at ") {
					t.Errorf("%s with an old tag says %+v", method, p.Errors)
				}
				if strings.Contains(a.body, "s3cret") {
					t.Errorf("%s with an old tag tells a secret", method)
				}
			}
			if got := h.must(nil, "GET", one, "").header.Get("ETag"); got != second {
				t.Errorf("a refused change makes version %s of %s", got, second)
			}
			for _, tag := range []string{second, "*", `"x", ` + second} {
				h.must(nil, "PATCH", one, c.first, "If-Match", tag)
			}
			for _, tag := range []string{`"x"`, "W/" + second, strings.Replace(second, "-", "-9", 1), strings.Trim(second, `"`) + "x"} {
				if a := h.call("PATCH", one, c.second, "If-Match", tag); a.status != 412 {
					t.Errorf("If-Match: %s is answered with %d", tag, a.status)
				}
			}
			third := h.must(nil, "PATCH", one, c.second, "If-Match", second).header.Get("ETag")
			h.must(nil, "DELETE", one, "", "If-Match", third)
			h.must(nil, "POST", c.list, c.made)
			if a := h.call("DELETE", one, "", "If-Match", made); a.status != 412 {
				t.Errorf("the tag of one that was deleted opens its successor: %d", a.status)
			}
		})
	}
}

// Who may not read the audit log is told what changed, and not who did it.
func TestIfMatchOfLimitedKey(t *testing.T) {
	h := start(t, nil)
	old := h.must(nil, "POST", "/channels", `{"name":"c"}`).header.Get("ETag")
	var key struct{ Key string }
	h.must(&key, "POST", "/keys", `{"name":"k","scopes":["manage"],"channels":["c"]}`)
	h.must(nil, "PATCH", "/channels/c", `{"rate_limit":7}`)
	a := h.callAs(key.Key, "PATCH", "/channels/c", `{"rate_limit":8}`, "If-Match", old)
	if a.status != 412 || !strings.Contains(a.body, "was changed to 7 at") || strings.Contains(a.body, "admin") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
