package hub

import "sync"

// DefaultMaxTurns is how many turns an agent has at once, unless it is Limited.
const DefaultMaxTurns = 64

// Limited is implemented by an agent that says how many turns it may have at once.
type Limited interface {
	// MaxTurns is at least 1. It does not block.
	MaxTurns() int
}

// maxTurns is how many turns the agent may have at once.
func (h *Hub) maxTurns(name string) int {
	agent, _ := h.Agents.Agent(name)
	if l, ok := agent.(Limited); ok {
		return l.MaxTurns()
	}
	return DefaultMaxTurns
}

// places are those of one agent: each turn that runs has one, so that an agent
// that hangs takes none of another's. Who finds none stands in line, without a
// goroutine.
type places struct {
	mu    sync.Mutex // guards what follows; may be taken with a channel's
	taken int
	line  []*standing // first come, first served
}

// standing is a conversation that stands in line for its next turn. It counts
// as long as it is the conversation's line.
type standing struct {
	c     *Channel
	conv  *conversation
	agent *AgentTally
}

// take takes one of most places of the agent, or puts the conversation in line.
func (a *AgentTally) take(most int, c *Channel, conv *conversation) *standing {
	p := &a.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken < most && len(p.line) == 0 {
		p.taken++
		return nil
	}
	s := &standing{c, conv, a}
	p.line = append(p.line, s)
	return s
}

// yield puts a conversation that has a place at the end of the line, and gives
// its place to the first; nil = nobody stands there.
func (a *AgentTally) yield(c *Channel, conv *conversation) (last, first *standing) {
	p := &a.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) == 0 {
		return nil, nil
	}
	last = &standing{c, conv, a}
	p.line = append(p.line, last)
	return last, p.pop()
}

// next gives a place to who is first in line, if one of most is free.
func (a *AgentTally) next(most, left int) *standing {
	p := &a.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= left
	if p.taken >= most || len(p.line) == 0 {
		return nil
	}
	p.taken++
	return p.pop()
}

func (p *places) pop() *standing {
	first := p.line[0]
	p.line[0] = nil
	if p.line = p.line[1:]; len(p.line) == 0 {
		p.line = nil // the room that a crowd took
	}
	return first
}

// leave gives a place back, and returns who stood first in line and has it now; nil =
// nobody.
func (h *Hub) leave(a *AgentTally) *standing {
	first := a.next(h.maxTurns(a.name), 1)
	if first != nil {
		h.admit(a)
	}
	return first
}

// admit gives the agent's free places to those who stand in line for one.
func (h *Hub) admit(a *AgentTally) {
	most := h.maxTurns(a.name)
	for s := a.next(most, 0); s != nil; s = a.next(most, 0) {
		h.spawn(func() { h.runFrom(s) })
	}
}

// runFrom runs the turns of who has a place, and then of whoever gets it.
func (h *Hub) runFrom(s *standing) {
	for s != nil {
		if s.enter() {
			s = s.c.runOwn(s.conv, s.agent)
		} else {
			s = h.leave(s.agent)
		}
	}
}

// enter lets a conversation that has its place run its turns; false if it stands in
// line no more, since it was stopped or goes to another agent.
func (s *standing) enter() bool {
	ch := s.c.lock()
	defer ch.unlock()
	if s.conv.line != s {
		return false
	}
	ch.turns.step(s.conv)
	s.conv.running = true
	return true
}

// stand notes that the conversation stands in line.
func (t *turns) stand(conv *conversation, s *standing) {
	conv.line = s
	if t.inLine == nil {
		t.inLine = map[*conversation]struct{}{}
	}
	t.inLine[conv] = struct{}{}
}

// step takes the conversation out of the line.
func (t *turns) step(conv *conversation) {
	conv.line = nil
	delete(t.inLine, conv)
}

// restand lets conversations go on that stand in line for an agent that is not
// theirs any more.
func (t *turns) restand() {
	for conv := range t.inLine {
		if t.agentName(conv) != conv.line.agent.name {
			t.step(conv)
			t.runWaiting(conv)
		}
	}
}
