// Package agent holds the agents that are built in, one file each.
package agent

import (
	"context"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Echo answers what it is told, so that a first run answers. Its ! commands
// send every kind of frame through the normal path.
type Echo struct {
	// Assets is the url below which the host serves the echo's image and file.
	Assets string
	// Pause is how long !typing and each step of !stream take; 0 = one second.
	Pause time.Duration
}

var (
	_ hub.Agent = (*Echo)(nil)
	_ hub.Pure  = (*Echo)(nil)
)

// Answer implements hub.Pure for all but !typing, !stream and !turn.
func (e *Echo) Answer(t *hub.Turn) ([]message.Message, bool) {
	name, rest, _ := strings.Cut(strings.TrimSpace(t.Message.Text), " ")
	if t.Message.Meta[message.MetaAction] != nil || !strings.HasPrefix(name, "!") { // an action is never a command of ours
		return []message.Message{message.Text("echo: " + t.Message.Text)}, true
	}
	switch name = strings.ToLower(name); name {
	case "!typing", "!stream", "!turn":
		return nil, false
	}
	return e.show(t, name, rest)
}

// show is apart from Answer, whose stack it would make large for every message.
//
//go:noinline
func (e *Echo) show(t *hub.Turn, name, rest string) ([]message.Message, bool) {
	switch name {
	case "!card":
		return one(message.New(message.NewCard(card())))
	case "!buttons":
		return one(message.New(message.NewButtons("Pick one:", [][]wire.Button{
			{{Text: "Yes", Value: "yes", Style: "primary"}, {Text: "No", Value: "no"}},
			{{Text: "Help", Value: "cmd:/help"}},
		})))
	case "!image":
		return one(message.New(message.NewImage(wire.Image{URL: e.Assets + "echo.png", Caption: "A pontoon bridge"})))
	case "!file":
		return one(message.New(message.NewFile(wire.File{URL: e.Assets + "echo.txt", Filename: "echo.txt", Caption: "A small file"})))
	case "!update":
		return update(strings.TrimSpace(rest)), true
	case "!form":
		return one(message.New(message.NewForm(form())))
	case "!caps":
		return one(message.Text("caps: " + t.Caps.String()))
	}
	return one(message.Text("echo: " + t.Message.Text))
}

func one(m message.Message) ([]message.Message, bool) { return []message.Message{m}, true }

// Handle implements hub.Agent for the commands that take their time.
func (e *Echo) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(t.Message.Text), " ")
	switch strings.ToLower(name) {
	case "!turn": // answered as by an agent that has to ask somebody
		return r.Last(ctx, message.Text("echo: "+rest), nil)
	case "!typing":
		r.Typing(true)
		if err := e.pause(ctx); err != nil {
			return err
		}
		_, err := r.Send(ctx, message.Text("echo: that was typing"))
		return err
	}
	if rest = strings.TrimSpace(rest); rest == "" {
		rest = "one two three four five"
	}
	text := "echo:"
	for _, word := range strings.Fields(rest) {
		text += " " + word
		r.Stream(text)
		if err := e.pause(ctx); err != nil {
			return err
		}
	}
	_, err := r.Send(ctx, message.Text(text))
	return err
}

func (e *Echo) pause(ctx context.Context) error {
	d := e.Pause
	if d == 0 {
		d = time.Second
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// update answers with a message and its change. The handle is the user's, or
// one of our own: an adapter of protocol 1.0 has no way to give one.
func update(handle string) []message.Message {
	if handle == "" {
		handle = "echo-update"
	}
	first := message.Text("echo: first version")
	first.Meta = first.Meta.With(message.MetaPreviewHandle, handle)
	second := message.Text("echo: second version")
	second.Meta = second.Meta.With(message.MetaPreviewHandle, handle).With(message.MetaEdits, "")
	return []message.Message{first, second}
}

func card() *wire.Card {
	return &wire.Card{
		Header: &wire.Header{Title: "Every element", Color: "blue"},
		Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: "**Markdown** with a [link](https://example.org/)"},
			{Type: wire.ElementDivider},
			{Type: wire.ElementActions, Buttons: [][]wire.Button{{
				{Text: "Help", Value: "cmd:/help", Style: "primary"}, {Text: "Say no", Value: "no", Style: "danger"},
			}}},
			{Type: wire.ElementListItem, Text: "A list item", Button: &wire.Button{Text: "Open", Value: "open:1"}},
			{Type: wire.ElementSelect, Placeholder: "Choose a colour", InitValue: "red", CallbackPrefix: "colour:", Options: []wire.Option{
				{Text: "Red", Value: "red"}, {Text: "Blue", Value: "blue"},
			}},
			{Type: wire.ElementNote, Text: "A note"},
		},
	}
}

func form() message.UIPart {
	return message.UIPart{
		UIID: "echo-form",
		Components: []message.UIComponent{
			{Type: "heading", Text: "A form"},
			{Type: "input", Name: "name", Label: "Your name", Required: true},
			{Type: "select", Name: "colour", Label: "Colour", Options: []message.UIOption{{Value: "red", Label: "Red"}, {Value: "blue", Label: "Blue"}}},
		},
		Submit: &message.UISubmit{Label: "Send"},
	}
}
