package hub

import (
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// isAside reports the frames that say something about an earlier message. They
// are kept, and nobody answers them.
func isAside(t wire.Type) bool {
	return t == wire.TypeMessageEdit || t == wire.TypeMessageDelete || t == wire.TypeReaction
}

// concern finds the message that the frame is about, and the conversation that
// it belongs to: that of the message, if the frame names none.
func (f *inbound) concern(in *wire.Inbound, key string) (string, *wire.Error) {
	c := f.a.channel
	e, err := c.hub.Store.ByPlatformID(c.hub.ctx, c.tail.Channel, in.MessageID)
	if errors.Is(err, ledger.ErrNotFound) {
		return key, nil
	}
	if err != nil {
		c.hub.Log.Error("message not read", "channel", c.name(), "error", err)
		return "", refusal()
	}
	f.of = &e
	if key == "" {
		key = e.Conversation
	}
	return key, nil
}

// aside makes the row of an edit, a deletion or a reaction: what it does is in
// its metadata.
func (f *inbound) aside(in *wire.Inbound) {
	id := ""
	if f.of != nil {
		id = f.of.ID.String()
	}
	var meta message.Meta
	switch in.Type {
	case wire.TypeMessageEdit:
		meta = meta.With(message.MetaEdits, id)
	case wire.TypeMessageDelete:
		meta = meta.With(message.MetaDeletes, id)
	default:
		f.row.Text = in.Later.Emoji
		meta = meta.With(message.MetaReactsTo, id).With(message.MetaReaction, in.Later.Emoji)
		if in.Later.Remove {
			meta[message.MetaRemoved] = []byte("true")
		}
	}
	f.row.Meta = marshal(meta.With(message.MetaPlatformID, in.MessageID))
}
