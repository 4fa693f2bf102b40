package agui

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// samples has a part of every type, with the mark in what a reader would miss.
func samples(mark string) []message.Part {
	raw := func(v string) json.RawMessage { return json.RawMessage(`"` + mark + v + `"`) }
	card := &wire.Card{Header: &wire.Header{Title: mark}, Elements: []wire.Element{{Type: wire.ElementNote, Text: "note"}}}
	one := 1.0
	return []message.Part{
		message.NewText(mark), message.NewText(mark + "\n<"), message.NewTextDelta(mark), message.NewMarkdown("**" + mark + "**"),
		message.NewCitation(mark, "https://e.org", ""), message.NewChips(message.Chip{Label: mark}),
		message.NewCarousel(json.RawMessage(`{"title":` + string(raw("")) + `}`)),
		message.NewOrder(message.OrderPart{OrderID: mark, Subtotal: json.RawMessage("1"), Total: json.RawMessage("2")}),
		message.NewCustom("x", json.RawMessage(`{"text":`+string(raw(""))+`}`)), message.NewCard(card),
		message.NewButtons(mark, [][]wire.Button{{{Text: "yes", Value: "y"}}}),
		message.NewCustom(PayloadContent, json.RawMessage(`{"type":"hologram","x":`+string(raw(""))+`}`)),
		message.NewCustom(PayloadCall, json.RawMessage(`{"id":`+string(raw(""))+`}`)),
		message.NewCustom(PayloadObject, json.RawMessage(`{"title":`+string(raw(""))+`}`)),
		message.NewToolCall("c", mark, json.RawMessage(`{"a": 1}`), message.ToolRequested),
		message.NewToolCall("c", mark, raw(" half {"), message.ToolCompleted),
		message.NewToolResult("c", "", raw("")), message.NewToolResult("c", "f", json.RawMessage(`{"a":`+string(raw(""))+`}`)),
		message.NewAttachment(message.FilePart{FileName: mark, MimeType: "application/pdf", URL: "https://e.org/a.pdf"}),
		message.NewFile(wire.File{Filename: mark, Path: "/of/the/host", Caption: mark}),
		message.NewVision(message.VisionPart{Kind: message.VisionOutput, MimeType: "image/png", URL: "https://e.org/" + mark}),
		message.NewVision(message.VisionPart{Kind: message.VisionInput, MimeType: "image/png", Data: "AAAA", AltText: mark, Caption: mark, Width: &one}),
		message.NewImage(wire.Image{Path: "/of/the/host", Caption: mark}),
		message.NewAudioInput(message.AudioInputPart{MimeType: "audio/ogg", Status: message.InputCompleted, URL: "https://e.org/" + mark}),
		message.NewAudioOutput(message.AudioOutputPart{MimeType: "audio/ogg", Status: message.OutputCompleted, URL: "https://e.org/" + mark}),
		message.NewTransfer(message.TransferPart{Status: mark}), message.NewDiagnostic("c", mark, "2026-01-01T00:00:00.000Z"),
		message.NewEndSession(message.EndError, mark), message.NewError("code", "for developers", mark),
		message.NewTranscript(message.TranscriptPart{Role: "user", Text: mark}), message.NewAudioCue(message.CueBargeIn),
		message.NewMemoryApproval(message.MemoryApprovalPart{Operation: message.MemorySave, Payload: json.RawMessage(`{"text":` + string(raw("")) + `}`)}),
		message.NewMemoryRecall(mark), message.NewSentiment(message.SentimentPart{Category: mark}), message.NewIntent(message.IntentPart{Intent: mark}),
		message.NewComputerUse(message.ComputerUsePart{StreamURL: mark}), message.NewA2UI(message.A2UIPart{SurfaceID: mark, Components: json.RawMessage("[]")}),
		message.NewForm(message.UIPart{UIID: "u", Components: []message.UIComponent{{Type: message.UIText, Text: mark}}}),
		message.NewSubmit("u", map[string]any{"name": mark}),
	}
}

func TestSamplesAreOfEveryType(t *testing.T) {
	have := map[string]bool{}
	for _, p := range samples("x") {
		have[p.Type] = true
	}
	for _, typ := range message.Types() {
		if !have[typ] {
			t.Errorf("no sample of %s", typ)
		}
	}
}

