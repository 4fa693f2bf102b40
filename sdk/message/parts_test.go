package message

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// golden reads a file of testdata.
func golden[T any](t testing.TB, name string) T {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Every type of part: its bytes survive, its struct holds all that it knows.
func TestEveryPart(t *testing.T) {
	parts := golden[[]Part](t, "parts.json")
	seen := map[string]bool{}
	for _, p := range parts {
		t.Run(p.Type, func(t *testing.T) {
			seen[p.Type] = true
			back := parse(t, string(AppendParts(nil, []Part{p})))
			if string(back[0].Raw()) != string(p.Raw()) {
				t.Errorf("came back as %s", back[0].Raw())
			}
			view, err := p.View()
			if p.Type == "hologram" {
				if !errors.Is(err, ErrUnknownType) || !strings.Contains(err.Error(), "hologram") {
					t.Errorf("read as %v, %v", view, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := json.Unmarshal(p.Raw(), &want); err != nil {
				t.Fatal(err)
			}
			delete(want, "x-unknown")
			if err := json.Unmarshal(Of(view).Raw(), &got); err != nil {
				t.Fatal(err)
			}
			for name, v := range want {
				if empty := v == "" && name != "text"; !empty && !reflect.DeepEqual(got[name], v) && name != "components" {
					t.Errorf("%s: %v, made of its struct again %v", name, v, got[name])
				}
			}
		})
	}
	for _, name := range Types() {
		if !seen[name] {
			t.Errorf("no golden part of type %s", name)
		}
	}
	if len(Types()) != 28 {
		t.Errorf("%d types, expected the 26 of the union, ui and ui_submit", len(Types()))
	}
	if found := Validate(parts, HostLimits()); len(found) > 0 {
		t.Error(found)
	}
}

func TestGuards(t *testing.T) {
	for _, p := range golden[[]Part](t, "parts.json") {
		signal := p.Type == "sentiment-signal" || p.Type == "intent-signal"
		if IsSignal(p) != signal || Is[TextPart](p) != (p.Type == "text") || Is[UIPart](p) != (p.Type == "ui") {
			t.Errorf("%s: guards say signal %v, text %v, ui %v", p.Type, IsSignal(p), Is[TextPart](p), Is[UIPart](p))
		}
	}
	if _, err := As[TextPart](NewMarkdown("a")); err == nil || err.Error() != "markdown part: expected text" {
		t.Errorf("markdown as text: %v", err)
	}
}

// Every constructor makes what Validate takes.
func TestConstructorsAreValid(t *testing.T) {
	position := 2.0
	parts := []Part{
		NewText(""), NewTextDelta("a"), NewMarkdown("a"), NewCitation("t", "https://example.org", ""), NewChips(Chip{Label: "a"}),
		NewCarousel(json.RawMessage(`{"title":"a"}`)), NewOrder(OrderPart{OrderID: "1", Items: []json.RawMessage{}, Subtotal: json.RawMessage("1"), Total: json.RawMessage("2")}),
		NewCustom("x", json.RawMessage("null")), NewToolCall("c", "n", json.RawMessage("{}"), ToolRequested), NewToolResult("c", "n", json.RawMessage("1")),
		NewAttachment(FilePart{FileName: "f", LifecycleStatus: FileSent}), NewTransfer(TransferPart{Status: "queued", QueuePosition: &position}),
		NewDiagnostic("c", "m", "2026-11-20T10:00:00.000Z"), NewEndSession(EndTimeout, ""), NewError("c", "m", "u"),
		NewAudioInput(AudioInputPart{MimeType: "audio/ogg", Status: InputCapturing}), NewAudioOutput(AudioOutputPart{MimeType: "audio/ogg", Status: OutputStreaming}),
		NewTranscript(TranscriptPart{Role: "user"}), NewAudioCue(CueEndOfTurn), NewVision(VisionPart{Kind: VisionInput, MimeType: "image/png", Data: "AAAA"}),
		NewMemoryApproval(MemoryApprovalPart{Operation: MemoryDelete, Payload: json.RawMessage("{}"), Status: "pending"}), NewMemoryRecall("q", json.RawMessage("1")),
		NewSentiment(SentimentPart{}), NewIntent(IntentPart{}), NewComputerUse(ComputerUsePart{ActionLog: []json.RawMessage{}}),
		NewA2UI(A2UIPart{Components: json.RawMessage("[]")}), NewForm(UIPart{Components: []UIComponent{{Type: UIText, Text: "a"}}}),
		NewSubmit("f", map[string]any{"a": "b", "c": true, "d": []string{"e"}}),
	}
	if found := Validate(Number(parts), FrameLimits()); len(found) > 0 {
		t.Error(found)
	}
	made := map[string]bool{}
	for _, p := range parts {
		made[p.Type] = true
	}
	for _, name := range Types() {
		if !made[name] {
			t.Errorf("no constructor of %s was tried", name)
		}
	}
}

func TestValidateBad(t *testing.T) {
	for _, c := range golden[[]struct {
		Part    Part
		Problem Problem
	}](t, "bad.json") {
		t.Run(c.Problem.Type+" "+c.Problem.Field, func(t *testing.T) {
			found := Validate([]Part{c.Part}, HostLimits())
			if len(found) != 1 || found[0] != c.Problem {
				t.Errorf("%s:\nfound    %+v\nexpected %+v", c.Part.Raw(), found, c.Problem)
			}
			if parts, warnings, err := Admit([]Part{c.Part}, HostLimits()); err != nil || len(parts) != 1 || !reflect.DeepEqual(warnings, found) {
				t.Errorf("coming in: %v, %v, %v", parts, warnings, err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	l := Limits{Parts: 2, PartBytes: 200, Depth: 3, Inline: 3}
	for name, c := range map[string]struct{ parts, want string }{
		"ok":        {`[{"type":"a","b":{"c":[]}},{"type":"vision","kind":"input","mimeType":"m","data":"AAAA"}]`, ""},
		"errParts":  {`[{"type":"a"},{"type":"a"},{"type":"a"}]`, "message parts: found 3 parts, expected at most 2"},
		"errBytes":  {`[{"type":"a"},{"type":"a","b":"` + strings.Repeat("x", 200) + `"}]`, "parts[1] (a): found 219 bytes, expected at most 200"},
		"errDepth":  {`[{"type":"a","b":{"c":["[{\"",[]]}}]`, "parts[0] (a): found 4 levels, expected at most 3"},
		"errNumber": {`[{"type":"a","b":1e999}]`, "parts[0] (a): found the number 1e999, expected numbers that fit a float64, of at most 1000 characters"},
		"errInline": {`[{"type":"vision","kind":"input","mimeType":"m","data":"AAAAAAAA"}]`, "parts[0] (vision) data: found 6 bytes, expected at most 3: use a url"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Admit(parse(t, c.parts), l)
			if got := errorText(err); got != c.want {
				t.Errorf("found %q, expected %q", got, c.want)
			}
		})
	}
	for parts, want := range map[string]wire.Code{
		`[{"type":"a","b":1e999}]`: wire.CodeWrongType, `[{"type":"a","b":[[[]]]}]`: wire.CodeTooDeep, `[{"type":"a"},{"type":"a"},{"type":"a"}]`: wire.CodeTooLarge,
		`[{"type":"text","text":1}]`: wire.CodeWrongType,
	} {
		if code := Validate(parse(t, parts), l).Code(); code != want {
			t.Errorf("%s: refused with %s, expected %s", parts, code, want)
		}
	}
	many := make([]Part, 90)
	for i := range many {
		many[i] = parse(t, `[{"type":"text"}]`)[0]
	}
	if found := Validate(many, HostLimits()); len(found) != MaxProblems {
		t.Errorf("%d problems told", len(found))
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What could be in a file does not come in with its preview.
func TestAdmitPreview(t *testing.T) {
	in := `[{"type":"file", "fileName":"f","preview":{"kind":"k","text":"secret"}, "other":{"preview":{"text":"kept"}},"preview":{"html":"<secret>"},"z":1.50}]`
	parts, _, err := Admit(parse(t, in), HostLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"file", "fileName":"f","preview":{"kind":"k"}, "other":{"preview":{"text":"kept"}},"preview":{},"z":1.50}]`
	if got := string(AppendParts(nil, parts)); got != want {
		t.Errorf("found    %s\nexpected %s", got, want)
	}
	for _, same := range []string{`[{"type":"file","preview":{"kind":"k"}}]`, `[{"type":"file","preview":null}]`, `[{"type":"file","preview":[1]}]`, `[{"type":"text","preview":{"x":1}}]`} {
		parts, _, err := Admit(parse(t, same), HostLimits())
		if err != nil || string(AppendParts(nil, parts)) != same {
			t.Errorf("%s became %s, %v", same, AppendParts(nil, parts), err)
		}
	}
}
