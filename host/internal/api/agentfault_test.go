package api_test

import (
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What is wrong with an agent's config is said at its field, in words of its own.
func TestConfigFaultsAreAtTheirField(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) {
		s.Kinds = map[string]agent.Kind{"webhook": {
			Secrets: []string{"secret"}, Fields: agent.WebhookFields, Fill: agent.FillWebhook, Check: agent.CheckWebhook,
			Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil },
		}}
	})
	for config, want := range map[string]string{
		`{}`:             `"message":"found none, expected an http or https url","location":"body.config.url"`,
		`{"url":5}`:      `"message":"found a number, expected a string","location":"body.config.url"`,
		`{"url":"nope"}`: `"location":"body.config.url"`,
		`{"url":"https://a.example.org","attempts":-1}`:          `"message":"found a number, expected a whole number that is not negative","location":"body.config.attempts"`,
		`{"url":"https://a.example.org","headers":{"Host":"a"}}`: `"message":"the host sets this one itself","location":"body.config.headers.Host"`,
		`{"url":"https://a.example.org","headers":["a"]}`:        `"message":"found a list, expected an object","location":"body.config.headers"`,
		`{"url":"https://a.example.org","colour":1}`:             `"message":"unknown field \"colour\"","location":"body.config"`,
		`[]`: `"location":"body.config"`,
	} {
		status, text := h.Ask("POST", "/agents", `{"name":"a","kind":"webhook","config":`+config+`}`)
		if status != 422 || !strings.Contains(text, want) || strings.Contains(text, "json:") {
			t.Errorf("%s: %d %s", config, status, text)
		}
	}
}
