package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// contentOf is the message that a frame carries. What is wrong with it is told
// strictly: an agent's author is there to mend it. A refusal is a *wire.Error.
func contentOf(f *agentwire.FromAgent) (message.Message, error) {
	parts, err := message.ParseParts(f.Parts)
	if err != nil {
		return message.Message{}, wire.Refuse(wire.CodeWrongType, "%s", err.Error())
	}
	for i, p := range parts {
		for name := range p.LocalFiles() {
			return message.Message{}, wire.Refuse(wire.CodeWrongType, "parts[%d].%s: found a file of the host's machine, expected an http or https url", i, name)
		}
	}
	content := message.Content{Text: f.Text, Parts: parts}
	switch {
	case f.Card != nil:
		if f.Text != nil && *f.Text != "" && len(parts) == 0 {
			content.Parts = append(content.Parts, message.NewText(*f.Text))
		}
		content.Parts = append(content.Parts, message.NewCard(f.Card))
	case f.Buttons != nil:
		text := ""
		if f.Text != nil {
			text = *f.Text
		}
		content.Text = nil // it is that of the buttons
		content.Parts = append(content.Parts, message.NewButtons(text, f.Buttons))
	}
	m, err := content.Message(message.RoleAgent)
	if err != nil {
		return m, wire.Refuse(wire.CodeMissingField, "text: absent, expected a string, or parts")
	}
	if found := message.Validate(m.Parts, message.HostLimits()); len(found) > 0 {
		return m, wire.Refuse(found.Code(), "%s", found.Error())
	}
	m.Parts = message.Number(m.Parts)
	if m.Text == "" && len(m.Parts) > 0 {
		m.Text = render.Text(&m)
	}
	if err := f.Metadata.CheckGiven(); err != nil {
		return m, err
	}
	for name, value := range f.Metadata {
		if m.Meta == nil {
			m.Meta = message.Meta{}
		}
		m.Meta[name] = value
	}
	return m, nil
}

// message is contentOf, with what the frame does to an earlier message of the
// channel.
func (d *Desk) message(ctx context.Context, row ledger.Channel, f *agentwire.FromAgent) (message.Message, error) {
	m, err := contentOf(f)
	if err != nil || f.Update == nil {
		return m, err
	}
	id, handle := "", f.Update.PreviewHandle
	if f.Update.MessageID != "" {
		e, err := d.earlier(ctx, row, f.Update.MessageID)
		if err != nil {
			return m, err
		}
		if id = e.ID.String(); handle == "" {
			handle = packed.EditHandle(&e)
		}
	}
	m.Meta = m.Meta.With(message.MetaEdits, id).With(message.MetaPreviewHandle, handle)
	return m, nil
}

// earlier finds a message of the channel by the agent's own id or the host's.
func (d *Desk) earlier(ctx context.Context, row ledger.Channel, name string) (ledger.Entry, error) {
	d.mu.Lock()
	id := d.sent.find(name)
	d.mu.Unlock()
	unknown := wire.Refuse(wire.CodeNotSupported, "update.message_id: found %.40q, expected the id of a message of this channel", name)
	if id == 0 {
		var err error
		if id, err = ledger.ParseMessageID(name); err != nil {
			return ledger.Entry{}, unknown
		}
	}
	e, err := d.host.Store.Message(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (e.Channel != row.Key || e.Direction != ledger.Out) {
		return e, unknown
	}
	return e, err
}

// errand sends what belongs to no turn, and says what became of it.
func (d *Desk) errand(ctx context.Context, f *agentwire.FromAgent) {
	id, err := d.speak(ctx, f)
	d.answer(f, id, err)
}

// speak sends to a conversation that is routed to this agent.
func (d *Desk) speak(ctx context.Context, f *agentwire.FromAgent) (ledger.MessageID, error) {
	if f.Type == agentwire.TypeStream || f.Type == agentwire.TypeTransfer {
		return 0, wire.Refuse(wire.CodeNotSupported, "turn_id: absent, expected that of an open turn: %s belongs to one", f.Type)
	}
	row, err := d.host.Store.Channel(ctx, f.Channel)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return 0, err
	}
	who := ""
	if err == nil {
		if who, err = d.host.Out.AgentOf(ctx, row, *f.ConversationID); err != nil {
			return 0, err
		}
	}
	if who != d.row.Name && row.Agent != d.row.Name || !row.Enabled {
		return 0, wire.Refuse(wire.CodeNotSupported, "channel: found %.80q, expected one that is routed to this agent", f.Channel)
	}
	if f.Type == agentwire.TypeTyping {
		return 0, d.host.Out.Typing(ctx, row, *f.ConversationID, f.On == nil || *f.On)
	}
	return d.sendOwn(ctx, row, *f.ConversationID, f)
}

// sendOwn sends what nobody waits for.
func (d *Desk) sendOwn(ctx context.Context, row ledger.Channel, conversation string, f *agentwire.FromAgent) (ledger.MessageID, error) {
	m, err := d.message(ctx, row, f)
	if err != nil {
		return 0, err
	}
	out := hub.Outgoing{Conversation: conversation, Message: m, Agent: d.row.Name}
	if f.ReplyTo != "" {
		if out.ReplyTo, err = ledger.ParseMessageID(f.ReplyTo); err != nil {
			return 0, wire.Refuse(wire.CodeWrongType, "reply_to: %s", err.Error())
		}
	}
	sent, err := d.host.Out.Send(ctx, row, out)
	if err != nil {
		return 0, fmt.Errorf("send to %s: %w", row.Name, err)
	}
	return sent.ID, nil
}
