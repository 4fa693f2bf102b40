package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

var secretive = Kind{Secrets: []string{"secret", "headers"}}

func TestMerge(t *testing.T) {
	const before = `{"headers":{"a":"b"},"n":12345678901234567890,"secret":"s"}`
	for _, c := range []struct{ name, patch, want, err string }{
		{"okNothing", `{}`, before, ""},
		{"okSet", `{"url":"u","n":2}`, `{"headers":{"a":"b"},"n":2,"secret":"s","url":"u"}`, ""},
		{"okRemove", `{"headers":null,"secret":null,"x":null}`, `{"n":12345678901234567890}`, ""},
		{"okHidden", `{"secret":"***","headers":"***"}`, before, ""},
		{"okNewSecret", `{"secret":"t"}`, `{"headers":{"a":"b"},"n":12345678901234567890,"secret":"t"}`, ""},
		{"okStarsElsewhere", `{"url":"***"}`, `{"headers":{"a":"b"},"n":12345678901234567890,"secret":"s","url":"***"}`, ""},
		{"errForm", `[1]`, "", "expected one"},
		{"errNull", `null`, "", "expected one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := secretive.Merge(json.RawMessage(before), json.RawMessage(c.patch))
			if string(got) != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %s, %v; want %s%s", got, err, c.want, c.err)
			}
		})
	}
	if _, err := secretive.Merge(json.RawMessage(`{}`), json.RawMessage(`{"secret":"***"}`)); err == nil || !strings.Contains(err.Error(), "secret: found ***") {
		t.Errorf("a secret that is not there was kept: %v", err)
	}
}

// A decoder would take it for the secret, and it would be shown.
func TestSecretsCase(t *testing.T) {
	r, _, _ := roster(t)
	r.Register("secretive", secretive)
	for _, config := range []string{`{"Secret":"s"}`, `{"\u017fecret":"s"}`} {
		if err := r.Check(ledger.Agent{Kind: "secretive", Config: json.RawMessage(config)}); err == nil || !strings.Contains(err.Error(), `expected "secret"`) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestShown(t *testing.T) {
	r, _, _ := roster(t)
	r.Register("secretive", secretive)
	for kind, want := range map[string]string{
		"secretive": `{"headers":"***","n":1.50,"secret":"***"}`,
		"test":      `{"headers":{"a":"b"},"n":1.50,"secret":"s"}`,
		"gone":      `{"headers":"***","n":"***","secret":"***"}`,
	} {
		if got := r.Shown(kind, json.RawMessage(`{"secret":"s","n":1.50,"headers":{"a":"b"}}`)); string(got) != want {
			t.Errorf("%s: shown %s, want %s", kind, got, want)
		}
	}
	if got := r.Shown("test", json.RawMessage(`broken`)); string(got) != "{}" {
		t.Errorf("a broken one is shown as %s", got)
	}
}

// Whatever an operator sends, a secret is never shown, and what was shown comes
// back as what it stands for.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"secret":"canary","n":1}`), []byte(`{"n":null}`))
	f.Add([]byte(`{}`), []byte(`{"secret":"***"}`))
	f.Add([]byte(`[`), []byte(`{"secret":{"a":["canary"]}}`))
	f.Add([]byte(`{"Secret":"x","secret":"canary","secret":"y"}`), []byte(`{"headers":"canary"}`))
	r := NewRoster(nil)
	r.Register("secretive", secretive)
	f.Fuzz(func(t *testing.T, config, patch []byte) {
		_ = r.Check(ledger.Agent{Kind: "secretive", Config: config})
		merged, err := secretive.Merge(config, patch)
		if err != nil {
			return
		}
		shown := r.Shown("secretive", merged)
		fields, err := object(shown)
		if err != nil {
			t.Fatalf("shown as %s", shown)
		}
		for _, name := range secretive.Secrets {
			if v, ok := fields[name]; ok && string(v) != `"***"` {
				t.Fatalf("%s is shown as %s", name, v)
			}
		}
		again, err := secretive.Merge(merged, shown)
		if err != nil || string(again) != string(merged) {
			t.Fatalf("%s, shown as %s, comes back as %s, %v", merged, shown, again, err)
		}
	})
}
