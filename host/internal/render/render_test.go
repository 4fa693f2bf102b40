package render

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const ample = wire.MaxFrame - 200 // the room that an ordinary routing leaves

var (
	yesNo = [][]wire.Button{{{Text: "Yes", Value: "cmd:/confirm", Style: "primary"}, {Text: "No", Value: "cmd:/abort"}}}

	fullCard = &wire.Card{
		Header: &wire.Header{Title: "Title", Color: "blue"},
		Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: "**bold**"},
			{Type: wire.ElementDivider},
			{Type: wire.ElementActions, Buttons: [][]wire.Button{{{Text: "a", Value: "va"}, {Text: "b", Value: "vb"}}, {{Text: "c", Value: "vc"}}}},
			{Type: wire.ElementListItem, Text: "item", Button: &wire.Button{Text: "open", Value: "vo"}},
			{Type: wire.ElementListItem, Text: "bare item"},
			{Type: wire.ElementSelect, Placeholder: "colour", Options: []wire.Option{{Text: "red", Value: "r"}, {Text: "blue", Value: "b"}}, CallbackPrefix: "colour:"},
			{Type: wire.ElementMarkdown},
			{Type: wire.ElementNote, Text: "note"},
		},
	}
	fullCardText = "*Title*\n**bold**\n──────────\n[a] [b] [c]\nitem  →  [open]\nbare item\ncolour (options: red | blue)\nnote"
	fullCardRows = [][]wire.Button{
		{{Text: "a", Value: "va"}, {Text: "b", Value: "vb"}}, {{Text: "c", Value: "vc"}}, {{Text: "open", Value: "vo"}},
		{{Text: "red", Value: "colour:r"}, {Text: "blue", Value: "colour:b"}},
	}

	plainCard     = &wire.Card{Header: &wire.Header{Title: "Title"}, Elements: []wire.Element{{Type: wire.ElementMarkdown, Content: "text"}}}
	plainCardText = "*Title*\ntext"

	form = message.UIPart{UIID: "f", Components: []message.UIComponent{
		{Type: "heading", Text: "A form"},
		{Type: "input", Name: "name", Label: "Your name", Required: true},
		{Type: "select", Name: "colour", Options: []message.UIOption{{Value: "r", Label: "red"}, {Value: "blue"}}},
	}}
)

func send(text string) wire.Frame { return wire.Frame{Type: wire.TypeSend, Text: text} }

// rung is one way to show something; it needs a capability, or none.
type rung struct {
	needs wire.Caps
	to    string // what a note calls it
	frame wire.Frame
}

