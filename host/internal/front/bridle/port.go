package bridle

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// maxInline is how large a picture is sent inline; a larger one goes by address.
const maxInline = wire.MaxFrame / 2

// said is a message to browsers, and the answer of a call that waited.
type said struct {
	Type      string         `json:"type,omitempty"`
	Text      string         `json:"text"`
	Parts     []model.Part   `json:"parts,omitempty"`
	MessageID string         `json:"messageId"`
	TS        int64          `json:"ts"`
	Degraded  []message.Loss `json:"degraded,omitempty"` // what Bridle can't say, and what became of it
}

type typing struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"`
}

// Offer implements hub.Port: what is for a conversation goes to the browsers that
// show it. It is in the history already, or lossy.
func (f *Front) Offer(p hub.Parcel) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, q := f.browsers[p.Routing.ConversationID], f.ids[p.ReplyTo]
	if len(all) == 0 && (q == nil || q.answer == nil) {
		return true
	}
	name, data := "", any(nil)
	if p.Lossy() {
		name, data = passing(&p)
	} else if s := whole(&p, f.Hub.Shown(&p)); s != nil {
		name, data = s.Type, s
		if q != nil && p.ReplyTo != 0 {
			q.reply(reply{said: s})
		}
	}
	if name == "" || len(all) == 0 {
		return true
	}
	event, err := socketio.Event(name, data)
	if err != nil {
		f.Log.Error("event not made", "event", name, "error", err)
		return true
	}
	for b := range all {
		b.socket.Emit(event)
	}
	return true
}

// passing is what a lossy parcel says.
func passing(p *hub.Parcel) (name string, data any) {
	for i := range p.Frames {
		switch fr := &p.Frames[i]; fr.Type {
		case wire.TypeStartTyping:
			return "typing", typing{"typing", time.Now().UnixMilli()}
		case wire.TypeStream:
			return "stream", said{Type: "stream", Text: fr.Text, Parts: []model.Part{model.Text(fr.Text)}, MessageID: p.Key, TS: time.Now().UnixMilli()}
		}
	}
	return "", nil
}

// whole is a message as browsers are told it; nil of one that only does something
// to an earlier one, which Bridle can't show.
func whole(p *hub.Parcel, m *message.Message) *said {
	if m == nil {
		return nil
	}
	s := &said{Type: "message", MessageID: p.ID.String(), TS: p.ID.Time().UnixMilli()}
	switch render.ActOf(m).Kind {
	case render.ActDelete, render.ActReact:
		return nil
	case render.ActEndStream:
		s.Type = "stream_end"
	}
	for i, part := range m.Parts {
		if part.Address() != "" && len(message.TextField(part.Raw(), "data")) > maxInline {
			m.Parts[i] = part.Without("data")
		}
	}
	s.Text, s.Parts, s.Degraded = model.Shown(m)
	return s
}

// Settled implements hub.Port. What is stored, Stored says.
func (f *Front) Settled(ref string, err *wire.Error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.asked[ref]
	if q == nil {
		return
	}
	delete(f.asked, ref)
	r := refusal{codeBad, err.Message}
	switch err.Code {
	case wire.CodeStorageUnavailable:
		r.code = codeStorage
	case wire.CodeRateLimited:
		r.code = codeRate
	case wire.CodeTooLarge:
		r.code = codeTooLarge
	case wire.CodeInternal:
		r.code = codeInternal
	}
	q.settle(r)
	if q.browser != nil {
		q.browser.fail(r.code, r.why)
	}
}

// Stored implements hub.Follower.
func (f *Front) Stored(ref string, id ledger.MessageID, _ bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.asked[ref]
	if q == nil {
		return
	}
	delete(f.asked, ref)
	q.id = id
	f.ids[id] = q
	q.settle(nil)
	if q.away { // the message waits; whoever called does not
		q.reply(reply{said: absentAgent()})
	}
}

// Over implements hub.Follower. An answer that was not given by now may come all
// the same, if nothing failed.
func (f *Front) Over(id ledger.MessageID, why ledger.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.ids[id]
	if q == nil {
		return
	}
	switch why {
	case "":
	case ledger.ReasonRejected:
		r := refusal{codeForbidden, "the channel does not take messages of this user"}
		if q.reply(reply{err: r}); q.browser != nil {
			q.browser.fail(r.code, r.why)
		}
	default:
		q.reply(reply{})
	}
	if q.answer == nil || why != "" {
		delete(f.ids, id)
	}
}
