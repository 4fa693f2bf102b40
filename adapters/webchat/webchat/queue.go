package webchat

import (
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// refusal is why something that the user did was not taken. Retry is when it
// may be tried again; 0 = never.
type refusal struct {
	Reason string
	Retry  time.Duration
}

// act takes what the user did, for the courier to hand over. A repetition is
// nothing new: its entry is shown once more.
func (s *store) act(c *conversation, e *entry) *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.used = time.Now()
	if known := c.byID[e.Client]; known != nil {
		s.changed(c, known)
		return nil
	}
	if len(c.queue) >= s.bounds.queue || s.wait+e.size() > s.bounds.queued {
		return &refusal{"too many messages wait for the host", 2 * time.Second}
	}
	if !c.pace.Allow() {
		return &refusal{"too fast", time.Second}
	}
	ups, why := s.find(c.id, e.claims)
	if why == "" && e.of != nil {
		why = c.choose(e.of)
	}
	if why != "" {
		return &refusal{Reason: why}
	}
	s.claimUploads(e, ups)
	e.State = stateSending
	s.add(c, e)
	e.event.SessionKey = "webchat:" + c.id + ":" + c.id
	e.event.ConversationID, e.event.UserID, e.event.ReplyCtx = c.id, c.id, e.ID
	c.queue = append(c.queue, e)
	s.wait += e.size()
	if e.of != nil {
		s.touch(c, e.of.message)
	}
	s.wakeCourier()
	return nil
}

// size is about what e takes while it waits.
func (e *entry) size() int { return len(e.event.Text) + len(e.event.Action) + len(e.Text) + e.formSize }

// choose marks the button, if its message is still there. Buttons below a text
// are one question with one answer; a card's may be pressed again.
func (c *conversation) choose(p *press) (why string) {
	shown := c.byID[p.message].shown(p)
	switch {
	case shown == nil:
	case p.values != nil:
		if shown.Values != nil {
			return "this form is already sent"
		}
		shown.Values = p.values
	default:
		if _, answered := shown.Chosen[p.group]; answered && shown.Kind == kindButtons {
			return "this question is already answered"
		}
		if shown.Chosen == nil {
			shown.Chosen = map[int]int{}
		}
		shown.Chosen[p.group] = p.index
	}
	return ""
}

// touch shows the change of an entry, if it is still there.
func (s *store) touch(c *conversation, id string) {
	if e := c.byID[id]; e != nil {
		s.changed(c, e)
	}
}

func (s *store) wakeCourier() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// claim returns the conversations that have work and nobody at it. Each must be
// drained until head returns nil, or unclaimed.
func (s *store) claim() []*conversation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*conversation
	for _, c := range s.convs {
		if len(c.queue) > 0 && !c.draining {
			c.draining = true
			open = append(open, c)
		}
	}
	return open
}

// head is the oldest entry for the host; nil = none, and the claim has ended.
func (s *store) head(c *conversation) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.queue) == 0 {
		c.draining = false
		return nil
	}
	return c.queue[0]
}

// unclaim ends a claim with work left.
func (s *store) unclaim(c *conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.draining = false
}

// waits says that e is still under way after patience.
func (s *store) waits(c *conversation, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.State == stateSending {
		e.State = stateWaiting
		s.changed(c, e)
	}
}

// settle takes e from the queue with its final state.
func (s *store) settle(c *conversation, e *entry, what state, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.queue = c.queue[1:]
	s.wait -= e.size()
	e.State, e.Reason, e.event, e.formSize = what, reason, sdk.Event{}, 0
	for _, up := range e.uploads {
		up.waits--
	}
	if p := e.of; p != nil && what == stateFailed {
		if shown := c.byID[p.message].shown(p); shown != nil {
			delete(shown.Chosen, p.group)
			shown.Values = nil
			s.touch(c, p.message)
		}
	}
	s.changed(c, e)
}
