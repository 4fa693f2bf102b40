package hosttest

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// Setup is what a test may change before its host starts. Zero values are the
// program's own, but for Typing and the time that Bridge gives for a register frame
// or in silence, which are long.
type Setup struct {
	Dir    string                // the data directory; "" = a new one
	Agents map[string]hub.Agent  // beside those that are rows
	Kinds  map[string]agent.Kind // of rows, beside echo

	Typing time.Duration // an hour unless changed: no test sees it by chance
	Grace  time.Duration // for an adapter to come back after a restart
	Ack    time.Duration // an adapter's time to acknowledge
	TTL    time.Duration // of what is queued
	Retry  time.Duration // of agents that are away
	Rate   int           // frames a second of a channel

	Bridge bridge.Options
	Store  sqlite.Options
	Steady *SteadyClock     // of the hub
	Now    func() time.Time // of the gate

	// Whole adds what messages need not: the front end of AG-UI, agents that dial in,
	// plugins, the operator's account, sealed secrets, the log of frames, and the
	// services that index, forget and clean up.
	Whole   bool
	Plugins func() ([]config.Plugin, error) // reads plugins.yaml; nil = there is none

	Ledger      func(hub.Ledger) hub.Ledger   // around the store, as the hub sees it
	Gate        func(bridge.Gate) bridge.Gate // around the gate of adapters
	API         func(*Host, *api.Options)     // what else the API works on
	SmallBuffer bool                          // the host's sockets hold little
}

// WithAgents names agents that are no rows.
func WithAgents(named map[string]hub.Agent) func(*Setup) {
	return func(s *Setup) {
		for name, a := range named {
			s.Agents[name] = a
		}
	}
}
