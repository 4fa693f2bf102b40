package hub

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Follower is a Port that follows what becomes of each message that it gave to
// Say or Receive. Its methods must not block.
type Follower interface {
	// Stored tells that the message is on disk, under id, before any of its
	// answers; after Settled. again: it was there before, and nobody looks at it
	// once more; the id is 0.
	Stored(ref string, id ledger.MessageID, again bool)
	// Over tells that nobody works on the message any more: whatever answers
	// there are were offered. why is that of a message that failed; "" = it did
	// not. A message of an earlier attachment may be among them. The channel's
	// mutex is held.
	Over(id ledger.MessageID, why ledger.Reason)
}

// Say is Receive for a front end, which has the message as the host knows it:
// its text, parts and metadata count, not those of the frame. Whether it may
// refer to the attachments that it names, the front end has looked.
func (a *Attachment) Say(in *wire.Inbound, m message.Message) {
	in.Type, in.Text = wire.TypeMessage, m.Text
	a.receive(in, &said{m, time.Now(), ""})
}

// said is a message that Say was given, and when.
type said struct {
	message.Message
	at time.Time
	to string // the agent that it is for; "" = whoever the conversation is routed to
}

// admitSaid takes what Say was given.
func (f *inbound) admitSaid() *wire.Error {
	if werr := f.said.Meta.Check(); werr != nil {
		return werr
	}
	if len(f.said.Parts) == 0 {
		f.asked.Meta = maps.Clone(f.said.Meta)
		return nil
	}
	if werr := f.admit(message.Content{Text: &f.said.Text, Parts: f.said.Parts}); werr != nil {
		return werr
	}
	for name, raw := range f.said.Meta {
		if f.asked.Meta == nil {
			f.asked.Meta = message.Meta{}
		}
		f.asked.Meta[name] = raw
	}
	return nil
}

// follow tells the port that the message is stored, if it wants to know.
func (f *inbound) follow(again bool) {
	p, ok := f.a.port.(Follower)
	if !ok {
		return
	}
	id := f.row.ID
	if again {
		id = 0
	}
	p.Stored(f.ref, id, again)
}

// over tells whoever is attached that a turn has ended.
func (ch *locked) over(id ledger.MessageID, why ledger.Reason) {
	if ch.attached == nil {
		return
	}
	if p, ok := ch.attached.port.(Follower); ok {
		p.Over(id, why)
	}
}

// stamped is the metadata of an answer to a message that a run of a front end
// brought: which run it was, and how long the answer took.
func stamped(answer, asked message.Meta, since time.Time) message.Meta {
	run, ok := asked[message.MetaRunID]
	if !ok {
		return answer
	}
	out := make(message.Meta, len(answer)+2)
	maps.Copy(out, answer) // the agent may keep its own
	out[message.MetaRunID] = run
	out[message.MetaLatency] = json.RawMessage(strconv.FormatInt(max(0, time.Since(since).Milliseconds()), 10))
	return out
}

// Shown is the message of a durable parcel as Seen shows it; nil of a lossy one.
func (h *Hub) Shown(p *Parcel) *message.Message {
	if p.Message == nil {
		return nil
	}
	m := h.seen(*p.Message)
	m.ID = p.ID.String()
	return m
}

// Seen is a stored message as a client may see it: with urls that can be read
// for a while, and no paths of this machine.
func (h *Hub) Seen(e ledger.Entry) *message.Message {
	m := restore(e)
	m.Meta = packed.Metadata(&e)
	return h.seen(m)
}

func (h *Hub) seen(m message.Message) *message.Message {
	out := *h.addressed(&m, 0)
	out.Parts = slices.Clone(out.Parts)
	for i, p := range out.Parts {
		out.Parts[i] = p.WithoutLocalFiles()
	}
	return &out
}
