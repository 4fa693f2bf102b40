package main

import (
	"log/slog"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
)

// registerDialed names the kinds of agents that the host calls.
func registerDialed(r *agent.Roster, log *slog.Logger) {
	r.Register("webhook", agent.Kind{
		About:   "Gets each message as a signed POST; what it answers may be the reply (docs/agents-webhook.md)",
		Secrets: []string{"secret", "secrets", "headers"},
		Fields:  agent.WebhookFields,
		Fill:    agent.FillWebhook, Check: agent.CheckWebhook,
		Make: func(row ledger.Agent) (hub.Agent, error) { return agent.NewWebhook(row.Config, safehttp.Options{}) },
	})
	r.Register("agui", agent.Kind{
		About:   "Is run with the conversation by AG-UI; its events become messages (docs/agents-agui.md)",
		Secrets: []string{"headers"},
		Fields:  agent.AGUIFields,
		Check:   agent.CheckAGUI,
		Make:    func(row ledger.Agent) (hub.Agent, error) { return agent.NewAGUI(row.Config, safehttp.Options{}, log) },
	})
}
