package render

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// everything is an adapter that can show all there is.
var everything = wire.View{Protocol: wire.V11, Caps: wire.CapsV11, Profile: wire.Profile{Markdown: "full"}}

var update = flag.Bool("update", false, "write the golden files anew")

// profiles are far ends as they are found in the world.
var profiles = []struct {
	name string
	view wire.View
}{
	{"text only", wire.View{Caps: wire.CapText}},
	{"text+buttons", wire.View{Caps: wire.CapText | wire.CapButtons}},
	{"IRC", wire.View{Caps: wire.CapText | wire.CapTyping, Profile: wire.Profile{MaxText: 400, Markdown: "none"}}},
	{"Telegram-like", wire.View{Caps: wire.CapText | wire.CapButtons | wire.CapImage | wire.CapFile | wire.CapTyping | wire.CapUpdateMessage,
		Profile: wire.Profile{MaxText: 4096, Markdown: "basic", MaxButtons: 100}}},
	{"Slack-like", wire.View{Caps: wire.CapText | wire.CapCard | wire.CapButtons | wire.CapImage | wire.CapFile | wire.CapUpdateMessage,
		Profile: wire.Profile{MaxText: 3000, Markdown: "basic", MaxButtons: 25}}},
	{"1.1 without parts", wire.View{Protocol: wire.V11, Caps: wire.CapsV11 &^ wire.CapParts, Profile: wire.Profile{Markdown: "full"}}},
	{"1.1 everything", everything},
}

// goldenParts are the parts that sdk/message is tested with, and some more that
// tell the ladders apart.
func goldenParts(t *testing.T) []message.Part {
	t.Helper()
	raw, err := os.ReadFile("../../../sdk/message/testdata/parts.json")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := message.ParseParts(raw)
	if err != nil {
		t.Fatal(err)
	}
	return append(parts,
		message.NewMarkdown("# Title\n\n* one\n* [two](https://example.org)\n\n| a | b |\n|---|---|\n| 1 | 22 |\n\n```go\nx := 1\n```"),
		message.NewForm(message.UIPart{UIID: "size", Components: []message.UIComponent{
			{Type: message.UIHeading, Text: "Your order"}, {Type: message.UIRadio, Name: "size", Label: "Which size?",
				Options: []message.UIOption{{Value: "s", Label: "Small"}, {Value: "l", Label: "Large"}}},
		}}),
		message.NewCard(&wire.Card{Header: &wire.Header{Title: "Menu"}, Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: "Pick *one*"}, {Type: wire.ElementActions, Buttons: yesNo},
		}}),
		message.NewButtons("Sure?", yesNo),
		message.NewImage(wire.Image{URL: "https://example.org/a.png", Caption: "A raft"}),
	)
}

// What a user sees of each type of part on each far end: testdata/profiles.golden.
func TestProfiles(t *testing.T) {
	var b strings.Builder
	for _, part := range goldenParts(t) {
		fmt.Fprintf(&b, "=== %s\n%s\n", part.Type, part.Raw())
		shown := map[string]string{}
		for _, p := range profiles {
			m := message.New(part)
			planned := Plan(Input{Message: &m, View: p.view, Room: ample})
			text := showFrames(t, planned)
			if same, ok := shown[text]; ok {
				text = "as " + same + "\n"
			} else {
				shown[text] = p.name
			}
			fmt.Fprintf(&b, "--- %s\n%s", p.name, text)
		}
	}
	const file = "testdata/profiles.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Errorf("differs from %s (go test -update writes it anew; read the difference):\n%s", file, b.String())
	}
}

// showFrames shows frames as a person would see them.
func showFrames(t *testing.T, p Planned) string {
	t.Helper()
	var b strings.Builder
	for _, f := range p.Frames {
		var all map[string]any
		if err := json.Unmarshal(f.Append(nil, wire.Routing{}), &all); err != nil {
			t.Fatal(err)
		}
		for _, routing := range []string{"type", "session_key", "conversation_id", "reply_ctx"} {
			delete(all, routing)
		}
		text, isText := all["text"].(string)
		delete(all, "text")
		fmt.Fprintf(&b, "[%s]", f.Type)
		if isText {
			b.WriteString(" " + strings.ReplaceAll(text, "\n", "\n    "))
		}
		if len(all) > 0 {
			b.WriteString(" " + asJSON(all))
		}
		b.WriteByte('\n')
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "  (%s → %s: %s)\n", n.From, n.To, n.Reason)
	}
	if b.Len() == 0 {
		return "(nothing)\n"
	}
	return b.String()
}

// Every part leaves something to see or a note that says why not, on every far
// end, and a note never says what is not so.
func TestNothingIsLost(t *testing.T) {
	for _, part := range goldenParts(t) {
		for _, p := range profiles {
			m := message.New(part)
			planned := Plan(Input{Message: &m, View: p.view, Room: ample})
			if len(planned.Frames) == 0 && len(planned.Notes) == 0 {
				t.Errorf("%s on %s: neither a frame nor a note", part.Type, p.name)
			}
			for _, n := range planned.Notes {
				if (n.To == "none") != (len(planned.Frames) == 0) || n.Reason == "" {
					t.Errorf("%s on %s: %d frames, but %+v", part.Type, p.name, len(planned.Frames), n)
				}
			}
		}
	}
}
