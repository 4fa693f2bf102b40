package sqlite

import (
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// walk follows the back pointers of a channel or of one conversation, newest
// message first.
type walk struct {
	ledger.Scope
	keys map[int64]string // of the conversations that it met
}

// begin is where a page starts: behind the last message of the page before, or
// at the end of the chain; head is the channel's. 0 = there is nothing.
func (w *walk) begin(r *reader, head, before int64) (int64, error) {
	switch {
	case before == 0 && w.Conversation == nil:
		return head, nil
	case before == 0:
		c, _, err := r.conversation(w.Channel, *w.Conversation)
		return c.Head, err
	}
	m, found, err := r.row(before)
	if err != nil {
		return 0, err
	}
	if !found || m.Channel != w.Channel {
		return 0, ledger.ErrNotFound
	}
	if w.Conversation != nil {
		key, err := w.key(r, m.Conversation)
		if err != nil {
			return 0, err
		}
		if key != *w.Conversation {
			return 0, ledger.ErrNotFound
		}
	}
	return w.older(m), nil
}

// older is the message before m; 0 = none.
func (w *walk) older(m db.Entry) int64 {
	if w.Conversation == nil {
		return m.PrevChannel
	}
	return m.Prev
}

// step reads the message id, and where to go from there. wanted is false if it
// is not of the scope, or gone: then nothing older is left.
func (w *walk) step(r *reader, id int64) (m db.Entry, next int64, wanted bool, err error) {
	m, found, err := r.row(id)
	if err != nil || !found {
		return m, 0, false, err
	}
	if w.Direction != nil && m.Direction != int64(*w.Direction) {
		return m, w.older(m), false, nil
	}
	m.ConversationKey, err = w.key(r, m.Conversation)
	return m, w.older(m), err == nil, err
}

func (w *walk) key(r *reader, conversation int64) (string, error) {
	key, known := w.keys[conversation]
	if known {
		return key, nil
	}
	key, err := r.conversationKey(conversation)
	if err == nil {
		w.keys[conversation] = key
	}
	return key, err
}
