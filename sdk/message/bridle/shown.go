package bridle

import (
	"maps"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Shown is a message as a socket carries it, which always has text and parts:
// what From makes of it, in today's form, and without what came beside it.
func Shown(m *message.Message) (text string, parts []Part, losses []message.Loss) {
	bare := *m
	bare.Meta = maps.Clone(m.Meta)
	delete(bare.Meta, kept)
	out, losses := From(&bare)
	if text = m.Text; out.Text != nil {
		text = *out.Text
	}
	if parts = out.Parts; len(parts) == 0 {
		parts = []Part{Text(text)}
	}
	return text, parts, losses
}