// Every kind of content against every set of the capabilities that matter: the
// first rung of its ladder that the set allows is what is sent, and anything
// but the first leaves a note.
func TestLadder(t *testing.T) {
	image := wire.Image{URL: "https://example.org/a.png", Caption: "caption"}
	file := wire.File{URL: "https://example.org/a.pdf", Filename: "a.pdf", Caption: "caption"}
	for _, k := range []struct {
		kind   string
		in     Input
		ladder []rung
		offers bool
	}{
		{"text", of(message.Text("text")), []rung{{0, "text", send("text")}}, false},
		{"text part", of(message.New(message.NewText("text"))), []rung{{0, "text", send("text")}}, false},
		{"card", of(message.New(message.NewCard(fullCard))), []rung{
			{wire.CapCard, "card", wire.Frame{Type: wire.TypeSendCard, Card: fullCard}},
			{wire.CapButtons, "buttons", wire.Frame{Type: wire.TypeSendButtons, Text: fullCardText, Buttons: fullCardRows}},
			{0, "text", send(fullCardText)},
		}, true},
		{"card", of(message.New(message.NewCard(plainCard))), []rung{ // no choices: buttons are no help
			{wire.CapCard, "card", wire.Frame{Type: wire.TypeSendCard, Card: plainCard}},
			{0, "text", send(plainCardText)},
		}, false},
		{"buttons", of(message.New(message.NewButtons("Pick one:", yesNo))), []rung{
			{wire.CapButtons, "buttons", wire.Frame{Type: wire.TypeSendButtons, Text: "Pick one:", Buttons: yesNo}},
			{0, "text", send("Pick one:\n[Yes] [No]")},
		}, true},
		{"image", of(message.New(message.NewImage(image))), []rung{
			{wire.CapImage, "image", wire.Frame{Type: wire.TypeSendImage, Image: &image}},
			{0, "text", send("caption\nhttps://example.org/a.png")},
		}, false},
		{"file", of(message.New(message.NewFile(file))), []rung{
			{wire.CapFile, "file", wire.Frame{Type: wire.TypeSendFile, File: &file}},
			{0, "text", send("caption\nhttps://example.org/a.pdf")},
		}, false},
		{"update_message", Input{Message: ptr(message.Text("new")), Act: Act{Kind: ActEdit, Handle: "h"}}, []rung{
			{wire.CapUpdateMessage, "update_message", wire.Frame{Type: wire.TypeUpdateMessage, PreviewHandle: "h", Text: "new"}},
			{0, "text", send("new")},
		}, false},
		{"ui", of(message.New(message.NewForm(form))), []rung{
			{1 << 31, "form", wire.Frame{}}, // no adapter of protocol 1.0 has it
			{0, "text", send("A form\n1. Your name *\n2. colour (red | blue)\n(Answer with one line each, such as: 1. …)")},
		}, true},
	} {
		for set := range 1 << 5 {
			caps := wire.CapText
			for i, c := range []wire.Caps{wire.CapCard, wire.CapButtons, wire.CapImage, wire.CapFile, wire.CapUpdateMessage} {
				if set&(1<<i) != 0 {
					caps |= c
				}
			}
			t.Run(k.kind+"/"+caps.String(), func(t *testing.T) {
				in := k.in
				in.View.Caps, in.Room = caps, ample
				at := slices.IndexFunc(k.ladder, func(r rung) bool { return caps.Has(r.needs) })
				want := Planned{Frames: []wire.Frame{k.ladder[at].frame}, Offers: k.offers}
				if at > 0 {
					want.Notes = []Note{{k.kind, k.ladder[at].to, reasonNotEffective}}
				}
				if got := Plan(in); !reflect.DeepEqual(got, want) {
					t.Errorf("got  %s\nwant %s", asJSON(got), asJSON(want))
				}
			})
		}
	}
}

func of(m message.Message) Input { return Input{Message: &m} }

