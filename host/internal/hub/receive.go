package hub

import (
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// inbound is a received frame on its way through the commit.
type inbound struct {
	a    *Attachment
	conv *conversation
	ref  string
	of   *ledger.Entry // the message that an edit, a deletion or a reaction concerns; nil = not known
	row  ledger.Row

	said *said // by a front end; nil = the frame says it

	passed  render.Offer // what a typed text could choose before it; see pass
	offered int          // which offer that was

	asked message.Message // by the user, with addresses as they are stored
	given Turn            // to an agent that answers at once
	unit  ledger.Unit
	told  func(ledger.Result) // done, made once
	sent  []outgoing          // answers in the same commit
	turn  *turnJob            // started after the commit; nil = none

	// Room for the one answer that there usually is, or for the turn.
	oneRow  [1]ledger.Row
	oneTurn turnJob
}

// inbounds are those that are over: they are most of what a message takes of the heap.
var inbounds sync.Pool

func newInbound() *inbound {
	if f, ok := inbounds.Get().(*inbound); ok {
		return f
	}
	f := new(inbound)
	f.told = f.done
	return f
}

// free lets another frame have f, to which nobody may refer any more.
func (f *inbound) free() {
	told := f.told
	*f = inbound{}
	f.told = told
	inbounds.Put(f)
}

// Receive takes a message or an action. It commits it, then answers it; the
// port's Settled is called once for each frame. A frame of an attachment that
// is not current any more doesn't count.
func (a *Attachment) Receive(in *wire.Inbound) { a.receive(in, nil) }

func (a *Attachment) receive(in *wire.Inbound, m *said) {
	c := a.channel
	f := newInbound()
	f.a, f.ref, f.said = a, in.MessageID, m
	key := in.ConversationID
	if key == "" {
		key = in.SessionKey
	}
	if isAside(in.Type) {
		var werr *wire.Error
		if key, werr = f.concern(in, key); werr != nil {
			a.port.Settled(in.MessageID, werr)
			return
		}
	}
	conv, err := c.hold(c.hub.ctx, key)
	if err != nil {
		c.hub.Log.Error("conversation not read", "channel", c.name(), "error", err)
		a.port.Settled(in.MessageID, refusal())
		return
	}
	f.conv = conv
	if werr := f.interpret(in); werr != nil {
		ch := c.lock()
		f.unpass()
		ch.release(conv)
		ch.unlock()
		a.port.Settled(in.MessageID, werr)
		return
	}
	f.unit.Conversation, f.unit.In, f.unit.Cursor = conv.Conversation, &f.row, in.Cursor
	if l, ok := a.port.(ledger.Leader); ok && c.hub.leading != nil {
		c.hub.leading.AppendBy(l, &f.unit, f.told)
	} else {
		c.hub.Store.Append(&f.unit, f.told)
	}
}

// refusal is what an adapter is told when the disk did not take its frame, or
// what belongs to it could not be read.
func refusal() *wire.Error {
	return &wire.Error{Code: wire.CodeStorageUnavailable, Message: "the message was not stored: send it again later"}
}