var fromCases = map[string]struct{ role, parts, want, lost string }{
	"text":           {"user", `[{"type":"text","text":"a","id":"mine"}]`, `{"content":"a"}`, ""},
	"texts of user":  {"user", `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, ""},
	"texts of agent": {"agent", `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, `{"content":"a\nb"}`, ""},
	"text fields":    {"agent", `[{"type":"text","text":"a","x":1,"y":null}]`, `{"content":"a"}`, "0 text text: AG-UI has no field for x"},
	"text odd id":    {"agent", `[{"type":"text","text":"a","id":true}]`, `{"content":"a"}`, "0 text text: AG-UI has no field for id"},
	"deltas": {"agent", `[{"type":"text-delta","delta":"He"},{"type":"text-delta","delta":"llo"},{"type":"citation","title":"t","url":"u"}]`,
		`{"content":"Hello\nt\nu"}`, "2 citation text: AG-UI has no such content"},
	"unknown":   {"agent", `[{"type":"hologram","cubes":3}]`, `{"content":""}`, "0 hologram none: AG-UI has no such content, and no text says it"},
	"odd text":  {"agent", `[{"type":"text","text":1}]`, `{"content":""}`, "0 text none: AG-UI has no such content, and no text says it"},
	"odd error": {"agent", `[{"type":"error","code":1,"message":"secret"}]`, `{"content":""}`, "0 error none: AG-UI has no such content, and no text says it"},
	"image": {"user", `[{"type":"vision","kind":"input","mimeType":"","data":"iVBORw0KGgo=","caption":"c","width":1}]`,
		`{"content":[{"type":"binary","mimeType":"image/png","data":"iVBORw0KGgo="},{"type":"text","text":"c"}]}`, "0 vision binary: AG-UI has no field for caption, width"},
	"image url": {"agent", `[{"type":"vision","kind":"output","mimeType":"","url":"https://e.org/a.JPG?x=.y"}]`,
		`{"content":[{"type":"binary","mimeType":"image/jpeg","url":"https://e.org/a.JPG?x=.y"}]}`, ""},
	"image of the host": {"agent", `[{"type":"vision","kind":"output","mimeType":"image/png","path":"/p"}]`, `{"content":""}`, "0 vision none: AG-UI has no such content, and no text says it"},
	"image signed": {"user", `[{"type":"vision","kind":"input","mimeType":"image/png","url":"https://e.org/a","agui":{"as":"image","inner":{"value":"old","type":"data"}}}]`,
		`{"content":[{"type":"image","source":{"type":"url","value":"https://e.org/a","mimeType":"image/png"}}]}`, ""},
	"image twice": {"user", `[{"type":"vision","kind":"output","mimeType":"image/png","data":"AAAA","url":"https://e.org/a","agui":{"as":"image"}}]`,
		`{"content":[{"type":"image","source":{"type":"url","value":"https://e.org/a","mimeType":"image/png"}}]}`, "0 vision image: AG-UI has no field for data, kind"},
	"file": {"agent", `[{"type":"file","fileName":"a","url":"https://e.org/a","sizeBytes":3}]`, `{"content":[{"type":"binary","mimeType":"application/octet-stream","url":"https://e.org/a","filename":"a"}]}`,
		"0 file binary: AG-UI has no field for sizeBytes"},
	"file that is an image": {"agent", `[{"type":"file","fileName":"a","mimeType":"image/png","url":"https://e.org/a"}]`, `{"content":[{"type":"binary","mimeType":"image/png","url":"https://e.org/a","filename":"a"}]}`,
		"0 file binary: AG-UI has no field for the type file"},
	"file of the host": {"agent", `[{"type":"file","fileName":"a","path":"/secret","caption":"c"}]`, `{"content":"c"}`, "0 file text: AG-UI has no such content"},
	"audio": {"agent", `[{"type":"audio-output","mimeType":"","status":"interrupted","playedUpToMs":1,"url":"https://e.org/a"}]`, `{"content":[{"type":"binary","mimeType":"audio/*","url":"https://e.org/a"}]}`,
		"0 audio-output binary: AG-UI has no field for playedUpToMs, status"},
	"call": {"agent", `[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"a": 1},"status":"completed","output":2}]`,
		`{"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`, "0 tool-call toolCalls: AG-UI has no field for output, status"},
	"call altered": {"agent", `[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"a":2},"status":"requested","agui":{"arguments":"{\"a\": 1}"}}]`,
		`{"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]}`, ""},
	"call without input": {"agent", `[{"type":"tool-call","toolCallId":"c","toolName":"f"}]`, `{"content":"f()"}`, "0 tool-call text: AG-UI has no such content"},
	"answer": {"agent", `[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"a": 1},"error":{"b":2}}]`,
		`{"role":"tool","toolCallId":"c","content":"{\"a\":1}","error":"{\"b\":2}"}`,
		"0 tool-result tool: AG-UI has no field for an output that is no text, an error that is no text, toolName"},
	"answer beside text": {"agent", `[{"type":"text","text":"t"},{"type":"tool-result","toolCallId":"c","toolName":"","output":"o"}]`, `{"content":"t\no"}`,
		"1 tool-result text: AG-UI has no such content"},
	"answer of a user": {"user", `[{"type":"tool-result","toolCallId":"c","toolName":"","output":"o"}]`, `{"content":"o"}`, "0 tool-result text: AG-UI has no such content"},
	"object beside text": {"agent", `[{"type":"custom","payloadType":"agui.object","data":{"title":"o"}},{"type":"text","text":"t"}]`, `{"content":"o\nt"}`,
		"0 custom text: AG-UI has no such content beside others"},
	"odd payloads": {"agent", `[{"type":"custom","payloadType":"agui.content","data":{"type":1}},{"type":"custom","payloadType":"agui.call","data":[]}]`,
		`{"content":""}`, "0 custom none: AG-UI has no such content, and no text says it; 1 custom none: AG-UI has no such content, and no text says it"},
}

