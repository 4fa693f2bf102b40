package agent

import (
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// turnFrame is the turn as agents outside the host see it.
func turnFrame(t *hub.Turn) *agentwire.Turn {
	return &agentwire.Turn{
		TurnID: t.ID.String(), Repeated: t.Repeated, Channel: t.Channel, ConversationID: t.Conversation, UserID: t.UserID, UserName: t.UserName,
		Message: t.Envelope(), Capabilities: t.Caps.Names(), HistoryCursor: t.Cursor(),
	}
}
