package webchat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const markdownSample = "## A crossing\n\nTake **two** rafts, *not three*, and a `rope`; see [the guide](https://example.org/guide_(2)) or [write](mailto:ferry@example.org).\n\n" +
	"1. Tie them\n2. Test them\n   - in shallow water\n\n> Slow is smooth.\n\n```\nraft --join --with rope\n```\n\n| Part | Weight |\n|---|---:|\n| Raft | 120 kg |\n| Rope | 4 kg |\n"

// everyPart is one message with each type of part there is, and some of none.
func everyPart(host string) []message.Part {
	picture := host + "/assets/echo.png"
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	var unknown, words message.Part
	must(json.Unmarshal([]byte(`{"type":"hologram","anything":[1,2,{}]}`), &unknown))
	must(json.Unmarshal([]byte(`{"type":"hologram","text":"A hologram in words"}`), &words))
	return []message.Part{
		message.NewText("Here is everything at once."), message.NewTextDelta("It was written in pieces."),
		message.NewMarkdown(markdownSample),
		message.NewCitation("Pontoon bridges", "https://example.org/pontoon", "A bridge on floats."), message.NewCitation("Rafts", "https://example.com/rafts", ""),
		message.NewToolCall("call-1", "weather", raw(`{"secret":"input-of-tool"}`), message.ToolExecuting),
		message.NewToolResult("call-1", "weather", raw(`{"secret":"output-of-tool"}`)),
		message.NewCarousel(
			raw(`{"title":"Raft of logs","description":"Carries four people and their bags over calm water, all year round, as long as nobody jumps.","price":{"amount":120,"currency":"EUR"},"url":"https://example.org/raft","imageUrl":"`+picture+`"}`),
			raw(`{"title":"Oar","price":"9 EUR"}`), raw(`{"name":"Sail","description":"Red.","price":45.50,"currency":"EUR","imageUrl":"`+picture+`"}`),
			raw(`{"name":"Rope","price":4,"currency":"EUR"}`), raw(`{"name":"Anchor","url":"https://example.org/anchor"}`)),
		message.NewOrder(message.OrderPart{OrderID: "A-17", Items: []json.RawMessage{raw(`{"name":"Raft of logs","quantity":2,"price":"240 EUR"}`), raw(`{"name":"Oar","quantity":4,"price":"36 EUR"}`)},
			Subtotal: raw(`"276 EUR"`), Total: raw(`{"amount":289.50,"currency":"EUR"}`)}),
		message.NewCard(&wire.Card{Header: &wire.Header{Title: "A card", Color: "green"}, Elements: []wire.Element{
			{Type: wire.ElementMarkdown, Content: "**Markdown** of a card"}, {Type: wire.ElementActions, Buttons: [][]wire.Button{{{Text: "Card button", Value: "card-value"}}}}}}),
		message.NewButtons("Shall we?", [][]wire.Button{{{Text: "Aye", Value: "aye"}, {Text: "Nay", Value: "nay"}}}),
		message.NewCustom("app.weather", raw(`{"text":"A custom part in words"}`)), message.NewCustom("app.secret", raw(`{"c":[1,{"x":"hidden-custom"}]}`)),
		unknown, words,
		message.NewVision(message.VisionPart{Kind: message.VisionOutput, MimeType: "image/png", URL: picture, AltText: "A bridge of boats", Caption: "The bridge"}),
		message.NewVision(message.VisionPart{Kind: message.VisionInput, Data: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", AltText: "A dot"}),
		message.NewAttachment(message.FilePart{FileName: "plan.pdf", URL: host + "/assets/echo.txt", SizeBytes: ptr(12345.0)}),
		message.NewAttachment(message.FilePart{FileName: "later.pdf", UploadStatus: message.UploadPending}),
		message.NewTransfer(message.TransferPart{Status: "completed", TargetAgent: "Billing", Reason: "asked for a person"}),
		message.NewError("E42", "upstream 503 hidden-error", "Please try again."), message.NewError("E43", "hidden-error", ""),
		message.NewAudioInput(message.AudioInputPart{Base: message.Base{ID: "sound-1"}, MimeType: "audio/ogg", Status: message.InputCompleted, URL: host + "/assets/in.ogg"}),
		message.NewTranscript(message.TranscriptPart{Role: "user", Text: "what the recording says", AudioRefID: "sound-1"}),
		message.NewAudioOutput(message.AudioOutputPart{MimeType: "audio/mpeg", Status: message.OutputInterrupted, PlayedUpToMs: ptr(1500.0), URL: host + "/assets/out.mp3"}),
		message.NewTranscript(message.TranscriptPart{Role: "agent", Text: "and then we", Interim: true}),
		message.NewTranscript(message.TranscriptPart{Role: "agent", Text: "and then we cross"}),
		message.NewMemoryApproval(message.MemoryApprovalPart{Operation: message.MemorySave, Payload: raw(`{"text":"likes rafts"}`), Status: "pending"}),
		message.NewMemoryRecall("likes", raw(`{"likes":"hidden-memory"}`)),
		message.NewComputerUse(message.ComputerUsePart{SessionID: "s", State: "running", StreamURL: "https://example.org/stream", ActionLog: []json.RawMessage{raw(`{"click":"hidden-action"}`)}}),
		message.NewForm(message.UIPart{UIID: "order", Submit: &message.UISubmit{Label: "Order"}, Components: []message.UIComponent{
			{Type: message.UIHeading, Text: "Order"}, {Type: message.UIInput, Name: "who", Label: "Name"}}}),
		message.NewSubmit("earlier", map[string]any{"colour": "red", "gift": true}),
		message.NewDiagnostic("latency", "hidden-diagnostic", "2026-11-20T10:00:00.000Z"), message.NewAudioCue(message.CueBargeIn),
		message.NewA2UI(message.A2UIPart{SurfaceID: "sf", State: "ready", Components: raw(`[{"text":"hidden-surface"}]`)}),
		message.NewSentiment(message.SentimentPart{Category: "joy", Polarity: "positive", Score: 0.8}), message.NewIntent(message.IntentPart{Intent: "refund"}),
		message.NewChips(message.Chip{Label: "Yes, please", Value: "chip-yes"}, message.Chip{Label: "No"}, message.Chip{Label: "Tell me more about the rafts first"}),
		message.NewEndSession(message.EndCompleted, "That was all."),
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ptr[T any](v T) *T { return &v }

// kindsOfAll are the pieces of everyPart, in its order.
const kindsOfAll = "text text markdown sources line products order card buttons text text image image file file line error error audio audio transcript text line line form text " +
	"signal signal buttons end"

// Every type of part has its place in one message, in their order, and what is not
// for users is not even sent to the page.
func TestPieces(t *testing.T) {
	parts := everyPart("http://127.0.0.1:1")
	for _, name := range message.Types() {
		if !slices.ContainsFunc(parts, func(p message.Part) bool { return p.Type == name }) {
			t.Errorf("%s is not among them", name)
		}
	}
	pieces, err := piecesOf("the fallback", parts)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range pieces {
		kinds = append(kinds, string(p.Kind))
	}
	if got := strings.Join(kinds, " "); got != kindsOfAll {
		t.Errorf("found    %s\nexpected %s", got, kindsOfAll)
	}
	b, err := json.Marshal(pieces)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hidden-", "-of-tool", "the fallback", "and then we\""} {
		if strings.Contains(string(b), secret) {
			t.Errorf("the page gets %q", secret)
		}
	}
	for want, n := range map[string]int{"Used weather": 1, "It was written in pieces.": 1, "Now with Billing: asked for a person": 1, "45.50 EUR": 1, "data:image/gif;base64,": 1, "Something went wrong.": 1} {
		if strings.Count(string(b), want) != n {
			t.Errorf("%q is there %d times in %s", want, strings.Count(string(b), want), b)
		}
	}
}

// What parts don't say, the text does; what can't be shown is refused alone, and
// said beside something else.
func TestPiecesFallBack(t *testing.T) {
	bad := message.NewVision(message.VisionPart{URL: "javascript:alert(1)"})
	for name, c := range map[string]struct {
		text  string
		parts []message.Part
		want  string
	}{
		"no parts":        {"hello", nil, "text:hello"},
		"nothing":         {"", nil, ""},
		"not for users":   {"in words", []message.Part{message.NewAudioCue(message.CueBargeIn)}, "text:in words"},
		"a tool":          {"in words", []message.Part{message.NewToolCall("1", "x", nil, message.ToolFailed)}, "line:x did not work|text:in words"},
		"a signal alone":  {"", []message.Part{message.NewIntent(message.IntentPart{Intent: "buy\n"})}, "signal:Intent: buy"},
		"said by parts":   {"in words", []message.Part{message.NewText("by parts")}, "text:by parts"},
		"malformed":       {"in words", []message.Part{malformed(`{"type":"text","text":7}`), malformed(`{"type":"diagnostic","message":"x","category":1}`)}, "text:in words"},
		"bad and good":    {"in words", []message.Part{bad, message.NewText("good")}, "image:|text:good"},
		"a queue":         {"", []message.Part{message.NewTransfer(message.TransferPart{Status: "queued", QueuePosition: ptr(2.0)})}, "line:Handing over to a person, number 2 in the queue"},
		"an empty choice": {"in words", []message.Part{message.NewChips(), message.NewCarousel(), message.NewCustom(message.PayloadCard, []byte("{}"))}, "text:in words"},
		"in pieces":       {"in words", []message.Part{message.NewTextDelta("one "), message.NewTextDelta("two")}, "text:one two"},
		"two speakers": {"", []message.Part{
			message.NewTranscript(message.TranscriptPart{Role: "user", Text: "a", Interim: true}), message.NewTranscript(message.TranscriptPart{Role: "agent", Text: "b"}),
		}, "transcript:a|transcript:b"},
	} {
		pieces, err := piecesOf(c.text, c.parts)
		if got := said(&entry{Kind: kindMessage, Pieces: pieces}); err != nil || got != c.want {
			t.Errorf("%s: found %q, %v, expected %q", name, got, err, c.want)
		}
	}
	for name, p := range map[string]message.Part{
		"image.url: found scheme": bad, "file.url: found scheme": message.NewAttachment(message.FilePart{FileName: "x", URL: "ftp://example.org/x"}),
		"image.path: ": message.NewVision(message.VisionPart{Path: "/nowhere/at/all.png"}), "image.url: found neither": message.NewVision(message.VisionPart{Data: "PHN2Zz48L3N2Zz4="}),
		"audio.url: found scheme": message.NewAudioInput(message.AudioInputPart{URL: "data:audio/ogg;base64,AAAA"}),
	} {
		if pieces, err := piecesOf("in words", []message.Part{p}); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("found %v and %v, expected %s", pieces, err, name)
		}
	}
	many := make([]message.Part, maxPieces+7)
	for i := range many {
		many[i] = message.NewText("x")
	}
	if pieces, err := piecesOf("", many); err != nil || len(pieces) != maxPieces+1 || pieces[maxPieces].Text != "And 7 more that this page does not show" {
		t.Errorf("%d pieces, %v", len(pieces), err)
	}
}

func malformed(raw string) (p message.Part) {
	must(json.Unmarshal([]byte(raw), &p))
	return p
}

// An interim transcript is replaced in its place by what comes next of the same
// speech, in a message of its own too; what was answered outlives the end of a
// stream that is sent again.
func TestInPlace(t *testing.T) {
	a := New()
	to := sdk.Target{ConversationID: conversationOf("k")}
	send := func(role, text string, interim bool) string {
		t.Helper()
		got, err := a.SendParts(t.Context(), to, text, []message.Part{message.NewTranscript(message.TranscriptPart{Role: role, Text: text, Interim: interim, AudioRefID: "a"})})
		if err != nil {
			t.Fatal(err)
		}
		return got.Handle
	}
	first := send("user", "hel", true)
	if send("user", "hello th", true) != first || send("user", "hello there", false) != first || send("user", "again", false) == first || send("agent", "x", true) == first {
		t.Error("not in its place")
	}
	c := a.store.conv(t, to.ConversationID)
	if len(c.entries) != 3 || said(c.entries[0]) != "transcript:hello there" || c.entries[0].Pieces[0].Interim {
		t.Errorf("found %d entries, the first %q", len(c.entries), said(c.entries[0]))
	}

	d := sdk.Draft{ID: "m", Parts: []message.Part{message.NewText("x"), message.NewButtons("?", [][]wire.Button{{{Text: "a", Value: "a"}}})}, Final: true}
	for range 2 {
		got, err := a.Stream(t.Context(), to, d)
		if err != nil {
			t.Fatal(err)
		}
		e := c.byID[got.Handle]
		if len(c.entries) != 4 || len(e.Pieces) != 2 {
			t.Errorf("%d entries, %d pieces", len(c.entries), len(e.Pieces))
		}
		why := c.choose(&press{message: e.ID, piece: 1})
		if e.Pieces[1].Chosen == nil || c.choose(&press{message: e.ID, piece: 1}) != "this question is already answered" {
			t.Errorf("%q", why)
		}
	}
	for _, piece := range []int{2, 1 << 40} {
		if why := c.choose(&press{message: c.entries[3].ID, piece: piece}); why != "" {
			t.Errorf("a piece that is not there: %q", why)
		}
	}
	a.store.check(t)
}

// A file of this machine can be read for as long as the message shows it.
func TestFilesOfParts(t *testing.T) {
	a := New()
	to := sdk.Target{ConversationID: conversationOf("k")}
	png := absolute(t, "../../../host/internal/agent/assets/echo.png")
	for name, end := range map[string]func(handle string) error{
		"edited":  func(h string) error { _, err := a.Edit(t.Context(), to, h, "x"); return err },
		"deleted": func(h string) error { return a.Delete(t.Context(), to, h) },
	} {
		parts := []message.Part{message.NewText("x"), message.NewImage(wire.Image{Path: png}), message.NewFile(wire.File{Path: png, Filename: "a.png"})}
		got, err := a.SendParts(t.Context(), to, "", parts)
		if err != nil {
			t.Fatal(err)
		}
		e := a.store.convs[to.ConversationID].byID[got.Handle]
		if said(e) != "text:x|image:|file:" || a.store.granted(strings.TrimPrefix(e.Pieces[1].Media.URL, "/files/")) == nil || len(a.store.files) != 2 {
			t.Errorf("%s: found %q, %d files", name, said(e), len(a.store.files))
		}
		if err := end(got.Handle); err != nil || len(a.store.files) != 0 {
			t.Errorf("%s: %v, %d files are left", name, err, len(a.store.files))
		}
		a.store.check(t)
	}
}

// Whatever parts come, the page gets JSON, addresses that nothing runs at, and no
// more than it can show.
func FuzzPieces(f *testing.F) {
	all := message.AppendParts(nil, everyPart("http://127.0.0.1:1"))
	f.Add(all)
	for _, seed := range []string{`[]`, `[{"type":"vision","path":"x","url":"javascript:1","data":"AAAA","mimeType":"image/png"}]`, `[{"type":"custom","payloadType":"bridge.card","data":{"elements":[{}]}}]`,
		`[{"type":"product-carousel","products":[{"name":1},{"title":"a","image":"data:image/png;base64,AA=="}]}]`, `[{"type":"text-delta","delta":"a"},{"type":"text-delta","id":"1","delta":"b"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := message.ParseParts(b)
		if err != nil {
			return
		}
		pieces, err := piecesOf("text", parts)
		if err != nil {
			return
		}
		if len(pieces) == 0 || len(pieces) > maxPieces+1 {
			t.Errorf("%d pieces", len(pieces))
		}
		for _, p := range pieces {
			addresses := []string{p.URL}
			for _, s := range p.Sources {
				addresses = append(addresses, s.URL)
			}
			for _, i := range p.Items {
				addresses = append(addresses, i.URL)
			}
			if p.Media != nil && p.grant == nil && !dataImage.MatchString(p.Media.URL) {
				addresses = append(addresses, p.Media.URL)
			}
			for _, a := range addresses {
				if a != "" && checkURL(a) != nil {
					t.Errorf("%s leads to %q", p.Kind, a)
				}
			}
		}
		(&entry{Pieces: pieces}).encode()
	})
}
