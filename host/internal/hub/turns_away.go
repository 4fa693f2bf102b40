package hub

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ErrAway is returned by an agent that can't be reached. The turn waits, in its
// place, until the agent is back or the channel's time to live is over.
var ErrAway = errors.New("the agent is away")

// ErrLeft is ErrAway of an agent that had been given the turn already: it gets
// the turn again, marked repeated.
var ErrLeft = fmt.Errorf("%w: it left before its turn was over", ErrAway)

// ErrLate is the error of a turn that its agent did not answer in time, as often as
// it may be asked. Such an agent is slow, and not away: nobody else's turn waits.
var ErrLate = errors.New("the agent did not answer in time")

// ErrTurnRefused is the error of a turn that its agent does not take, and would not take
// if it was asked again.
var ErrTurnRefused = errors.New("the agent refused the turn")

// Presence is implemented by an agent that knows whether it can be asked now. It
// calls AgentBack and AgentGone when that changes. Of any other agent the hub
// learns it by ErrAway, and asks again now and then.
type Presence interface {
	// Away says since when the agent can't be asked. It does not block.
	Away() (since time.Time, away bool)
}

// AwayRetry is how often an agent without Presence that is away is asked again.
const AwayRetry = 30 * time.Second

// absences are the agents that are known to be away.
type absences struct {
	any     atomic.Int32  // names; spares each turn the mutex
	returns atomic.Uint64 // counts agents that came back

	mu    sync.Mutex // guards what follows
	names map[string]*absence
}

type absence struct {
	since time.Time
	asked time.Time // last, by the steady clock
}

// note remembers that an agent is away, unless one came back since returns was
// read. news says that it was not known before; ok = false, that it may be back.
func (a *absences) note(name string, returns uint64) (since time.Time, news, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.returns.Load() != returns {
		return time.Time{}, false, false
	}
	known := a.names[name]
	if known == nil {
		now := time.Now()
		known = &absence{since: now, asked: now}
		if a.names == nil {
			a.names = map[string]*absence{}
		}
		a.names[name] = known
		a.any.Add(1)
		news = true
	}
	return known.since, news, true
}

// forget is note for one that is back; it reports whether it was away.
func (a *absences) forget(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returns.Add(1)
	if a.names[name] == nil {
		return false
	}
	delete(a.names, name)
	a.any.Add(-1)
	return true
}

// known reports whether an agent is known to be away.
func (a *absences) known(name string) bool {
	_, known := a.since(name)
	return known
}

// since is when an agent was first found to be away; false = it is not known to be.
func (a *absences) since(name string) (time.Time, bool) {
	if a.any.Load() == 0 {
		return time.Time{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.names[name]
	if known == nil {
		return time.Time{}, false
	}
	return known.since, true
}

// due lists who is to be asked again, and counts them as asked.
func (a *absences) due(now time.Time, every time.Duration) (names []string) {
	if a.any.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, known := range a.names {
		if now.Sub(known.asked) >= every {
			known.asked = now
			names = append(names, name)
		}
	}
	return names
}

// AgentGone says that an agent can't be asked any more. Neither it nor AgentBack
// may be called with a mutex held that the agent's methods take.
func (h *Hub) AgentGone(name string) { h.gone(name, h.absences.returns.Load()) }

// gone is AgentGone unless an agent came back since returns was read; then it is
// false.
func (h *Hub) gone(name string, returns uint64) bool {
	since, news, ok := h.absences.note(name, returns)
	if news {
		h.Events.publish(Event{Type: EventAgentDetached, Agent: name, Since: since})
	}
	return ok
}

// AgentBack says that an agent can be asked again: what waits for it is handed
// over.
func (h *Hub) AgentBack(name string) {
	h.absences.forget(name)
	h.Events.publish(Event{Type: EventAgentAttached, Agent: name, Since: time.Now()})
	for _, c := range h.all() {
		ch := c.lock()
		for _, conv := range ch.conversations {
			if conv.told == name {
				conv.told = ""
			}
		}
		ch.turns.wake(math.MaxInt, func(conv *conversation) bool { return conv.absent == name })
		ch.unlock()
	}
}

// AgentChanged says that the roster's agent of that name is another one now, or
// none.
func (h *Hub) AgentChanged(name string) {
	agent, ok := h.Agents.Agent(name)
	if p, says := agent.(Presence); says {
		_, away := p.Away()
		ok = !away
	}
	switch {
	case !ok:
		h.AgentGone(name)
		h.cancelTurns(name, ErrAgentGone)
	case h.absences.known(name): // another one may have been away
		h.AgentBack(name)
	default: // a turn that the one before leaves unfinished goes on with this one
		h.absences.returns.Add(1)
	}
	for _, c := range h.all() {
		c.reroute()
	}
	h.admit(h.agents.of(name)) // it may have more turns at once now
}

// AgentAway reports whether an agent can't be asked, and since when; zero = it can, or
// that is not known, as nobody has asked it.
func (h *Hub) AgentAway(name string) (since time.Time, away bool) {
	if name == AgentNone {
		return time.Time{}, false
	}
	agent, ok := h.Agents.Agent(name)
	if p, says := agent.(Presence); says {
		if since, away = p.Away(); !away {
			since = time.Time{} // it was away, or came, then
		}
		return since, away
	}
	since, known := h.absences.since(name)
	return since, known || !ok
}

// WaitForAgents is how many messages of a channel wait for agents that are away.
func (h *Hub) WaitForAgents(channel int64) int {
	c := h.known(channel)
	if c == nil {
		return 0
	}
	return c.waitFor("")
}

// WaitFor is how many messages wait for an agent that is away.
func (h *Hub) WaitFor(agent string) (n int) {
	for _, c := range h.all() {
		n += c.waitFor(agent)
	}
	return n
}

// waitFor is WaitFor of one channel; "" = for all agents.
func (c *Channel) waitFor(agent string) (n int) {
	ch := c.lock()
	defer ch.unlock()
	for conv := range ch.turns.absent {
		if agent == "" || conv.absent == agent {
			n += len(conv.waiting)
		}
	}
	return n
}

// answers notes that an agent answered that was away.
func (h *Hub) answers(name string) {
	if !h.absences.known(name) {
		return
	}
	agent, _ := h.Agents.Agent(name)
	if _, says := agent.(Presence); !says {
		h.AgentBack(name)
	}
}

// askAgain hands one turn over to each agent that is away and does not say itself
// when it is back.
func (h *Hub) askAgain(now time.Time) {
	for _, name := range h.absences.due(now, h.AwayRetry) {
		agent, ok := h.Agents.Agent(name)
		if !ok {
			continue
		}
		if p, says := agent.(Presence); says {
			if _, away := p.Away(); !away {
				h.AgentBack(name) // it was not said
			}
			continue
		}
		for _, c := range h.all() {
			ch := c.lock()
			n := ch.turns.wake(1, func(conv *conversation) bool { return conv.absent == name })
			ch.unlock()
			if n > 0 {
				break
			}
		}
	}
}
