package hub

import (
	"maps"
	"slices"
)

// Roster knows the agents of a host. It may change while the host runs. It is
// asked for every message, so it must not wait.
type Roster interface {
	// Agent finds an agent. One that can't answer now is found nevertheless, and
	// its Handle returns ErrAway.
	Agent(name string) (Agent, bool)
	// Names lists the agents, sorted. AgentNone is not among them.
	Names() []string
}

// Fixed is a roster that does not change.
type Fixed map[string]Agent

var _ Roster = Fixed(nil)

// Agent implements Roster.
func (f Fixed) Agent(name string) (Agent, bool) {
	a, ok := f[name]
	return a, ok
}

// Names implements Roster.
func (f Fixed) Names() []string { return slices.Sorted(maps.Keys(f)) }

// AgentNames lists who may be routed to, sorted, AgentNone among them.
func (h *Hub) AgentNames() []string {
	names := append([]string{AgentNone}, h.Agents.Names()...)
	slices.Sort(names)
	return names
}

// mayChoose reports whether a conversation may choose the agent.
func (h *Hub) mayChoose(p *policy, name string) bool {
	if len(p.Agents) > 0 {
		return slices.Contains(p.Agents, name)
	}
	_, ok := h.Agents.Agent(name)
	return ok || name == AgentNone
}
