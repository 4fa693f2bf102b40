package webchat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// replace shows other pieces in the place of those that the entry had.
func (s *store) replace(e *entry, pieces []*piece) {
	s.revoke(e)
	e.Pieces = pieces
	s.allow(e)
}

// edit shows the text in place of the entry that handle names. The host of
// protocol 1.0 never learns our handles: one that is not ours names the latest
// answer to the same message, and keeps naming it. What can't be found is added.
func (s *store) edit(id, handle, replies, text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return "", err
	}
	e := c.named(handle)
	if e == nil && !strings.HasPrefix(handle, s.epoch+"-") {
		e = c.latest(replies)
	}
	pieces := []*piece{{Kind: kindText, Text: text}}
	if e == nil {
		e = &entry{Kind: kindMessage, Pieces: pieces, Edited: true, replies: replies, alias: handle}
		s.add(c, e)
		return e.ID, nil
	}
	if e.ID != handle {
		e.alias = handle
	}
	s.replace(e, pieces)
	e.Kind, e.Edited, e.Growing = kindMessage, true, false
	s.changed(c, e)
	return e.ID, nil
}

// named finds the host's entry by our id or by its alias.
func (c *conversation) named(handle string) *entry {
	if e := c.byID[handle]; e != nil && e.Client == "" {
		return e
	}
	for _, e := range slices.Backward(c.entries) {
		if e.alias == handle && e.Client == "" {
			return e
		}
	}
	return nil
}

// latest finds the newest text that answers the message and has no alias yet.
func (c *conversation) latest(replies string) *entry {
	for _, e := range slices.Backward(c.entries) {
		if e.Client == "" && e.alone(kindText) != nil && e.alias == "" && e.replies == replies {
			return e
		}
	}
	return nil
}

// interim finds what e is the next word of: the host's newest message, if both
// are a transcript of the same speech and that one is not final.
func (c *conversation) interim(e *entry) *entry {
	next := e.alone(kindTranscript)
	for _, old := range slices.Backward(c.entries) {
		if next == nil || old.Client != "" {
			continue
		}
		if t := old.alone(kindTranscript); t != nil && t.precedes(next) {
			return old
		}
		return nil
	}
	return nil
}

// remove leaves nothing of what handle names but its place.
func (s *store) remove(id, handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.convs[id]
	if c == nil {
		return fmt.Errorf("message %q is not kept here", handle)
	}
	e := c.named(handle)
	if e == nil {
		return fmt.Errorf("message %q is not kept here", handle)
	}
	s.replace(e, nil)
	e.Kind, e.Edited, e.Growing = kindDeleted, false, false
	s.changed(c, e)
	return nil
}

// grow shows a draft in the place of what was there of it. What was answered
// stays answered.
func (s *store) grow(id, replies string, d sdk.Draft, pieces []*piece) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return "", err
	}
	s.settleDrafts(c, d.ID)
	for _, e := range slices.Backward(c.entries) {
		if e.draft == d.ID {
			for i := range min(len(pieces), len(e.Pieces)) {
				pieces[i].answered(e.Pieces[i])
			}
			s.replace(e, pieces)
			e.Growing = !d.Final
			s.changed(c, e)
			return e.ID, nil
		}
	}
	e := &entry{Kind: kindMessage, Pieces: pieces, Growing: !d.Final, draft: d.ID, replies: replies}
	s.add(c, e)
	return e.ID, nil
}

// settleDrafts ends what looks as if it grew, but for one: a host that died has
// forgotten it.
func (s *store) settleDrafts(c *conversation, but string) {
	for _, e := range c.entries {
		if e.Growing && e.draft != but {
			e.Growing = false
			s.changed(c, e)
		}
	}
}
