package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
)

// A page never holds a secret that was typed. So a form that is refused asks for it
// again, and is not saved without it unless the operator says so.
func TestSecretIsTypedAgain(t *testing.T) {
	v := visit(t)
	const url = "https://agent.example.org/"
	var first string
	const second = "Bearer of-the-header"
	v.Must(nil, "POST", "/agents", `{"name":"fast","kind":"webhook","config":{"url":"`+url+`","timeout":"5s"}}`)
	timeout := func() string {
		var a struct{ Config struct{ Timeout string } }
		v.Must(&a, "GET", "/agents/fast", "")
		return a.Config.Timeout
	}
	tag := func() string { return v.Must(nil, "GET", "/agents/fast", "").Header.Get("ETag") }

	// refused since another changed it, and since a field is wrong
	for name, refuse := range map[string]func() map[string]string{
		"stale": func() map[string]string {
			v.Must(nil, "PATCH", "/agents/fast", `{"config":{"timeout":"9s"}}`)
			return map[string]string{"config.secret": first, "config.headers": "Authorization: " + second}
		},
		"wrong": func() map[string]string {
			return map[string]string{"config.secret": first, "config.headers": "Authorization: " + second, "config.url": "no url"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v.Must(nil, "PATCH", "/agents/fast", `{"config":{"timeout":"5s"}}`)
			first = agent.NewWebhookSecret()
			v.open("agents/fast/edit")
			v.send("/edit", refuse())
			if v.status/100 != 4 {
				t.Fatalf("status %d: %s", v.status, v.text())
			}
			if s := v.source(); strings.Contains(s, first) || strings.Contains(s, second) {
				t.Error("the page holds a secret")
			}
			for _, field := range []string{"config.secret", "config.headers"} {
				if said := v.byID(field + "-error"); !strings.Contains(said, "type it again: secrets are not kept here") {
					t.Errorf("beside %s: %q", field, said)
				}
			}
			before := tag()
			again := map[string]string{"config.url": url}
			v.send("/edit", again)
			if v.status != http.StatusUnprocessableEntity || tag() != before {
				t.Fatalf("it was saved without the secret: %d %s", v.status, v.text())
			}
			again["config.secret"] = first
			v.send("/edit", again) // the headers are missing still, and now the secret is once more
			if v.status != http.StatusUnprocessableEntity || tag() != before || v.byID("config.secret-error") == "" {
				t.Fatalf("it was saved without the headers: %d %s", v.status, v.text())
			}
			again["without.config.headers"] = "on"
			v.send("/edit", again)
			if v.status != http.StatusOK || !strings.Contains(v.source(), "Saved.") || tag() == before {
				t.Errorf("not saved: %d %s", v.status, v.text())
			}
			if name == "stale" && timeout() != "9s" {
				t.Errorf("the other's change is lost: %s", timeout())
			}
		})
	}
}

// A token that was typed is asked for again, too: without it the host would make one.
func TestTokenIsTypedAgain(t *testing.T) {
	v := visit(t)
	v.Make("red", "")
	const own = "a-token-of-the-operators-own-0123456789"
	v.open("channels/red")
	v.send("/rotate", map[string]string{"token": own, "overlap": "never"})
	if v.status != http.StatusUnprocessableEntity || !strings.Contains(v.byID("token-error"), sayAgain) || strings.Contains(v.source(), own) {
		t.Fatalf("%d: %q", v.status, v.byID("token-error"))
	}
	v.send("/rotate", map[string]string{"overlap": "1h"})
	if v.status != http.StatusUnprocessableEntity {
		t.Fatalf("another token was made: %d %s", v.status, v.text())
	}
	v.send("/rotate", map[string]string{"token": own})
	if v.status != http.StatusOK || !strings.Contains(v.text(), own) {
		t.Errorf("%d %s", v.status, v.text())
	}

	v.open("channels/new")
	v.send("/channels/new", map[string]string{"name": "Not A Name", "whose": "own", "token": own + "2"})
	if v.status != http.StatusUnprocessableEntity || !strings.Contains(v.byID("token-error"), sayAgain) {
		t.Fatalf("%d: %q", v.status, v.byID("token-error"))
	}
	v.send("/channels/new", map[string]string{"name": "blue"})
	if v.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", v.status, v.text())
	}
}

// A profile's field that is chosen to be as the adapter says is so from then on.
func TestMarkdownIsTakenBack(t *testing.T) {
	v := visit(t)
	v.Make("red", `,"profile":{"markdown":"none","max_text":5}`)
	v.open("channels/red/edit")
	v.send("/edit", map[string]string{"profile.markdown": ""})
	var ch struct {
		Profile struct {
			Markdown string
			MaxText  int `json:"max_text"`
		}
	}
	if v.Must(&ch, "GET", "/channels/red", ""); ch.Profile.Markdown != "" || ch.Profile.MaxText != 5 {
		t.Errorf("%d, saved %+v", v.status, ch)
	}
}
