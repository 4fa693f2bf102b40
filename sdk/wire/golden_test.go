package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden frames anew")

var (
	routing = Routing{SessionKey: "wechat:gid42:user123", ConversationID: "gid42", ReplyCtx: `"wx-msg-001"`}
	alice   = Inbound{Routing: routing, UserID: "user123", UserName: "Alice"}
)

// toHost are the golden frames of an adapter.
var toHost = map[string]*Inbound{
	"register":      {Type: TypeRegister, Register: &Register{Token: "abc", Platform: "wechat", Capabilities: []string{"text", "card", "buttons", "image", "typing"}, Metadata: `{"version":"1.0.0"}`}},
	"register_min":  {Type: TypeRegister, Register: &Register{Platform: "irc", Capabilities: []string{}}},
	"register_caps": {Type: TypeRegister, Register: &Register{Platform: "matrix", Capabilities: CapNames(), Metadata: `{}`}},
	"message":       from(alice, func(m *Inbound) { m.Type, m.Text = TypeMessage, "Hello" }),
	"message_min":   {Type: TypeMessage},
	"message_id":    from(alice, func(m *Inbound) { m.Type, m.Text, m.MessageID = TypeMessage, "Hello", "wx-1" }),
	"message_text": from(alice, func(m *Inbound) {
		m.Type, m.Text = TypeMessage, "<b>&amp;</b> \"quoted\" back\\slash /path\nline\ttab\r\u0000\u001f\u007f \u2028 zażółć 漢字 👩‍👩‍👧 \ufffd"
	}),
	"message_ctx_object": from(alice, func(m *Inbound) {
		m.Type, m.Text, m.ReplyCtx = TypeMessage, "Hello", `{ "b" : [1, 2.50, 1e3, -0], "a":null, "a":"\u00e9\/é", "n":12345678901234567890 }`
	}),
	"message_ctx_number": from(alice, func(m *Inbound) { m.Type, m.Text, m.ReplyCtx = TypeMessage, "Hello", "1.0" }),
	"message_ctx_bool":   from(alice, func(m *Inbound) { m.Type, m.Text, m.ReplyCtx = TypeMessage, "Hello", "false" }),
	"message_ctx_null":   from(alice, func(m *Inbound) { m.Type, m.Text, m.ReplyCtx = TypeMessage, "Hello", "null" }),
	"message_ctx_empty":  from(alice, func(m *Inbound) { m.Type, m.Text, m.ReplyCtx = TypeMessage, "Hello", `""` }),
	"card_action":        from(alice, func(m *Inbound) { m.Type, m.Action, m.ReplyCtx = TypeCardAction, "cmd:/cancel s1", `"wx-msg-002"` }),
	"card_action_min":    {Type: TypeCardAction, Action: "yes"},
	"ping":               {Type: TypePing},
}

