package hub

import (
	"maps"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// learn takes note whether the adapter says what it calls a message that it took. One that
// never said it, and does not say it of a draft's beginning, gets answers whole from then
// on, until it says it of any message. d is the draft whose message that is; nil = none's.
func (a *Attachment) learn(d *draft, handle string) {
	switch {
	case handle != "":
		a.named, a.handleless = true, false
	case d != nil && !d.ended:
		a.handleless = !a.named
	}
}

// sendInstead sends a last edit that the far end refused for good as a message of its own:
// that is what the ladder has below an edit. False: it is none, or was shown already. What
// is behind it has waited, since a last edit flies alone.
func (q *queue) sendInstead(f *flight, why string) bool {
	m, a := f.parcel.Message, q.attached
	if !isLastEdit(m) || f.parcel.Frames[0].Type != wire.TypeUpdateMessage {
		return false
	}
	if d := q.outbox.drafts[f.id]; d != nil && d.edited == f.parcel.Frames[0].Text {
		return false // the edit before it said the same: to send it anew would say it twice
	}
	o := &outgoing{message: *m}
	o.message.Meta = maps.Clone(m.Meta)
	delete(o.message.Meta, message.MetaPreviewHandle)
	row := q.c.prepare(o, &outlook{a: a, view: a.view}, f.parcel.Routing)
	if row.State != ledger.Sent || len(o.parcel.Frames) == 0 {
		return false
	}
	for i := range o.notes {
		if o.notes[i].From == string(wire.TypeUpdateMessage) {
			o.notes[i].Reason = "the far end refused the edit"
		}
	}
	delete(q.outbox.drafts, f.id) // nothing changes it any more
	p := o.parcel
	p.ID, p.ReplyTo, p.Late = f.id, f.parcel.ReplyTo, f.parcel.Late
	p.identify(a.view)
	q.aloft += p.Size - f.parcel.Size
	f.parcel = p
	f.Flight(f.id).Frame, f.held = 0, true
	q.change(change{conv: f.conv, to: ledger.Settlement{
		ID: f.id, State: ledger.Sent, Tracked: true, Tries: f.tries(), Notes: notesOf(o.notes),
		Content: &ledger.Content{Status: ledger.Status(o.message.Status), Text: row.Text, Parts: row.Parts, Meta: row.Meta, Offers: row.Offers},
		Life:    []ledger.Life{{What: "edit refused", Detail: why}, {What: "sent as a new message"}},
	}, then: func(err error) {
		switch {
		case q.flights[f.id] != f: // taken back: whoever comes next gets the new message
		case err != nil:
			q.finish(f, ledger.Failed, ledger.ReasonRejected, nil)
		default:
			f.held = false
			q.offerFrame(f)
			q.attached.port.Flush()
		}
	}})
	return true
}
