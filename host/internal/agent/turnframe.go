package agent

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// turnFrame is the turn as agents outside the host see it.
func turnFrame(ctx context.Context, t *hub.Turn) (*agentwire.Turn, error) {
	e, err := t.Envelope(ctx)
	if err != nil {
		return nil, err
	}
	return &agentwire.Turn{
		TurnID: t.ID.String(), Repeated: t.Repeated, Channel: t.Channel, ConversationID: t.Conversation, UserID: t.UserID, UserName: t.UserName,
		Message: e, Capabilities: t.Caps.Names(), HistoryCursor: t.Cursor(),
	}, nil
}