func TestFrom(t *testing.T) {
	for name, c := range fromCases {
		t.Run(name, func(t *testing.T) {
			m := message.Message{Role: message.Role(c.role), Parts: parts(t, c.parts)}
			out, lost := From(&m)
			want, ok := decode(t, []byte(c.want)).(map[string]any)
			if !ok {
				t.Fatal("want is no object")
			}
			if want["role"] == nil {
				want["role"] = map[string]string{"user": "user", "agent": "assistant"}[c.role]
			}
			if got := encode(t, out); !reflect.DeepEqual(decode(t, got), any(want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := say(lost); got != c.lost {
				t.Errorf("lost %s\nwant %s", got, c.lost)
			}
		})
	}
}

func say(lost []message.Loss) string {
	var all []string
	for _, l := range lost {
		all = append(all, fmt.Sprintf("%d %s %s: %s", l.Part, l.From, l.To, l.Reason))
	}
	return strings.Join(all, "; ")
}

func TestFromRoles(t *testing.T) {
	for name, c := range map[string]struct {
		role              message.Role
		given, kept, want string
		losses            int
	}{
		"user": {"user", "", "", "user", 0}, "agent": {"agent", "", "", "assistant", 0}, "absent": {"", "", "", "assistant", 0},
		"system": {"agent", "system", "", "system", 0}, "assistant": {"agent", "assistant", "", "assistant", 0},
		"of another model": {"agent", "resque", "", "assistant", 1}, "of this one": {"agent", "critic", `{"fields":{"role":"critic"}}`, "critic", 0},
		"agent as user": {"agent", "user", "", "assistant", 1}, "user as system": {"user", "system", "", "user", 1},
		"tool without result": {"agent", "tool", "", "assistant", 1}, "broken": {"agent", "critic", `[]`, "assistant", 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := message.Message{Role: c.role, Text: "x"}
			if c.given != "" {
				m.Meta = m.Meta.With(message.MetaRole, c.given)
			}
			if c.kept != "" {
				m.Meta[markKey] = json.RawMessage(c.kept)
			}
			if out, lost := From(&m); out.Role != c.want || len(lost) != c.losses || string(out.Content) != `"x"` {
				t.Errorf("%+v, lost %v", out, lost)
			}
		})
	}
}

func TestFromReportsWhatIsBeside(t *testing.T) {
	m := message.Message{Role: message.RoleUser, Text: "x", Meta: message.Meta{MetaPayload: json.RawMessage("{}"), "broken": nil}.With(message.MetaText, "y")}
	out, lost := From(&m)
	if len(lost) != 2 || lost[0].Part != -1 || out.More != nil {
		t.Errorf("%+v, lost %v", out, lost)
	}
}

// As a list the content is an array, also of an agent's texts.
func TestFromAsList(t *testing.T) {
	for name, c := range map[string]struct {
		m    message.Message
		want string
	}{
		"plain": {message.Text("a"), `[{"text":"a","type":"text"}]`},
		"texts": {message.New(message.NewText("a"), message.NewText("b")), `[{"text":"a","type":"text"},{"text":"b","type":"text"}]`},
		"none":  {message.New(message.NewAudioCue("end-of-turn")), `[]`},
	} {
		if got, _ := FromAsList(&c.m); string(got.Content) != c.want || got.Role != RoleAssistant {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
