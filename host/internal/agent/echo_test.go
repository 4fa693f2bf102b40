package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

var echo = &Echo{Assets: "http://host/assets/", Pause: time.Microsecond}

const allCaps = wire.CapText | wire.CapCard | wire.CapButtons | wire.CapImage | wire.CapFile | wire.CapTyping | wire.CapUpdateMessage

func turn(text string) *hub.Turn {
	return &hub.Turn{Caps: allCaps, Message: message.Message{Role: message.RoleUser, Text: text}}
}

// Every command shows its kind of frame to an adapter that can show it, and
// something in text to one that can't.
func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		said  string
		frame wire.Type
		text  string // contained in what the plainest adapter gets
	}{
		{"hello", wire.TypeSend, "echo: hello"},
		{" two  words ", wire.TypeSend, "echo:  two  words "},
		{"", wire.TypeSend, "echo: "},
		{"!unknown x", wire.TypeSend, "echo: !unknown x"},
		{"say !card", wire.TypeSend, "echo: say !card"},
		{"!card", wire.TypeSendCard, "*Every element*"},
		{" !CARD please", wire.TypeSendCard, "*Every element*"},
		{"!buttons", wire.TypeSendButtons, "Pick one:\n[Yes] [No] [Help]"},
		{"!image", wire.TypeSendImage, "http://host/assets/echo.png"},
		{"!file", wire.TypeSendFile, "http://host/assets/echo.txt"},
		{"!form", wire.TypeSend, "1. Your name"},
		{"!caps", wire.TypeSend, "caps: text,card,buttons,image,file,typing,update_message"},
	} {
		t.Run(c.said, func(t *testing.T) {
			answers, ok := echo.Answer(turn(c.said))
			if !ok || len(answers) != 1 {
				t.Fatalf("got %v, %v", answers, ok)
			}
			m := answers[0]
			if m.Role != message.RoleAgent || m.Status != message.StatusCompleted {
				t.Errorf("got role %s, status %s", m.Role, m.Status)
			}
			p := render.Plan(render.Input{Message: &m, View: wire.View{Caps: allCaps}, Room: wire.MaxFrame - 1000})
			if len(p.Frames) != 1 || p.Frames[0].Type != c.frame {
				t.Errorf("planned as %+v, want %s", p.Frames, c.frame)
			}
			if got := render.Text(&m); !strings.Contains(got, c.text) {
				t.Errorf("got %q, want %q in it", got, c.text)
			}
		})
	}
}

func TestCardShowsEveryElement(t *testing.T) {
	seen := map[wire.ElementType]bool{}
	for _, e := range card().Elements {
		seen[e.Type] = true
	}
	if len(seen) != 6 {
		t.Errorf("found %v", seen)
	}
	if err := card().Validate(); err != nil {
		t.Error(err)
	}
}

func TestActionIsNoCommand(t *testing.T) {
	pressed := turn("!card")
	pressed.Message.Meta = message.Meta{message.MetaAction: json.RawMessage(`"!card"`)}
	answers, ok := echo.Answer(pressed)
	if want := []message.Message{message.Text("echo: !card")}; !ok || !reflect.DeepEqual(answers, want) {
		t.Errorf("got %+v, %v", answers, ok)
	}
}

func TestUpdate(t *testing.T) {
	for said, handle := range map[string]string{"!update": "echo-update", "!update  h 1 ": "h 1"} {
		answers, ok := echo.Answer(turn(said))
		if !ok || len(answers) != 2 {
			t.Fatalf("%s: %v, %v", said, answers, ok)
		}
		for i, m := range answers {
			_, edits := m.Meta[message.MetaEdits]
			if edits != (i == 1) || m.Meta.String(message.MetaPreviewHandle) != handle {
				t.Errorf("%s: answer %d has metadata %q", said, i, m.Meta)
			}
		}
		if answers[0].Text == answers[1].Text {
			t.Errorf("%s: the change changes nothing", said)
		}
	}
}

// said records what an agent does with its Reply.
type said struct {
	log  []string
	fail error
}

func (s *said) Send(_ context.Context, m message.Message) (ledger.MessageID, error) {
	s.log = append(s.log, "send "+m.Text)
	return 1, s.fail
}
func (s *said) Transfer(_ context.Context, agent, _ string) error {
	s.log = append(s.log, "transfer "+agent)
	return s.fail
}
func (s *said) Last(_ context.Context, m message.Message, _ func(ledger.MessageID, error)) error {
	s.log = append(s.log, "last "+m.Text)
	return s.fail
}
func (s *said) Stream(text string) { s.log = append(s.log, "stream "+text) }
func (s *said) Typing(on bool) {
	s.log = append(s.log, map[bool]string{true: "typing", false: "no typing"}[on])
}

func TestHandle(t *testing.T) {
	for text, want := range map[string][]string{
		"!typing":        {"typing", "send echo: that was typing"},
		"!Typing  x":     {"typing", "send echo: that was typing"},
		"!turn a  b":     {"last echo: a  b"},
		"!stream":        {"stream echo: one", "stream echo: one two", "stream echo: one two three", "stream echo: one two three four", "stream echo: one two three four five", "send echo: one two three four five"},
		" !stream a  b ": {"stream echo: a", "stream echo: a b", "send echo: a b"},
	} {
		if answers, ok := echo.Answer(turn(text)); ok {
			t.Errorf("%s: answered at once with %v", text, answers)
		}
		var s said
		if err := echo.Handle(t.Context(), *turn(text), &s); err != nil || !reflect.DeepEqual(s.log, want) {
			t.Errorf("%s: %q, %v, want %q", text, s.log, err, want)
		}
	}
}

func TestHandleFails(t *testing.T) {
	broken := errors.New("broken")
	stopped := errors.New("stopped")
	for _, text := range []string{"!typing", "!stream"} {
		if err := echo.Handle(t.Context(), *turn(text), &said{fail: broken}); !errors.Is(err, broken) {
			t.Errorf("%s: the failed send is %v", text, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		var s said
		if err := (&Echo{}).Handle(ctx, *turn(text), &s); !errors.Is(err, stopped) { // it pauses for a second
			t.Errorf("%s: stopped, it returns %v", text, err)
		}
		for _, line := range s.log {
			if strings.HasPrefix(line, "send") {
				t.Errorf("%s: stopped, it still sent %q", text, line)
			}
		}
	}
}

func TestAssets(t *testing.T) {
	for _, name := range []string{"echo.png", "echo.txt"} {
		b, err := fs.ReadFile(Assets(), name)
		if err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}
