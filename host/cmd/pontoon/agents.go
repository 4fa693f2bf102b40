package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	agentbridle "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/backup"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/connlog"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// agents are the kinds of agents with what serves their connections.
type agents struct {
	sockets *agent.Sockets
	bridles *agentbridle.Agents
}

// openAgents names the kinds of agents and makes those of the database. url is
// where others reach the host.
func openAgents(ctx context.Context, c config.Serve, st *sqlite.Store, h *hub.Hub, gate *auth.Gate, failures *netguard.Failures, r *agent.Roster, url string, met *connlog.Log, log *slog.Logger) (*agents, error) {
	adopt := adopter{store: st, roster: r, hub: h, log: log}
	a := &agents{
		sockets: agent.NewSockets(agent.SocketOptions{Store: st, Door: gate, Out: h, Hub: h, Failures: failures, Log: log, Note: met.Note, Frames: book(c)}),
		bridles: agentbridle.New(agentbridle.Options{Store: st, Door: gate, Out: h, Board: h, HostKey: c.BridleAPIKey, Adopt: adopt.bridle, Failures: failures, Log: log}),
	}
	r.Register("echo", agent.Kind{
		About: "Answers what it is told; built in",
		Make:  func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{Assets: url + "/assets/"}, nil },
	})
	r.Register(agent.SocketKind, a.sockets.Kind())
	r.Register(agentbridle.Kind, a.bridles.Kind())
	registerDialed(r, log)
	if err := st.SealAll(ctx, backup.Automatic(c.Data)); err != nil {
		a.close()
		return nil, err
	}
	if err := r.Load(ctx, st); err != nil {
		a.close()
		return nil, fmt.Errorf("load agents: %w", err)
	}
	return a, nil
}

func (a *agents) close() {
	a.sockets.Close()
	a.bridles.Close()
}

// maxAdopted bounds the agents that are made because one came: a name that
// changes with every connection must not fill the database.
const maxAdopted = 256

// adopter makes rows of agents that nobody made before they came.
type adopter struct {
	store  *sqlite.Store
	roster *agent.Roster
	hub    *hub.Hub
	log    *slog.Logger

	mu   sync.Mutex // held while one is made
	made int
}

// bridle makes an agent of kind bridle, which has the host's key and none of its own.
func (a *adopter) bridle(ctx context.Context, name string) error {
	if err := config.CheckAgentName(name); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made >= maxAdopted {
		return fmt.Errorf("%d agents came that nobody had made, which is the limit until the host starts again", maxAdopted)
	}
	row, err := a.store.CreateAgent(ctx, ledger.Agent{ID: uuid.NewString(), Name: name, Kind: agentbridle.Kind, Enabled: true}, nil,
		ledger.Change{Actor: "PONTOON_BRIDLE_API_KEY", Action: "agent.create", Detail: []byte(`{"kind":"bridle"}`)})
	if err != nil {
		return err
	}
	a.made++
	a.roster.Set(row)
	a.hub.AgentChanged(name)
	a.log.Info("agent made, since it came with the host's key", "agent", name, "kind", row.Kind, "id", row.ID)
	return nil
}
