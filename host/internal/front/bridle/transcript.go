package bridle

import (
	"context"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// maxTranscript is how many messages a transcript shows: the newest.
const maxTranscript = 500

// transcript is what was said in one conversation.
type transcript struct {
	Channel  string `json:"channel"`
	Messages []line `json:"messages"`
}

// line is a message of a transcript.
type line struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
	TS   int64  `json:"ts"`
}

// read reads the newest messages of a conversation, newest first.
func (f *Front) read(ctx context.Context, conversation string, n int) ([]ledger.Entry, error) {
	return f.Store.Before(ctx, ledger.Scope{Channel: f.key(), Conversation: &conversation}, 0, n)
}

func (f *Front) key() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channel.Key
}

// transcript reads what a user may see of a conversation, oldest first.
func (f *Front) transcript(ctx context.Context, conversation string) ([]line, error) {
	cleared, err := f.Store.ClearedUpTo(ctx, f.key(), conversation)
	if err != nil {
		return nil, err
	}
	entries, err := f.read(ctx, conversation, maxTranscript)
	if err != nil {
		return nil, err
	}
	lines := []line{}
	for _, e := range entries {
		if e.ID <= cleared {
			break
		}
		if front.Shown(e) {
			lines = append(lines, line{e.ID.String(), role(e.Direction), e.Text, e.ID.Time().UnixMilli()})
		}
	}
	slices.Reverse(lines)
	return lines, nil
}

func role(d ledger.Direction) string {
	if d == ledger.In {
		return string(message.RoleUser)
	}
	return "assistant"
}

// clear does not show what was said until now any more.
func (f *Front) clear(ctx context.Context, conversation string) error {
	newest, err := f.read(ctx, conversation, 1)
	if err != nil || len(newest) == 0 {
		return err
	}
	return f.Store.Clear(ctx, f.key(), conversation, newest[0].ID)
}