// toAdapter are the golden frames of the host.
var toAdapter = map[string]*Outbound{
	"register_ack":        {Frame: Frame{Type: TypeRegisterAck}, Ack: &RegisterAck{OK: true}},
	"register_ack_failed": {Frame: Frame{Type: TypeRegisterAck}, Ack: &RegisterAck{Error: RefusedInvalidToken}},
	"send":                content(Frame{Type: TypeSend, Text: "Acknowledged."}),
	"send_unrouted":       {Frame: Frame{Type: TypeSend, Text: "Acknowledged."}},
	"send_ctx_object": {Frame: Frame{Type: TypeSend, Text: "Acknowledged."},
		Routing: Routing{SessionKey: "s", ConversationID: "c", ReplyCtx: `{ "b" : [1, 2.50], "a":null, "a":"\u00e9\/é" }`}},
	"send_text": content(Frame{Type: TypeSend, Text: "<b>&amp;</b> \"quoted\" back\\slash /path\nline\ttab\r\u0000\u001f\u007f \u2028 zażółć 漢字 👩‍👩‍👧 \ufffd"}),
	"send_card": content(Frame{Type: TypeSendCard, Card: &Card{
		Header: &Header{Title: "Title", Color: "blue"},
		Elements: []Element{
			{Type: ElementMarkdown, Content: "**bold** text"},
			{Type: ElementDivider},
			{Type: ElementActions, Buttons: [][]Button{{{"Yes", "cmd:/confirm", "primary"}, {"No", "cmd:/abort", "danger"}}, {{"Later", "later", "default"}}}},
			{Type: ElementListItem, Text: "An item", Button: &Button{"Open", "open:1", ""}},
			{Type: ElementListItem, Text: "An item without a button"},
			{Type: ElementSelect, Placeholder: "Choose a colour", InitValue: "red", Options: []Option{{"Red", "red"}, {"Blue", "blue"}}, CallbackPrefix: "colour:"},
			{Type: ElementNote, Text: "A note"},
		},
	}}),
	"send_card_no_header": content(Frame{Type: TypeSendCard, Card: &Card{Elements: []Element{{Type: ElementMarkdown, Content: "text"}}}}),
	"send_card_no_color":  content(Frame{Type: TypeSendCard, Card: &Card{Header: &Header{Title: "Title"}, Elements: []Element{}}}),
	"send_buttons":        content(Frame{Type: TypeSendButtons, Text: "Pick one:", Buttons: [][]Button{{{"Yes", "cmd:/confirm", ""}, {"No", "cmd:/abort", ""}}}}),
	"send_buttons_styled": content(Frame{Type: TypeSendButtons, Buttons: [][]Button{{{"Yes", "y", "primary"}}, {{"No", "n", "danger"}}}}),
	"update_message":      content(Frame{Type: TypeUpdateMessage, PreviewHandle: "h1", Text: "Updated"}),
	"send_image":          content(Frame{Type: TypeSendImage, Image: &Image{URL: "https://example.org/a.png?x=1&y=<2>", Caption: "optional"}}),
	"send_image_min":      content(Frame{Type: TypeSendImage, Image: &Image{URL: "https://example.org/a.png"}}),
	"send_image_path":     content(Frame{Type: TypeSendImage, Image: &Image{Path: "/abs/a.png"}}),
	"send_file":           content(Frame{Type: TypeSendFile, File: &File{URL: "https://example.org/x.pdf", Filename: "x.pdf", Caption: "optional"}}),
	"send_file_path":      content(Frame{Type: TypeSendFile, File: &File{Path: "/abs/x.pdf", Filename: "x.pdf"}}),
	"start_typing":        content(Frame{Type: TypeStartTyping}),
	"stop_typing":         content(Frame{Type: TypeStopTyping}),
	"pong":                {Frame: Frame{Type: TypePong}},
	"error":               {Frame: Frame{Type: TypeError}, Error: &Error{Code: CodeMissingField, Message: "text: absent, expected a string"}},
	"error_ref":           {Frame: Frame{Type: TypeError}, Error: &Error{Code: CodeStorageUnavailable, Message: "the message was not stored: send it again later", Ref: "wx-1"}},
}

func from(in Inbound, change func(*Inbound)) *Inbound {
	change(&in)
	return &in
}

func content(f Frame) *Outbound { return &Outbound{Frame: f, Routing: routing} }

// encode is the frame as the host writes it.
func (o *Outbound) encode() []byte {
	switch o.Type {
	case TypeRegisterAck:
		return o.Ack.Append(nil)
	case TypePong:
		return AppendPong(nil)
	case TypeError:
		return o.Error.Append(nil)
	case TypeMessageAck:
		return o.MessageAck.Append(nil)
	case TypeUploadAck:
		return o.UploadAck.Append(nil)
	}
	return o.Append(nil, o.Routing)
}

func TestGoldenToHost(t *testing.T) {
	all := maps.Clone(toHost)
	maps.Copy(all, toHostV11)
	checkNames(t, "to_host", slices.Collect(maps.Keys(all)))
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			frame := golden(t, "to_host", name, want.Append(nil))
			got, err := DecodeInboundAs(frame, dialectByName(name))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("decoded\n%+v, want\n%+v", got, want)
			}
			if again := got.Append(nil); !bytes.Equal(again, frame) {
				t.Errorf("encoded again\n%s, want\n%s", again, frame)
			}
		})
	}
}

func TestGoldenToAdapter(t *testing.T) {
	all := maps.Clone(toAdapter)
	maps.Copy(all, toAdapterV11)
	checkNames(t, "to_adapter", slices.Collect(maps.Keys(all)))
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			frame := golden(t, "to_adapter", name, want.encode())
			got, err := DecodeOutbound(frame)
			if err != nil {
				t.Fatal(err)
			}
			got.Plain = want.Plain // how it is written, not what it says
			if !reflect.DeepEqual(got, want) {
				t.Errorf("decoded\n%+v, want\n%+v", got, want)
			}
			if again := got.encode(); !bytes.Equal(again, frame) {
				t.Errorf("encoded again\n%s, want\n%s", again, frame)
			}
		})
	}
}

// frames is where the golden frames are, for programs in any language.
const frames = "../protocol/frames"