func ptr[T any](v T) *T { return &v }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func part(t *testing.T, raw string) message.Part {
	t.Helper()
	var p message.Part
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// What else becomes of parts: the frames' types with their texts, and the notes.
func TestParts(t *testing.T) {
	all := wire.CapText | wire.CapCard | wire.CapButtons | wire.CapImage | wire.CapFile | wire.CapUpdateMessage
	for _, c := range []struct {
		name  string
		parts string
		caps  wire.Caps
		local bool
		want  string
	}{
		{"markdown", `{"type":"markdown","markdown":"**a**"}`, wire.CapText, false, "send(a) markdown→text(the far end shows no such markdown)"},
		{"order", `{"type":"text","text":"a"},{"type":"custom","payloadType":"bridge.buttons","data":{"text":"b","buttons":[[{"text":"c","value":"d"}]]}},{"type":"text","text":"e"}`,
			all, false, "send(a) send_buttons(b) send(e)"},
		{"unknown", `{"type":"hologram","x":1}`, all, false, "hologram→none(has no form in text)"},
		{"unknownBeside", `{"type":"hologram","x":1},{"type":"text","text":"a"}`, all, false, "send(a) hologram→none(has no form in text)"},
		{"malformed", `{"type":"text","text":1}`, all, false, "text→none(malformed part)"},
		{"malformedVision", `{"type":"vision","url":[]}`, all, false, "vision→none(malformed part)"},
		{"payload", `{"type":"custom","payloadType":"acme.chart","data":{}}`, all, false, "acme.chart→none(has no form in text)"},
		{"payloadUnnamed", `{"type":"custom"}`, all, false, "custom→none(has no form in text)"},
		{"payloadMistyped", `{"type":"custom","payloadType":1}`, all, false, "custom→none(malformed part)"},
		{"cardMistyped", `{"type":"custom","payloadType":"bridge.card","data":[]}`, all, false, "custom→none(malformed part)"},
		{"cardNull", `{"type":"custom","payloadType":"bridge.card","data":null}`, all, false, "custom→none(malformed part)"},
		{"cardEmpty", `{"type":"custom","payloadType":"bridge.card","data":{"elements":[]}}`, all, false, "custom→none(malformed part)"},
		{"cardAbsent", `{"type":"custom","payloadType":"bridge.card"}`, all, false, "custom→none(malformed part)"},
		{"cardWithoutText", `{"type":"custom","payloadType":"bridge.card","data":{"elements":[{"type":"note"}]}}`, wire.CapText, false, "card→none(capability not effective)"},
		{"cardElement", `{"type":"custom","payloadType":"bridge.card","data":{"elements":[{"type":"note","text":"a"},{"type":"hologram"}]}}`,
			wire.CapText, false, "send(a) card→none(element of an unknown type) card→text(capability not effective)"},
		{"cardElementSent", `{"type":"custom","payloadType":"bridge.card","data":{"elements":[{"type":"note","text":"a"},{"type":"hologram"}]}}`,
			all, false, "send_card() card→none(element of an unknown type)"},
		{"cardEmptyRows", `{"type":"custom","payloadType":"bridge.card","data":{"elements":[{"type":"actions","buttons":[[],[]]},{"type":"select","placeholder":"p"},{"type":"note","text":"a"}]}}`,
			wire.CapButtons, false, "send(p (options: )\na) card→text(capability not effective)"},
		{"buttonsMistyped", `{"type":"custom","payloadType":"bridge.buttons","data":{"buttons":"x"}}`, all, false, "custom→none(malformed part)"},
		{"buttonsNone", `{"type":"custom","payloadType":"bridge.buttons","data":{"text":"a"}}`, all, false, "send(a)"},
		{"buttonsEmptyRows", `{"type":"custom","payloadType":"bridge.buttons","data":{"text":"a","buttons":[[],[]]}}`, all, false, "send(a)"},
		{"buttonsNothing", `{"type":"custom","payloadType":"bridge.buttons","data":{"text":"","buttons":[[]]}}`, all, false, "custom→none(malformed part)"},
		{"buttonsWithoutText", `{"type":"custom","payloadType":"bridge.buttons","data":{"text":"","buttons":[[{"text":"a","value":"b"}]]}}`,
			wire.CapText, false, "send([a]) buttons→text(capability not effective)"},
		{"imageNoCaption", `{"type":"vision","kind":"output","url":"https://x"}`, wire.CapText, false, "send(https://x) image→text(capability not effective)"},
		{"imageAltText", `{"type":"vision","kind":"output","url":"https://x","altText":"alt"}`, wire.CapText, false, "send(alt\nhttps://x) image→text(capability not effective)"},
		{"imagePathLocal", `{"type":"vision","path":"/a.png"}`, all, true, "send_image()"},
		{"imagePathFar", `{"type":"vision","path":"/a.png","caption":"c"}`, all, false, "send(c) image→text(the far end can't reach it)"},
		{"imageNowhere", `{"type":"vision","data":"AAAA"}`, all, false, "image→none(the far end can't reach it)"},
		{"fileNoCaption", `{"type":"file","fileName":"a.pdf","url":"https://x"}`, wire.CapText, false, "send(a.pdf\nhttps://x) file→text(capability not effective)"},
		{"filePathLocal", `{"type":"file","fileName":"a.pdf","path":"/a.pdf"}`, all, true, "send_file()"},
		{"filePathFar", `{"type":"file","fileName":"a.pdf","path":"/secret/a.pdf"}`, all, false, "send(a.pdf) file→text(the far end can't reach it)"},
		{"fileNowhere", `{"type":"file"}`, all, false, "file→none(the far end can't reach it)"},
		{"formEmpty", `{"type":"ui","uiId":"f","components":[]}`, all, false, "ui→none(capability not effective)"},
		{"formOption", `{"type":"ui","components":[{"type":"checkbox-group","name":"n","options":[{"value":"v"},{"value":"w","label":"l"}]}]}`, all, false,
			"send(1. n (any of: v | l)) ui→text(capability not effective)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts, err := message.ParseParts([]byte("[" + c.parts + "]"))
			if err != nil {
				t.Fatal(err)
			}
			m := message.Message{Parts: parts}
			got := outline(Plan(Input{Message: &m, View: wire.View{Caps: c.caps, Local: c.local}, Room: ample}))
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// outline is a plan in one line.
func outline(p Planned) string {
	var out []string
	for _, f := range p.Frames {
		out = append(out, fmt.Sprintf("%s(%s)", f.Type, f.Text))
	}
	for _, n := range p.Notes {
		out = append(out, fmt.Sprintf("%s→%s(%s)", n.From, n.To, n.Reason))
	}
	if p.TooLarge {
		out = append(out, "too large")
	}
	return strings.Join(out, " ")
}

// Parts that show nothing leave the message's own text.
func TestTextBesideParts(t *testing.T) {
	m := message.Message{Text: "in words", Parts: []message.Part{part(t, `{"type":"hologram"}`)}}
	if got := outline(Plan(Input{Message: &m, Room: ample})); got != "send(in words) hologram→none(has no form in text)" {
		t.Error(got)
	}
}

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name   string
		m      message.Message
		caps   wire.Caps
		handle string
		max    int
		want   string
	}{
		{"ok", message.Text("a"), wire.CapUpdateMessage, "h", 0, "update_message(a)"},
		{"okEmpty", message.Text(""), wire.CapUpdateMessage, "h", 0, "update_message()"},
		{"okLong", message.Text("aaaa bbbb cccc"), wire.CapUpdateMessage, "h", 4, "update_message(aaaa) send(bbbb) send(cccc)"},
		{"noHandle", message.Text("a"), wire.CapUpdateMessage, "", 0, "send(a) update_message→text(no handle of the earlier message is known)"},
		{"giantHandle", message.Text("a"), wire.CapUpdateMessage, strings.Repeat("h", wire.MaxFrame), 0, "send(a) update_message→text(larger than a frame)"},
		{"parts", message.New(message.NewText("a"), message.NewText("b")), wire.CapUpdateMessage, "h", 0, "update_message(a\nb)"},
		{"card", message.New(message.NewCard(plainCard)), wire.CapUpdateMessage | wire.CapCard, "h", 0,
			"update_message(" + plainCardText + ") card→text(an edit is plain text)"},
		{"cardNoCapability", message.New(message.NewCard(plainCard)), wire.CapCard, "h", 0,
			"send(" + plainCardText + ") card→text(an edit is plain text) update_message→text(capability not effective)"},
		{"unknown", message.New(part(t, `{"type":"hologram"}`)), wire.CapUpdateMessage, "h", 0, "hologram→none(has no form in text)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outline(Plan(Input{Message: &c.m, Act: Act{Kind: ActEdit, Handle: c.handle}, Room: ample, View: wire.View{Caps: c.caps, Profile: wire.Profile{MaxText: c.max}}}))
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	offer := message.New(message.NewButtons("a", yesNo))
	if p := Plan(Input{Message: &offer, Act: Act{Kind: ActEdit, Handle: "h"}, Room: ample, View: wire.View{Caps: wire.CapUpdateMessage}}); !p.Offers {
		t.Error("an edit with buttons offers nothing")
	}
}

func TestProfile(t *testing.T) {
	buttons := message.New(message.NewButtons("Pick one: now", yesNo))
	card := message.New(message.NewCard(&wire.Card{Elements: []wire.Element{{Type: wire.ElementActions, Buttons: yesNo}}}))
	for _, c := range []struct {
		name    string
		m       message.Message
		caps    wire.Caps
		profile wire.Profile
		want    string
	}{
		{"maxText", message.Text("aaaa bbbb"), wire.CapText, wire.Profile{MaxText: 5}, "send(aaaa) send(bbbb)"},
		{"maxTextOfButtons", buttons, wire.CapButtons, wire.Profile{MaxText: 10}, "send(Pick one:) send_buttons(now)"},
		{"maxButtonsReached", buttons, wire.CapButtons, wire.Profile{MaxButtons: 2}, "send_buttons(Pick one: now)"},
		{"maxButtonsExceeded", buttons, wire.CapButtons, wire.Profile{MaxButtons: 1},
			"send(Pick one: now\n[Yes] [No]) buttons→text(more buttons than the far end shows)"},
		{"maxButtonsOfCard", card, wire.CapButtons, wire.Profile{MaxButtons: 1}, "send([Yes] [No]) card→text(capability not effective)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outline(Plan(Input{Message: &c.m, Room: ample, View: wire.View{Caps: c.caps, Profile: c.profile}}))
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestLargerThanAFrame(t *testing.T) {
	long := strings.Repeat("x", wire.MaxFrame)
	big := &wire.Card{Elements: []wire.Element{{Type: wire.ElementMarkdown, Content: long}, {Type: wire.ElementActions, Buttons: yesNo}}}
	wide := [][]wire.Button{{{Text: "a", Value: long}}}
	all := wire.CapText | wire.CapCard | wire.CapButtons | wire.CapImage | wire.CapFile
	for _, c := range []struct {
		name string
		m    message.Message
		caps wire.Caps
		last wire.Type
		note Note
	}{
		{"card", message.New(message.NewCard(big)), all, wire.TypeSendButtons, Note{"card", "buttons", reasonTooLarge}},
		{"cardNoButtons", message.New(message.NewCard(big)), wire.CapCard, wire.TypeSend, Note{"card", "text", reasonTooLarge}},
		{"buttons", message.New(message.NewButtons("a", wide)), all, wire.TypeSend, Note{"buttons", "text", reasonTooLarge}},
		{"image", message.New(message.NewImage(wire.Image{URL: "https://x", Caption: long})), all, wire.TypeSend, Note{"image", "text", reasonTooLarge}},
		{"file", message.New(message.NewFile(wire.File{URL: "https://x", Caption: long})), all, wire.TypeSend, Note{"file", "text", reasonTooLarge}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan(Input{Message: &c.m, Room: ample, View: wire.View{Caps: c.caps}})
			if !reflect.DeepEqual(p.Notes, []Note{c.note}) {
				t.Errorf("notes %v, want %v", p.Notes, c.note)
			}
			if got := p.Frames[len(p.Frames)-1].Type; got != c.last {
				t.Errorf("the last frame is %s, want %s", got, c.last)
			}
		})
	}
}

// At the limit of a frame every byte counts, for every type that carries text.
func TestFrameLimit(t *testing.T) {
	for _, ctx := range []int{2, 100_000, 262_000} {
		r := wire.Routing{SessionKey: "s", ConversationID: "c", ReplyCtx: wire.Raw(`"` + strings.Repeat("x", ctx-2) + `"`)}
		room := wire.MaxFrame - r.Overhead()
		if room < minRoom {
			continue
		}
		step := 1
		if ctx > 2 { // what the types take is the same
			step = 7
		}
		for less := -5; less < 60 && room-less > 0; less += step {
			text := strings.Repeat("x", room-less)
			offer := message.New(message.NewButtons(text, [][]wire.Button{{{Text: "a", Value: "b"}}}))
			plain := message.Text(text)
			in := Input{Room: room, Message: &plain, View: wire.View{Caps: wire.CapButtons | wire.CapUpdateMessage | wire.CapStream}}
			edit, end, buttons := in, in, in
			edit.Act = Act{Kind: ActEdit, Handle: "h\n"}
			end.Act = Act{Kind: ActEndStream}
			buttons.Message = &offer
			for _, in := range []Input{in, edit, end, buttons} {
				for _, f := range append(Plan(in).Frames, Stream(in.View, "", text, room)) {
					if n := len(f.Append(nil, r)); n > wire.MaxFrame {
						t.Fatalf("%s of %d bytes in a text of %d", f.Type, n, len(text))
					}
				}
			}
		}
	}
}

func TestGiantReplyCtx(t *testing.T) {
	m := message.Text(strings.Repeat("word ", 100))
	for _, c := range []struct{ room, frames int }{{ample, 1}, {300, 2}, {minRoom, 9}} {
		p := Plan(Input{Message: &m, Room: c.room})
		if len(p.Frames) != c.frames || p.TooLarge || p.Notes != nil {
			t.Errorf("room %d: %d frames, too large %v, want %d frames", c.room, len(p.Frames), p.TooLarge, c.frames)
		}
	}
	for _, room := range []int{minRoom - 1, 0, -100_000} {
		if p := Plan(Input{Message: &m, Room: room}); !p.TooLarge || p.Frames != nil {
			t.Errorf("room %d: %s", room, outline(p))
		}
	}
}

func TestTexts(t *testing.T) {
	if got := CardText(fullCard); got != fullCardText {
		t.Errorf("got  %q\nwant %q", got, fullCardText)
	}
	if rule != strings.Repeat("─", 10) {
		t.Errorf("a divider is %q", rule)
	}
	if got := CardText(&wire.Card{Header: &wire.Header{}, Elements: []wire.Element{{Type: "hologram"}}}); got != "" {
		t.Errorf("an empty card is %q", got)
	}
	if got := ButtonsText("", yesNo); got != "[Yes] [No]" {
		t.Errorf("buttons without a text are %q", got)
	}
	m := message.New(message.NewText("a"), message.NewCard(plainCard))
	if got := Text(&m); got != "a\n*Title*\ntext" {
		t.Errorf("got %q", got)
	}
	if m = message.Text("a"); Text(&m) != "a" {
		t.Errorf("got %q", Text(&m))
	}
}

func TestOffer(t *testing.T) {
	m := message.New(
		part(t, `{"type":"custom","payloadType":1}`), part(t, `{"type":"custom","payloadType":"bridge.card","data":1}`),
		message.NewText("a"), message.NewCard(fullCard), message.NewButtons("b", yesNo),
	)
	want := []choice{{"a", "va"}, {"b", "vb"}, {"c", "vc"}, {"open", "vo"}, {"red", "colour:r"}, {"blue", "colour:b"}, {"Yes", "cmd:/confirm"}, {"No", "cmd:/abort"}}
	got := OfferOf(&m)
	if !slices.Equal(got.choices, want) {
		t.Fatalf("got %v, want %v", got.choices, want)
	}
	for typed, value := range map[string]string{
		"1": "va", " 8 ": "cmd:/abort", "yes": "cmd:/confirm", "BLUE\n": "colour:b",
		"0": "", "9": "", "-1": "", "0001": "", "": "", "maybe": "", "1.": "",
	} {
		if v, ok := got.Choose(typed, wire.View{}); v != value || ok != (value != "") {
			t.Errorf("typed %q: %q, %v, want %q", typed, v, ok, value)
		}
	}
	// A label goes before a number, even where both are numbers.
	down := message.New(message.NewButtons("rate", [][]wire.Button{{{Text: "5", Value: "five"}}, {{Text: "4", Value: "four"}}, {{Text: "x", Value: "ex"}}}))
	for typed, value := range map[string]string{"5": "five", "4": "four", "1": "five", "3": "ex"} {
		if v, _ := OfferOf(&down).Choose(typed, wire.View{}); v != value {
			t.Errorf("typed %q: %q, want %q", typed, v, value)
		}
	}
	if _, ok := (Offer{}).Choose("1", wire.View{}); ok {
		t.Error("chose from nothing")
	}
	// Only who was shown text has counted: three buttons are too many for one far end here.
	three := message.New(message.NewButtons("rate", [][]wire.Button{{{Text: "a", Value: "va"}, {Text: "b", Value: "vb"}}, {{Text: "c", Value: "vc"}}}))
	for _, c := range []struct {
		view wire.View
		want bool
	}{
		{wire.View{}, true}, {wire.View{Caps: wire.CapCard}, true}, {wire.View{Caps: wire.CapButtons}, false}, {wire.View{Caps: wire.CapParts}, false},
		{wire.View{Caps: wire.CapButtons, Profile: wire.Profile{MaxButtons: 2}}, true},
	} {
		if v, ok := OfferOf(&three).Choose("3", c.view); ok != c.want {
			t.Errorf("%+v: 3 is %q, %v", c.view, v, ok)
		}
		if v, _ := OfferOf(&three).Choose("C", c.view); v != "vc" {
			t.Errorf("%+v: C is %q", c.view, v)
		}
	}
	if o := OfferOf(&three).Passed(); o.Typed() || !o.Empty() {
		t.Errorf("after the next message it is %+v", o)
	}
}

func TestCatalogue(t *testing.T) {
	var names []string
	for _, c := range Catalogue() {
		names = append(names, c.Name)
		if c.About == "" || c.Frames == nil || c.DegradesTo == nil {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	if want := wire.CapsV11.Names(); !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func FuzzPlan(f *testing.F) {
	for _, p := range seeds(f) {
		for _, caps := range []wire.Caps{0, wire.CapsV10, wire.CapsV11, wire.CapButtons, wire.CapCard, wire.CapsV11 &^ wire.CapParts} {
			f.Add(p, uint16(caps), uint16(0), uint8(0), uint32(0), "", uint8(ActNone))
			f.Add(p, uint16(caps), uint16(7), uint8(1), uint32(wire.MaxFrame-300), "handle", uint8(ActEdit))
			f.Add(p, uint16(caps), uint16(7), uint8(1), uint32(wire.MaxFrame-300), "handle", uint8(ActEndStream))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, caps uint16, maxText uint16, maxButtons uint8, ctx uint32, handle string, act uint8) {
		m := message.Message{}
		var err error
		if m.Parts, err = message.ParseParts(raw); err != nil || len(m.Parts) == 0 {
			m.Text, m.Parts = string(raw), nil
		}
		r := wire.Routing{SessionKey: "s\n", ConversationID: "c", ReplyCtx: wire.Raw(strings.Repeat("1", int(ctx%wire.MaxFrame)))}
		in := Input{
			Message: &m, Act: Act{Kind: ActKind(act), Handle: handle, Emoji: handle}, Room: wire.MaxFrame - r.Overhead(),
			View: wire.View{Caps: wire.Caps(caps) | wire.CapText, Local: ctx%2 == 1, Profile: wire.Profile{MaxText: int(maxText), MaxButtons: int(maxButtons)}},
		}
		got := Plan(in)
		if got.TooLarge != (in.Room < minRoom) {
			t.Fatalf("room %d: too large %v", in.Room, got.TooLarge)
		}
		if got.TooLarge {
			return
		}
		if len(got.Frames) == 0 && len(got.Notes) == 0 {
			t.Fatal("neither frames nor notes")
		}
		for _, frame := range got.Frames {
			checkFrame(t, frame, in, r)
		}
		if again := Plan(in); !reflect.DeepEqual(again, got) {
			t.Fatalf("planned as\n%s, then as\n%s", outline(got), outline(again))
		}
		content := ActKind(act) == ActNone || ActKind(act) == ActEndStream
		if content && !in.View.Caps.Has(wire.CapParts) && utf8.Valid(raw) {
			checkNothingLost(t, in, got)
		}
	})
}

// seeds are parts for FuzzPlan: those of the tests, and every kind by itself.
func seeds(f *testing.F) [][]byte {
	out := [][]byte{[]byte("plain text"), []byte(`[{"type":"hologram"}]`), []byte(`[{"type":"text","text":1}]`), []byte(`[{"type":"custom","payloadType":"bridge.card","data":{"elements":[null,{"type":"x"}]}}]`)}
	parts := []message.Part{
		message.NewText("text with words"), message.NewCard(fullCard), message.NewCard(plainCard), message.NewButtons("Pick one:", yesNo), message.NewForm(form),
		message.NewImage(wire.Image{URL: "https://x", Path: "/a", Caption: "c"}), message.NewFile(wire.File{URL: "https://x", Filename: "f"}),
	}
	for _, p := range parts {
		out = append(out, message.AppendParts(nil, []message.Part{p}))
	}
	out = append(out, message.AppendParts(nil, parts))
	goldens, err := filepath.Glob("../../../sdk/protocol/frames/to_adapter/send_card*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range goldens {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var frame struct{ Card json.RawMessage }
		if err := json.Unmarshal(b, &frame); err != nil {
			f.Fatal(err)
		}
		out = append(out, []byte(`[{"type":"custom","payloadType":"bridge.card","data":`+string(frame.Card)+`}]`))
	}
	return out
}

var needs = map[wire.Type]wire.Caps{
	wire.TypeSend: 0, wire.TypeSendCard: wire.CapCard, wire.TypeSendButtons: wire.CapButtons,
	wire.TypeSendImage: wire.CapImage, wire.TypeSendFile: wire.CapFile, wire.TypeUpdateMessage: wire.CapUpdateMessage,
	wire.TypeSendParts: wire.CapParts, wire.TypeStream: wire.CapStream, wire.TypeStreamEnd: wire.CapStream, wire.TypeSendAudio: wire.CapAudio,
	wire.TypeSendForm: wire.CapForm, wire.TypeDeleteMessage: wire.CapDeleteMessage, wire.TypeSendReaction: wire.CapReaction,
}

func checkFrame(t *testing.T, f wire.Frame, in Input, r wire.Routing) {
	t.Helper()
	if c, ok := needs[f.Type]; !ok || !in.View.Caps.Has(c) {
		t.Fatalf("%s is not for an adapter with %s", f.Type, in.View.Caps)
	}
	bare := f.Append(nil, wire.Routing{})
	if !json.Valid(bare) {
		t.Fatalf("no JSON: %s", bare)
	}
	if n := len(bare) - (wire.Routing{}).Overhead() + r.Overhead(); n > wire.MaxFrame {
		t.Fatalf("%s takes %d bytes", f.Type, n)
	}
	if most := in.View.Profile.MaxText; most > 0 && len(f.Parts) == 0 && utf8.RuneCountInString(f.Text) > most {
		t.Fatalf("%s has a text of %d code points, %d are allowed", f.Type, utf8.RuneCountInString(f.Text), most)
	}
	if n := len(slices.Concat(f.Buttons...)); in.View.Profile.MaxButtons > 0 && n > in.View.Profile.MaxButtons {
		t.Fatalf("%s has %d buttons, %d are allowed", f.Type, n, in.View.Profile.MaxButtons)
	}
	if f.Image != nil && f.Image.Path != "" && !in.View.Local || f.File != nil && f.File.Path != "" && !in.View.Local {
		t.Fatal("a path of this machine goes to another")
	}
	sent, err := message.ParseParts(f.Parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range sent {
		if path := message.TextField(p.Raw(), "path"); path != "" && !in.View.Local && (p.Type == message.TypeVision || p.Type == message.TypeFile) {
			t.Fatalf("a path of this machine goes to another: %s", p.Raw())
		}
	}
}

// checkNothingLost looks for the text of each part, and for its choices.
func checkNothingLost(t *testing.T, in Input, got Planned) {
	t.Helper()
	var b strings.Builder
	cards, labels := 0, map[string]bool{}
	for _, f := range got.Frames {
		b.WriteString(f.Text)
		for _, button := range slices.Concat(f.Buttons...) {
			labels[button.Text] = true
		}
		if f.Card != nil {
			cards++
		}
	}
	shown := dense(b.String())
	want := func(text string) {
		if strings.Contains(text, "```") || strings.Contains(text, "~~~") {
			return // a cut closes a fence and opens it again
		}
		if !strings.Contains(shown, dense(text)) {
			t.Fatalf("%q is not in %s", text, outline(got))
		}
	}
	if len(in.Message.Parts) == 0 {
		want(in.Message.Text)
	}
	for _, p := range in.Message.Parts {
		alone := Plan(Input{Message: &message.Message{Parts: []message.Part{p}}, View: in.View, Room: in.Room})
		if len(alone.Frames) == 0 && len(alone.Notes) == 0 {
			t.Fatalf("%s part: neither frames nor notes", p.Type)
		}
		switch p.Type {
		case message.TypeText:
			if v, err := message.As[message.TextPart](p); err == nil {
				want(v.Text)
			}
		case message.TypeMarkdown:
			if v, err := message.As[message.MarkdownPart](p); err == nil {
				want(flatten(v.Markdown, "none"))
			}
		case message.TypeCustom:
			for _, c := range OfferOf(&message.Message{Parts: []message.Part{p}}).choices {
				if cards == 0 && !labels[c.label] {
					want(c.label)
				}
			}
		}
	}
}

// dense is text without the white space that a cut may take.
func dense(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(white, r) {
			return -1
		}
		return r
	}, s)
}

func BenchmarkPlanText(b *testing.B) {
	for _, c := range []struct {
		name    string
		text    string
		profile wire.Profile
	}{
		{"short", "Acknowledged: your order is on its way.", wire.Profile{}},
		{"split", strings.Repeat("Some words of a long answer. ", 400), wire.Profile{MaxText: 4096}},
		{"frames", strings.Repeat("x", 1<<20), wire.Profile{}},
	} {
		m := message.Text(c.text)
		in := Input{Message: &m, Room: ample, View: wire.View{Caps: wire.CapText, Profile: c.profile}}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				if p := Plan(in); len(p.Frames) == 0 {
					b.Fatal("nothing planned")
				}
			}
		})
	}
}
