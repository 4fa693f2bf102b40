package hub

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// outgoing is one message on its way out.
type outgoing struct {
	message message.Message
	agent   string // who speaks; "" = the host or an operator
	apart   bool   // it leaves a stream that is open as it is
	chosen  string // whom the message hands the conversation over to; "" = nobody

	notes  []render.Note
	parcel Parcel
	lane   *lane  // reserved for it; nil = none
	draft  *draft // whose beginning it is; nil = none's

	ready time.Time // when it could be sent; zero = with its id, as nearly always
}

// prepare plans the message for a view and makes its row, in state sent or failed.
func (c *Channel) prepare(o *outgoing, v wire.View, routing wire.Routing, conv *conversation, a *Attachment) ledger.Row {
	planned := c.plan(o, v, routing)
	o.notes = planned.Notes
	o.parcel = Parcel{Routing: routing, Frames: planned.Frames, conv: conv, planned: a, out: o}
	row := ledger.Row{
		Direction: ledger.Out, State: ledger.Sent, Text: o.message.Text, Parts: message.AppendParts(nil, o.message.Parts),
		Origin: ledger.Origin{SessionKey: routing.SessionKey, ReplyCtx: routing.ReplyCtx, Agent: o.agent}.Append(nil), Offers: planned.Offers,
	}
	if o.message.Status == message.StatusError { // what was said of it before it failed
		row.Status = message.StatusError
	}
	if row.Text == "" && len(o.message.Parts) > 0 {
		row.Text = c.hub.inWords(&o.message)
	}
	if planned.TooLarge {
		row.State, row.Reason = ledger.Failed, ledger.ReasonFrameTooLarge
	}
	if len(planned.Notes) > 0 {
		row.Notes = marshal(planned.Notes)
	}
	if len(o.message.Meta) > 0 {
		row.Meta = marshal(o.message.Meta)
	}
	return row
}

// plan makes the frames for a view.
func (c *Channel) plan(o *outgoing, v wire.View, routing wire.Routing) render.Planned {
	room := wire.MaxFrame - routing.Overhead()
	if v.Protocol != wire.V10 {
		room -= longestID
	}
	return render.Plan(render.Input{Message: c.hub.addressed(&o.message, linkTTL), View: v, Act: render.ActOf(&o.message), Room: room})
}

// longestID is what the id of a frame may take, such as that of the 9,999th of
// one message.
var longestID = wire.IDOverhead(ledger.MessageID(0).String() + "/9999")

// identify gives the frames the message's id, as protocol 1.1 wants it.
func (p *Parcel) identify() {
	if p.planned == nil || p.planned.view.Protocol == wire.V10 {
		return
	}
	id := p.ID.String()
	for i := range p.Frames {
		switch f := &p.Frames[i]; {
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

// offers remembers what a message offers that is about to be committed, so
// that the very next frame may answer it.
func (c *Channel) offers(conv *conversation, o *outgoing) {
	offer := render.OfferOf(&o.message)
	ch := c.lock()
	defer ch.unlock()
	conv.offer = offer
}
