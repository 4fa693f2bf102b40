package hub

import (
	"encoding/json"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// prepare makes the message's frames for who would take it, and its row, in state
// sent or failed.
func (c *Channel) prepare(o *outgoing, l *outlook, routing wire.Routing) ledger.Row {
	planned := c.render(&o.message, l.view, routing)
	o.notes = planned.Notes
	o.parcel = Parcel{Routing: routing, Frames: planned.Frames, Message: &o.message, View: l.a.number()}
	row := ledger.Row{
		Direction: ledger.Out, State: ledger.Sent, Text: o.message.Text, Parts: message.AppendParts(nil, o.message.Parts),
		Origin: packed.AppendOrigin(nil, ledger.Origin{SessionKey: routing.SessionKey, ReplyCtx: string(routing.ReplyCtx), Agent: o.agent}), Offers: planned.Offers,
	}
	if o.message.Status == message.StatusError { // what was said of it before it failed
		row.Status = ledger.StatusError
	}
	if row.Text == "" && len(o.message.Parts) > 0 {
		row.Text = c.hub.inWords(&o.message)
	}
	if planned.TooLarge {
		row.State, row.Reason = ledger.Failed, ledger.ReasonFrameTooLarge
		o.parcel.View = 0 // it has no frames for anybody: who keeps it must not take it for planned
	}
	row.Notes = notesOf(planned.Notes)
	if len(o.message.Meta) > 0 {
		row.Meta = marshal(o.message.Meta)
	}
	o.parcel.Size = len(row.Text) + len(row.Parts) + len(row.Meta) + len(row.Origin)
	return row
}

// notesOf are the notes of a row.
func notesOf(notes []render.Note) []byte {
	if len(notes) == 0 {
		return nil
	}
	return marshal(notes)
}

// stored makes what was stored to go out ready again, for who would take it now.
func (c *Channel) stored(e *ledger.Entry, l *outlook) (*outgoing, ledger.Row) {
	o := &outgoing{message: restore(*e), agent: e.Origin.Agent}
	row := c.prepare(o, l, wire.Routing{SessionKey: e.Origin.SessionKey, ConversationID: e.Conversation, ReplyCtx: wire.Raw(e.Origin.ReplyCtx)})
	row.ID, o.parcel.ID, o.parcel.ReplyTo = e.ID, e.ID, e.ReplyTo
	return o, row
}

// render makes the message's frames for a view.
func (c *Channel) render(m *message.Message, v wire.View, routing wire.Routing) render.Planned {
	room := wire.MaxFrame - routing.Overhead()
	if v.Protocol != wire.V10 {
		room -= longestID
	}
	return render.Plan(render.Input{Message: c.hub.addressed(m, linkTTL), View: v, Act: render.ActOf(m), Room: room})
}

// longestID is what the id of a frame may take, such as that of the 9,999th of
// one message, and what is said of one that goes on after a refusal, or answers nobody.
var longestID = wire.IDOverhead(ledger.MessageID(0).String()+"/9999") + wire.ResumedOverhead + wire.UnsolicitedOverhead

// identify gives the frames the message's id, and says whether it answers somebody, as
// protocol 1.1 wants it.
func (p *Parcel) identify(v wire.View) {
	if v.Protocol == wire.V10 {
		return
	}
	id := p.ID.String()
	for i := range p.Frames {
		f := &p.Frames[i]
		f.Unsolicited = p.ReplyTo == 0 && f.Type != wire.TypeUpdateMessage && !isOfAnother(f)
		switch {
		case isOfAnother(f):
		case i == 0:
			f.MessageID = id
		default:
			f.MessageID = id + "/" + strconv.Itoa(i+1)
		}
	}
}

// isOfAnother reports the frames whose message_id is that of an earlier message.
func isOfAnother(f *wire.Frame) bool {
	return f.Type == wire.TypeDeleteMessage || f.Type == wire.TypeSendReaction
}

// marshal encodes what can't fail: our own structs of strings and valid JSON.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("hub: " + err.Error())
	}
	return b
}
