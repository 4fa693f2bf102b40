package main

import (
	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	agentbridle "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// registerAgents names the kinds of agents. url is where others reach the host.
func registerAgents(r *agent.Roster, url string, sockets *agent.Sockets, bridles *agentbridle.Agents) {
	r.Register("echo", agent.Kind{
		About: "Answers what it is told; built in",
		Make:  func(store.Agent) (hub.Agent, error) { return &agent.Echo{Assets: url + "/assets/"}, nil },
	})
	r.Register(agent.SocketKind, sockets.Kind())
	r.Register(agentbridle.Kind, bridles.Kind())
}
