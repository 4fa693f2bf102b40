package render

import (
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Act is what a message does to an earlier one, or that it ends one that was
// streamed; the zero Act is none of it. It is read from the metadata, so that
// what waits in a queue is still known for what it is.
type Act struct {
	Kind   ActKind
	ID     string // the host's id of the earlier message; "" = not known
	Handle string // what the platform knows it by; "" = not known
	Emoji  string
	Remove bool // the reaction is taken back
}

// ActKind tells acts apart.
type ActKind uint8

// The acts.
const (
	ActNone ActKind = iota
	ActEdit
	ActDelete
	ActReact
	ActEndStream
)

// ActOf is what the message does.
func ActOf(m *message.Message) Act {
	if m.Meta == nil {
		return Act{}
	}
	a := Act{Handle: m.Meta.String(message.MetaPreviewHandle)}
	for _, k := range [...]struct {
		key  string
		kind ActKind
	}{{message.MetaEdits, ActEdit}, {message.MetaDeletes, ActDelete}, {message.MetaReactsTo, ActReact}} {
		if _, ok := m.Meta[k.key]; ok {
			a.Kind, a.ID = k.kind, m.Meta.String(k.key)
		}
	}
	switch _, streamed := m.Meta[message.MetaStreamed]; {
	case a.Kind == ActReact:
		a.Emoji = m.Meta.String(message.MetaReaction)
		_, a.Remove = m.Meta[message.MetaRemoved]
	case a.Kind == ActNone && streamed:
		a.Kind = ActEndStream
	}
	return a
}

// act plans a message that does something to an earlier one.
func (p *planner) act(a Act) {
	switch a.Kind {
	case ActEdit:
		p.edit(a)
	case ActDelete:
		frame := wire.Frame{Type: wire.TypeDeleteMessage, MessageID: a.ID, PreviewHandle: a.Handle}
		p.only(wire.CapDeleteMessage, "delete_message", frame, a.ID+a.Handle != "")
	case ActReact:
		frame := wire.Frame{Type: wire.TypeSendReaction, MessageID: firstOf(a.Handle, a.ID), Emoji: a.Emoji, Remove: a.Remove}
		p.only(wire.CapReaction, "reaction", frame, frame.MessageID != "")
	case ActEndStream:
		if !p.View.Caps.Has(wire.CapStream) {
			p.content()
			return
		}
		p.Room -= len(`,"parts":[]`)
		p.content()
		p.endStream()
	default:
		p.content()
	}
}

// only sends the frame or nothing: no text stands for it.
func (p *planner) only(needs wire.Caps, name string, frame wire.Frame, known bool) {
	switch {
	case !p.View.Caps.Has(needs):
		p.note(name, "none", reasonNotEffective)
	case !known:
		p.note(name, "none", reasonNoHandle)
	case !p.fits(frame):
		p.note(name, "none", reasonTooLarge)
	default:
		p.add(frame)
	}
}

// endStream makes the first frame the end of the stream: it is the same text,
// now final. What comes first if that is no text stands behind an end of its own.
func (p *planner) endStream() {
	if len(p.out.Frames) > 0 {
		switch first := &p.out.Frames[0]; first.Type {
		case wire.TypeSend, wire.TypeSendParts:
			first.Type = wire.TypeStreamEnd
			return
		}
	}
	end := wire.Frame{Type: wire.TypeStreamEnd, Text: splitUpTo(1, p.Message.Text, p.View.Profile.MaxText, p.Room)[0], Plain: true}
	p.out.Frames = append([]wire.Frame{end}, p.out.Frames...)
}

// Stream is the frame that shows a text as far as it has come, without its end
// where the far end shows less at once. The far end must have CapStream.
func Stream(v wire.View, id, text string, room int) wire.Frame {
	f := wire.Frame{Type: wire.TypeStream, MessageID: id}
	room -= wire.IDOverhead(id) + len(`,"parts":[],"draft":1234567890`)
	if v.Caps.Has(wire.CapParts) {
		room = (room - len(`{"type":"text","text":"","id":"p1"}`)) / 2 // it is there twice
	}
	f.Text = splitUpTo(1, text, v.Profile.MaxText, room)[0]
	if v.Caps.Has(wire.CapParts) {
		f.Parts = message.AppendParts(nil, message.Alone(f.Text))
	}
	return f
}

// Draft is the frame that makes an earlier message show a text as far as it has
// come, likewise. The far end must have CapUpdateMessage.
func Draft(v wire.View, handle, text string, room int) wire.Frame {
	room -= len(`"preview_handle":,`) + wire.StringLen(handle)
	return wire.Frame{Type: wire.TypeUpdateMessage, PreviewHandle: handle, Text: splitUpTo(1, text, v.Profile.MaxText, max(room, minRoom))[0]}
}
