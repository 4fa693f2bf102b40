package webchat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// edit replaces the text of the entry that handle names. The host of protocol
// 1.0 never learns our handles: one that is not ours names the latest answer to
// the same message, and keeps naming it. What can't be found is added.
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
	if e == nil {
		e = &entry{Kind: kindText, Text: text, Edited: true, replies: replies, alias: handle}
		s.add(c, e)
		return e.ID, nil
	}
	if e.ID != handle {
		e.alias = handle
	}
	e.Kind, e.Text, e.Edited, e.Growing = kindText, text, true, false
	e.Card, e.Buttons, e.Chosen, e.Form, e.Values = nil, nil, nil, nil, nil
	s.changed(c, e)
	return e.ID, nil
}

// named finds the host's entry by our id or by its alias.
func (c *conversation) named(handle string) *entry {
	if e := c.byID[handle]; e != nil && e.Client == "" && e.Media == nil {
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
		if e.Client == "" && e.Kind == kindText && e.alias == "" && e.replies == replies {
			return e
		}
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
	e := c.byID[handle]
	if e == nil || e.Client != "" {
		e = c.named(handle)
	}
	if e == nil {
		return fmt.Errorf("message %q is not kept here", handle)
	}
	if e.grant != nil {
		delete(s.files, e.grant.token)
	}
	e.Kind, e.Text, e.Edited, e.Growing, e.grant, e.Media = kindDeleted, "", false, false, nil, nil
	e.Card, e.Buttons, e.Chosen, e.Form, e.Values = nil, nil, nil, nil, nil
	s.changed(c, e)
	return nil
}

// grow shows a draft in the place of what was there of it.
func (s *store) grow(id, replies string, d sdk.Draft) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.open(id)
	if err != nil {
		return "", err
	}
	s.settleDrafts(c, d.ID)
	for _, e := range slices.Backward(c.entries) {
		if e.draft == d.ID {
			e.Text, e.Growing = d.Text, !d.Final
			s.changed(c, e)
			return e.ID, nil
		}
	}
	e := &entry{Kind: kindText, Text: d.Text, Growing: !d.Final, draft: d.ID, replies: replies}
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