// golden checks that the file holds the frame, or writes it, and returns it.
func golden(t *testing.T, dir, name string, frame []byte) []byte {
	t.Helper()
	path := filepath.Join(frames, dir, name+".json")
	if *update {
		if err := os.WriteFile(path, append(slices.Clone(frame), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.TrimSuffix(want, []byte("\n"))
	if !bytes.Equal(frame, want) {
		t.Errorf("encoded\n%s, the file holds\n%s", frame, want)
	}
	return want
}

// checkNames finds files that no test reads.
func checkNames(t *testing.T, dir string, tests []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(frames, dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".json")
		if !slices.Contains(tests, name) {
			t.Errorf("%s belongs to no test", p)
		}
	}
}

// The examples of the protocol's frame section; "…" stands for what it elides.
func TestExamples(t *testing.T) {
	for _, frame := range []string{
		`{"type":"register","token":"abc","platform":"wechat","capabilities":["text","card","buttons","image","typing"],"metadata":{"version":"1.0.0"}}`,
		`{"type":"message","session_key":"wechat:gid42:user123","conversation_id":"gid42","user_id":"user123","user_name":"Alice","text":"Hello","reply_ctx":"wx-msg-001"}`,
		`{"type":"card_action","session_key":"wechat:gid42:user123","conversation_id":"gid42","user_id":"user123","user_name":"Alice","action":"cmd:/cancel s1","reply_ctx":"wx-msg-002"}`,
		`{"type":"ping"}`,
	} {
		in, err := DecodeInbound([]byte(frame))
		if err != nil {
			t.Errorf("%s: %v", frame, err)
		} else if got := string(in.Append(nil)); got != frame {
			t.Errorf("got  %s\nwant %s", got, frame)
		}
	}
	for _, frame := range []string{
		`{"type":"register_ack","ok":true}`,
		`{"type":"register_ack","ok":false,"error":"invalid token"}`,
		`{"type":"send","session_key":"wechat:gid42:user123","conversation_id":"gid42","reply_ctx":"wx-msg-001","text":"Acknowledged."}`,
		`{"type":"send_buttons","session_key":"…","conversation_id":"…","reply_ctx":"…","text":"Pick one:","buttons":[[{"text":"Yes","value":"cmd:/confirm"},{"text":"No","value":"cmd:/abort"}]]}`,
		`{"type":"update_message","session_key":"…","conversation_id":"…","reply_ctx":"…","preview_handle":"h1","text":"Updated"}`,
		`{"type":"send_image","session_key":"…","conversation_id":"…","reply_ctx":"…","image":{"url":"https://…","caption":"optional"}}`,
		`{"type":"send_file","session_key":"…","conversation_id":"…","reply_ctx":"…","file":{"path":"/abs/x.pdf","filename":"x.pdf"}}`,
		`{"type":"start_typing","session_key":"…","conversation_id":"…","reply_ctx":"…"}`,
		`{"type":"send","session_key":"","conversation_id":"","reply_ctx":null,"text":"never invented"}`,
	} {
		out, err := DecodeOutbound([]byte(frame))
		if err != nil {
			t.Errorf("%s: %v", frame, err)
		} else if got := string(out.encode()); got != frame {
			t.Errorf("got  %s\nwant %s", got, frame)
		}
	}
}

// A card in both spellings: each key of the document has its twin of the server.
func TestCardSpellings(t *testing.T) {
	var sent struct {
		Card struct {
			Elements []map[string]json.RawMessage `json:"elements"`
		} `json:"card"`
	}
	if err := json.Unmarshal(toAdapter["send_card"].encode(), &sent); err != nil {
		t.Fatal(err)
	}
	twins := map[string]string{
		"Content": "content", "Buttons": "buttons", "Text": "text", "Button": "button", "Placeholder": "placeholder",
		"InitValue": "init_value", "Options": "options", "CallbackPrefix": "callback_prefix",
	}
	counts := map[string]int{"markdown": 1, "divider": 0, "actions": 1, "list_item": 2, "select": 4, "note": 1}
	for _, e := range sent.Card.Elements {
		var name string
		if err := json.Unmarshal(e["type"], &name); err != nil {
			t.Fatal(err)
		}
		n := 0
		for document, server := range twins {
			a, inA := e[document]
			b, inB := e[server]
			if inA != inB || !bytes.Equal(a, b) {
				t.Errorf("%s: %s is %s, %s is %s", name, document, a, server, b)
			}
			if inA {
				n++
			}
		}
		if _, button := e["Button"]; name == "list_item" && !button {
			n++
		}
		if n != counts[name] || len(e) > 1+2*n {
			t.Errorf("%s: found the keys %v", name, e)
		}
	}
}
