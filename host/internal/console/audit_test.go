package console

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// TestFactsOf: of something new that is said which was asked for, in the API's words.
func TestFactsOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		line api.AuditEntry
		want []auditFact
	}{
		{"a channel as by default", api.AuditEntry{Action: "channel.create", Target: "c", Detail: json.RawMessage(`{"name":"c","kind":"bridge","enabled":true,"agent":"echo","agents":[],"queue":false,
			"accept_capabilities":[],"profile":{},"queue_limits":{},"retention_days":0}`)}, nil},
		{"a channel", api.AuditEntry{Action: "channel.create", Target: "c", Detail: json.RawMessage(`{"name":"c","enabled":false,"agent":"none","accept_capabilities":["text","buttons"],"queue_limits":{"length":5}}`)},
			[]auditFact{{"accept_capabilities", "", "text, buttons"}, {"agent", "", "none"}, {"enabled", "", "false"}, {"queue_limits", "", "length 5"}}},
		{"a plugin's, of an older host", api.AuditEntry{Action: "channel.create", Target: "p", Detail: json.RawMessage(`{"policy":{"Accept":null,"Agent":"none","Queue":null},"source":"p.yaml:2"}`)},
			[]auditFact{{"policy", "", "Agent none"}, {"source", "", "p.yaml:2"}}},
		{"a change", api.AuditEntry{Action: "channel.update", Target: "c", Detail: json.RawMessage(`{}`), Before: json.RawMessage(`{"agent":"echo","users":["ann"]}`), After: json.RawMessage(`{"agent":"none","users":[]}`)},
			[]auditFact{{"agent", "echo", "none"}, {"users", "ann", "none"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := factsOf(tc.line); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestActions: the form and docs/access.md list the same actions.
func TestActions(t *testing.T) {
	b, err := os.ReadFile("../../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "| action | |")
	if !ok {
		t.Fatal("docs/access.md has no table of actions")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		first := ""
		for _, m := range regexp.MustCompile("`([a-z.]+)`").FindAllStringSubmatch(line, -1) {
			switch action := m[1]; {
			case action == "plugins.yaml":
				continue
			case !strings.HasPrefix(action, "."):
				first = action
				documented[action] = true
			default:
				documented[first[:strings.LastIndexByte(first, '.')]+action] = true
			}
		}
	}
	offered := map[string]bool{}
	for _, a := range actions {
		for _, does := range a.Does {
			offered[a.Of+"."+does] = true
		}
	}
	if !reflect.DeepEqual(documented, offered) {
		t.Errorf("documented %v\noffered %v", documented, offered)
	}
	for action, want := range map[string]bool{"": true, "key": true, "key.create": true, "agent.key.rotate": true, "key.createx": false, "nothing": false} {
		if listed(action) != want {
			t.Errorf("%s: %t", action, !want)
		}
	}
}

func TestBrowserOf(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/130.0.0.0 Safari/537.36":                           "Chrome on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0":               "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Android 14; Mobile; rv:131.0) Gecko/131.0 Firefox/131.0":                                                                    "Firefox on Android", "curl/8.5.0": "curl/8.5.0", "": "unknown",
	} {
		if got := browserOf(agent); got != want {
			t.Errorf("%s: %q, want %q", agent, got, want)
		}
	}
}

// TestOdd: what was wrong with a message is said.
func TestOdd(t *testing.T) {
	found := message.Problems{{Part: 0, Type: "file", Field: "sizeBytes", Found: "-1", Allowed: "0 or more"}, {Part: -1, Found: "a", Allowed: "b"}, {Part: 1}, {Part: 2}}
	b := bubble{Message: api.Message{Metadata: message.Meta{}.Warn(found)}}
	got := b.odd()
	if len(got) != mostOdd+1 || got[0].Value != "part 1 of type file, field sizeBytes: found -1, expected 0 or more" || got[1].Value != "the message: found a, expected b" || !strings.HasPrefix(got[3].Value, "and 1 more") {
		t.Errorf("got %q", got)
	}
	b.Whole = true
	if got := b.odd(); len(got) != 4 {
		t.Errorf("its story says %q", got)
	}
}
