package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// spoken is a Reply that notes what it is told, in order: "typing", "~text" of a
// stream, "text" of a message, with the types of its other parts in brackets.
type spoken struct {
	mu       sync.Mutex
	lines    []string
	messages []message.Message
	shown    chan string // gets what is streamed, if there is room; nil = not wanted
}

var _ hub.Reply = (*spoken)(nil)

func (s *spoken) Send(ctx context.Context, m message.Message) (ledger.MessageID, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := m.Text
	for _, p := range m.Parts {
		if p.Type != message.TypeText {
			line += "[" + p.Type + "]"
		}
	}
	s.lines, s.messages = append(s.lines, line), append(s.messages, m)
	return ledger.MessageID(len(s.messages)), nil
}

func (s *spoken) Last(ctx context.Context, m message.Message, stored func(ledger.MessageID, error)) error {
	id, err := s.Send(ctx, m)
	if err == nil && stored != nil {
		stored(id, nil)
	}
	return err
}

func (s *spoken) Transfer(_ context.Context, agent, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, "transfer "+agent)
	return nil
}

func (s *spoken) Stream(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, "~"+text)
	select {
	case s.shown <- text:
	default:
	}
}

func (s *spoken) Typing(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, map[bool]string{true: "typing", false: "typed"}[on])
}

func (s *spoken) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "|")
}

func (s *spoken) want(t *testing.T, want string) {
	t.Helper()
	if got := s.all(); got != want {
		t.Errorf("said %s\nwant %s", got, want)
	}
}

// asked is a turn for an agent.
func asked(text string) hub.Turn {
	m := message.Text(text)
	m.ID, m.Role = fmt.Sprintf("%013d", 7), message.RoleUser
	return hub.Turn{ID: 7, Channel: "chat", Conversation: "room", UserID: "u", UserName: "User", Message: m, Caps: allCaps}
}
