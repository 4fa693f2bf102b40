package bridle

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/internal/convtest"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// golden is a file of testdata: a message of Bridle and the host's.
type golden struct {
	Side      Side               `json:"side"`
	Bridle    json.RawMessage    `json:"bridle"`
	Canonical convtest.Canonical `json:"canonical"`
}

func TestMain(m *testing.M) { convtest.Main(m) }

func TestGolden(t *testing.T) {
	convtest.Golden(t, "unknown", func(t testing.TB, g *golden) message.Message { return returns(t, string(g.Bridle), g.Side) },
		func(g *golden) *convtest.Canonical { return &g.Canonical })
}

// returns takes a message to the host's and back, and wants the same.
func returns(t convtest.TB, raw string, side Side) message.Message {
	t.Helper()
	in, err := Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	in.Side = side
	m, err := in.Canonical()
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	there := convtest.Stored(t, m)
	back, losses := From(&there)
	if len(losses) > 0 {
		t.Fatalf("%s: lost %v", raw, losses)
	}
	if back.Side != side {
		t.Fatalf("%s: from %s, came back from %s", raw, side, back.Side)
	}
	convtest.CameBack(t, back, raw, there)
	return m
}

// What is odd comes back too, from either side.
func TestReturns(t *testing.T) {
	for name, raw := range map[string]string{
		"textNull":           `{"text":null,"parts":[{"type":"text","text":"a"}]}`,
		"partsNull":          `{"text":"a","parts":null}`,
		"partsEmpty":         `{"text":"a","parts":[ ],"images":[]}`,
		"agentIdNull":        `{"text":"a","agentId":null}`,
		"agentIdEmpty":       `{"text":"a","agentId":""}`,
		"textEmpty":          `{"text":"","parts":[{"type":"text","text":"a"}]}`,
		"textCase":           `{"text":"a","Text":"b","PARTS":[]}`,
		"ownBridle":          `{"text":"a","bridle":{"noText":true}}`,
		"ownMetadata":        `{"text":"a","metadata":{"text":1}}`,
		"twoTexts":           `{"text":"a\nb","parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		"partText":           `{"parts":[{"type":"text"},{"type":"text","text":7},{"type":"text","text":null},{"type":"text","text":"a","Text":"b"}]}`,
		"partIds":            `{"parts":[{"type":"text","text":"a","id":"p1"},{"type":"image","base64":"AAAA","mediaType":"image/png","id":"p2"},{"type":"ui","id":3},{"type":"x","id":null}]}`,
		"partBridle":         `{"parts":[{"type":"text","text":"a","bridle":{"type":"image"}},{"type":"file","url":"u","name":"n","bridle":1},{"type":"image","base64":"AAAA","bridle":[]}]}`,
		"imageNoType":        `{"parts":[{"type":"image","base64":"iVBORw0KGgo="}]}`,
		"imageTypeEmpty":     `{"parts":[{"type":"image","base64":"iVBORw0KGgo=","mediaType":""}]}`,
		"imageNotBase64":     `{"parts":[{"type":"image","base64":"data:image/png;base64,AA"},{"type":"image","base64":"!","mediaType":"image/png"}]}`,
		"imageMalformed":     `{"parts":[{"type":"image"},{"type":"image","base64":""},{"type":"image","base64":[1,2]}]}`,
		"imageMore":          `{"parts":[{"type":"image","base64":"AAAA","mediaType":"image/png","alt":"x","data":"y","kind":1}]}`,
		"fileNoName":         `{"parts":[{"type":"file","url":"https://x/y"},{"type":"file","url":"https://x/y.png","mimeType":"image/png"}]}`,
		"fileMalformed":      `{"parts":[{"type":"file"},{"type":"file","url":""},{"type":"file","url":5,"name":null},{"type":"file","url":"u","name":"","mimeType":""}]}`,
		"fileMore":           `{"parts":[{"type":"file","url":"u","name":"n","fileName":"other","sizeBytes":12,"path":"/etc/passwd"}]}`,
		"fileImageMore":      `{"parts":[{"type":"file","url":"u","name":"n","mimeType":"image/webp","width":1}]}`,
		"hostTypes":          `{"parts":[{"type":"citation","title":"t","url":"u"},{"type":"vision","kind":"input","mimeType":"m","data":"AAAA"},{"type":"vision","url":"u","kind":"x"},{"type":"tool-call"},{"type":"custom"}]}`,
		"typeCase":           `{"parts":[{"type":"hologram","Type":"vision","data":"AAAA","Path":"/etc/passwd"},{"type":"image","TYPE":"text","base64":"AAAA","mediaType":"image/png"}]}`,
		"olderNoText":        `{"images":[{"base64":"AAAA","mediaType":"image/png"}]}`,
		"olderTextEmpty":     `{"text":"","images":[{"base64":"AAAA","mediaType":"image/png"}]}`,
		"olderTextNull":      `{"text":null,"parts":[],"images":[{"base64":"iVBORw0KGgo="}]}`,
		"olderMore":          `{"text":"a","images":[{"base64":"AAAA","mediaType":"image/png","type":"image"},{"type":"x","base64":"AAAA","id":1}]}`,
		"olderBeside":        `{"parts":[{"type":"text","text":"a"}],"images":[{"any":"thing"}]}`,
		"unknownType":        `{"text":"x","parts":[{"type":"hologram","text":"not rolled up","n":12345678901234567890.10}]}`,
		"strings":            `{"text":"<b>&\u2028\u00e9 \ud83d\ude00","parts":[{"type":"text","text":"<b>&\u2028\u00e9 \ud83d\ude00"}]}`,
		"partTypeInCapitals": `{"parts":[{"type":"Text","text":"a"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, side := range []Side{Browser, Agent} {
				returns(t, raw, side)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"errBroken":      {`{"text":`, "unexpected end"},
		"errNull":        {`null`, "expected an object"},
		"errArray":       {`[]`, "array"},
		"errText":        {`{"text":5}`, "text: "},
		"errParts":       {`{"parts":{}}`, "parts: "},
		"errPart":        {`{"parts":["a"]}`, "parts: "},
		"errPartNull":    {`{"parts":[null]}`, "parts[0]: found no type"},
		"errPartNoType":  {`{"parts":[{"type":"text"},{"Type":"text"}]}`, "parts[1]: found no type"},
		"errPartType":    {`{"parts":[{"type":1}]}`, "parts[0]: found no type"},
		"errImages":      {`{"images":["AAAA"]}`, "images: "},
		"errImageNull":   {`{"images":[null]}`, "images[0]: found null"},
		"errAgentNumber": {`{"agentId":1}`, "agentId: "},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := Parse([]byte(c.raw)); err == nil || !strings.HasPrefix(err.Error(), "parse bridle message: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, raw := range []string{`{}`, `{"text":null}`, `{"parts":[]}`, `{"images":[],"agentId":"a","x":1}`} {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Canonical(); !errors.Is(err, message.ErrNoContent) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"images":[{}]}`, `{"images":[{"base64":"!"}]}`, `{"images":[{"base64":7,"mediaType":"image/png"}]}`} {
		m, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Canonical(); err == nil || !strings.Contains(err.Error(), "images[0]: base64: ") {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
}

func TestPlainTextHasNoPart(t *testing.T) {
	m := returns(t, `{"text":"a"}`, Browser)
	if m.Parts != nil || m.Meta != nil || m.Text != "a" || m.Role != message.RoleUser || m.Status != message.StatusCompleted {
		t.Errorf("%+v", m)
	}
}

// What a browser says of files of our machine reaches no adapter.
func TestPathsAreHidden(t *testing.T) {
	m := returns(t, `{"parts":[{"type":"vision","Path":"/etc/passwd"},{"type":"file","url":"u","path":"/etc/passwd"},{"type":"file","path":"/etc/passwd"},{"type":"x","Type":"file","PATH":"/etc/passwd"}]}`, Browser)
	for i, p := range m.Parts {
		v, err := p.View()
		if err != nil && !errors.Is(err, message.ErrUnknownType) {
			t.Fatal(err)
		}
		switch v := v.(type) {
		case message.VisionPart:
			if v.Path != "" {
				t.Errorf("parts[%d] names %s", i, v.Path)
			}
		case message.FilePart:
			if v.Path != "" {
				t.Errorf("parts[%d] names %s", i, v.Path)
			}
		}
	}
}

func parse(raw string) []message.Part {
	parts, err := message.ParseParts([]byte(raw))
	if err != nil {
		panic(err)
	}
	return parts
}

func TestFrom(t *testing.T) {
	card := message.NewCard(&wire.Card{Header: &wire.Header{Title: "T"}, Elements: []wire.Element{{Type: wire.ElementNote, Text: "n"}}})
	one, text := 1.0, "a"
	for name, c := range map[string]struct {
		in     message.Message
		want   string
		losses []message.Loss
	}{
		"text":  {message.Text(text), `{"text":"a"}`, nil},
		"zero":  {message.Message{}, `{"text":""}`, nil},
		"parts": {message.New(message.NewText(text), message.NewText("b")), `{"text":"a\nb","parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, nil},
		"citation": {message.New(message.NewText(text), message.NewCitation("t", "u", "s")),
			`{"text":"a\nt\ns\nu","parts":[{"type":"text","text":"a"},{"type":"text","text":"t\ns\nu"}]}`,
			[]message.Loss{{Part: 1, From: "citation", To: "text", Reason: "Bridle has no such part"}}},
		"fallbackStays": {message.Message{Text: "short", Parts: []message.Part{card}},
			`{"text":"short","parts":[{"type":"text","text":"T\nn"}]}`, []message.Loss{{Part: 0, From: "custom", To: "text", Reason: "Bridle has no such part"}}},
		"toolCall": {message.New(message.NewToolCall("1", "f", json.RawMessage(`{"a": 1}`), message.ToolRequested)),
			`{"text":"f({\"a\":1})","parts":[{"type":"text","text":"f({\"a\":1})"}]}`,
			[]message.Loss{{Part: 0, From: "tool-call", To: "text", Reason: "Bridle has no such part"}}},
		"signal": {message.New(message.NewIntent(message.IntentPart{Intent: "buy"})), `{"text":""}`,
			[]message.Loss{{Part: 0, From: "intent-signal", To: "none", Reason: "has no form in text"}}},
		"vision": {message.New(message.NewVision(message.VisionPart{Kind: "output", MimeType: "image/png", Data: "AAAA", Caption: "c", Width: &one, URL: "u"})),
			`{"text":"c","parts":[{"type":"image","base64":"AAAA","mediaType":"image/png"},{"type":"text","text":"c"}]}`,
			[]message.Loss{{Part: 0, From: "vision", To: "text", Reason: "Bridle has no captions"}, {Part: 0, From: "vision", To: "image", Reason: "left out: url, width"}}},
		"visionSniffed": {message.New(message.NewVision(message.VisionPart{Kind: "output", Data: "iVBORw0KGgo="})),
			`{"text":"","parts":[{"type":"image","base64":"iVBORw0KGgo=","mediaType":"image/png"}]}`, nil},
		"visionURL": {message.New(message.NewImage(wire.Image{URL: "https://x/y/z.png?a=b"})),
			`{"text":"","parts":[{"type":"file","url":"https://x/y/z.png?a=b","name":"z.png"}]}`, nil},
		"visionPath": {message.New(message.NewImage(wire.Image{Path: "/tmp/x.png"})), `{"text":""}`,
			[]message.Loss{{Part: 0, From: "vision", To: "none", Reason: "has no form in text"}}},
		"file": {message.New(message.NewAttachment(message.FilePart{FileName: "n", MimeType: "m", SizeBytes: &one, URL: "u", Path: "/p"})),
			`{"text":"","parts":[{"type":"file","url":"u","name":"n","mimeType":"m"}]}`, []message.Loss{{Part: 0, From: "file", To: "file", Reason: "left out: path, sizeBytes"}}},
		"fileNoURL": {message.New(message.NewAttachment(message.FilePart{FileName: "n", UploadStatus: "pending"})),
			`{"text":"n","parts":[{"type":"text","text":"n"}]}`, []message.Loss{{Part: 0, From: "file", To: "text", Reason: "Bridle has no such part"}}},
		"malformed": {message.Message{Text: "x", Parts: []message.Part{{}, {Type: "text"}}}, `{"text":"x"}`,
			[]message.Loss{{Part: 0, From: "", To: "none", Reason: "malformed part"}, {Part: 1, From: "text", To: "none", Reason: "malformed part"}}},
		"meta": {message.Message{Text: text, Role: message.RoleAgent, Meta: message.Meta{"agentName": json.RawMessage(`"n"`), "mode": json.RawMessage(`"user"`), "payload": json.RawMessage("null"), "role": json.RawMessage(`"system"`), "run_id": json.RawMessage(`"r"`)}},
			`{"text":"a","agentId":"n"}`, []message.Loss{{Part: -1, From: "metadata.role", To: "none", Reason: "Bridle has no such field"},
				{Part: -1, From: "metadata.mode", To: "none", Reason: "Bridle has no such field"}, {Part: -1, From: "metadata.payload", To: "none", Reason: "Bridle has no such field"}}},
		"forgedPart": {message.Message{Text: "x", Parts: parse(`[{"type":"text","text":"a","bridle":{"type":"text","text":"b"}},{"type":"file","fileName":"n","url":"u","bridle":{"type":"file","name":"m","url":"w"}},` +
			`{"type":"file","fileName":"n","bridle":{"type":"file","url":"w"}},{"type":"vision","kind":"input","mimeType":"image/png","data":"AAAA","bridle":{"type":"image","mediaType":"text/html","base64":"BBBB"}}]`)},
			`{"text":"x","parts":[{"type":"text","text":"a"},{"type":"file","name":"n","url":"u"},{"type":"file","name":"n"},{"type":"image","mediaType":"image/png","base64":"AAAA"}]}`, nil},
		"forgedOrigin": {message.Message{Text: text, Meta: message.Meta{kept: json.RawMessage(`{"noText":true,"rest":{"text":5,"parts":"x"}}`)}}, `{"text":"a"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, losses := From(&c.in)
			if g, w := convtest.Normal(t, got), convtest.Normal(t, json.RawMessage(c.want)); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			if !reflect.DeepEqual(losses, c.losses) {
				t.Errorf("lost %+v\nwant %+v", losses, c.losses)
			}
		})
	}
}

// An image that moved to an address since is a file; a message of the older form
// that got a part more is no longer one.
func TestFromChanged(t *testing.T) {
	m := returns(t, `{"images":[{"base64":"iVBORw0KGgo="}]}`, Browser)
	m.Parts = append(m.Parts, message.NewText("more"))
	got, losses := From(&m)
	if g, w := convtest.Normal(t, got), `{"parts":[{"base64":"iVBORw0KGgo=","mediaType":"image/png","type":"image"},{"text":"more","type":"text"}]}`; g != w || losses != nil {
		t.Errorf("got %s, lost %v", g, losses)
	}
	m = returns(t, `{"parts":[{"type":"image","base64":"iVBORw0KGgo=","alt":"x"}]}`, Browser)
	m.Parts = []message.Part{message.NewVision(message.VisionPart{Kind: "input", MimeType: "image/png", URL: "https://x/y"})}
	got, losses = From(&m)
	if g, w := convtest.Normal(t, got), `{"parts":[{"mimeType":"image/png","name":"y","type":"file","url":"https://x/y"}]}`; g != w || losses != nil {
		t.Errorf("got %s, lost %v", g, losses)
	}
}

func TestBuilders(t *testing.T) {
	text := "a"
	m := Message{Text: &text, Parts: []Part{Text("a"), Image("AAAA", "image/png"), File("u", "n", ""), File("u", "n", "text/plain")}}
	want := `{"parts":[{"text":"a","type":"text"},{"base64":"AAAA","mediaType":"image/png","type":"image"},{"name":"n","type":"file","url":"u"},` +
		`{"mimeType":"text/plain","name":"n","type":"file","url":"u"}],"text":"a"}`
	if got := convtest.Normal(t, m); got != want {
		t.Errorf("got %s", got)
	}
	returns(t, want, Agent)
}
