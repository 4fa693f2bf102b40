package swarm

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// From is the swarm's message, with what it can't carry. Texts become the
// content, images and tool calls have fields of their own, and what has an
// address or is a form travels in the payload, where Canonical finds it. All
// other parts add their text to the content, or get lost if they have none. A
// message is of the role tool if it holds the result of one call and no text of
// its own. Ids that parts got here are left out.
func From(m *message.Message) (Message, []message.Loss) {
	var o origin
	if raw, ok := m.Meta[kept]; ok && json.Unmarshal(raw, &o) != nil {
		o = origin{}
	}
	var before Message
	if before.read(o.Rest) != nil {
		before, o = Message{}, origin{} // not of our making
	}
	f := from{Message: Message{Role: role(m), Rest: before.Rest, Payload: m.Meta[metaPayload]}, result: onlyResult(m)}
	f.open(m.Meta[metaPayload])
	for i, p := range m.Parts {
		f.part(i, p)
	}
	f.close()
	content := f.content(m)
	if content != "" || !slices.Contains(o.Absent, "content") {
		f.Content = &content
	}
	if name, ok := (fields)(m.Meta).lookup(metaAgentName); ok || !slices.Contains(o.Absent, "agentName") {
		f.AgentName = &name
	}
	mode, ok := (fields)(m.Meta).lookup(metaMode)
	if !ok {
		mode = ModeUser
		if f.Role == RoleTool {
			mode = ModeTool
		}
	}
	if ok || !slices.Contains(o.Absent, "mode") {
		f.Mode = &mode
	}
	if f.ToolCallID == nil {
		f.ToolCallID = before.ToolCallID
	}
	return f.Message, f.losses
}

func role(m *message.Message) string {
	if m.Role != message.RoleAgent {
		return RoleUser
	}
	if given, ok := (fields)(m.Meta).lookup(message.MetaRole); ok && given != RoleUser {
		return given
	}
	return RoleAssistant
}

// onlyResult is the place of the tool result that makes the message one of a
// tool; -1 = none.
func onlyResult(m *message.Message) int {
	at, others := -1, false
	for i, p := range m.Parts {
		switch p.Type {
		case message.TypeToolResult:
			if _, err := message.As[message.ToolResultPart](p); err != nil || at >= 0 {
				return -1
			}
			at = i
		case message.TypeText, message.TypeToolCall:
			others = true
		}
	}
	if others && role(m) != RoleTool {
		return -1
	}
	return at
}

// from converts the parts of one message.
type from struct {
	Message
	result  int    // place of the part that is the content of a tool
	room    bool   // the payload can take parts
	payload fields // what it holds beside them
	parts   []fields
	texts   []string
	losses  []message.Loss
}

func (f *from) lose(i int, what, to, reason string) {
	f.losses = append(f.losses, message.Loss{Part: i, From: what, To: to, Reason: reason})
}

// open looks whether a payload has room for parts: it is an object that has none
// of its own.
func (f *from) open(payload json.RawMessage) {
	if payload == nil {
		f.room = true
		return
	}
	if json.Unmarshal(payload, &f.payload) == nil {
		_, taken := f.payload[payloadParts]
		f.room = !taken
	}
}

// close puts the parts that travel into the payload.
func (f *from) close() {
	if len(f.parts) == 0 {
		return
	}
	all := fields{}
	for name, raw := range f.payload {
		all[name] = raw
	}
	raw, err := json.Marshal(f.parts)
	if err != nil {
		panic("swarm: marshal parts: " + err.Error()) // they were read from JSON
	}
	all[payloadParts] = raw
	if raw, err = json.Marshal(all); err != nil {
		panic("swarm: marshal a payload: " + err.Error()) // likewise
	}
	f.Payload = raw
}

// content is what the parts say, or the text of a message whose parts say
// nothing.
func (f *from) content(m *message.Message) string {
	if len(m.Parts) == 0 {
		return m.Text
	}
	given := m.Given()
	if len(f.texts) == 0 {
		return given
	}
	if given != message.RollUp(m.Parts) {
		f.lose(-1, "text", message.LossNone, "the parts say something else")
	}
	return strings.Join(f.texts, "\n")
}

func (f *from) part(i int, p message.Part) {
	var raw fields
	if json.Unmarshal(p.Raw(), &raw) != nil || raw == nil {
		f.lose(i, p.Type, message.LossNone, "malformed part")
		return
	}
	view, err := p.View()
	if err != nil && !errors.Is(err, message.ErrUnknownType) {
		f.lose(i, p.Type, message.LossNone, "malformed part")
		return
	}
	switch v := view.(type) {
	case message.TextPart:
		f.texts = append(f.texts, v.Text)
		f.beside(i, p, "content", "text")
		return
	case message.ToolCallPart:
		f.call(i, p, v, raw)
		return
	case message.ToolResultPart:
		if i == f.result {
			f.answer(i, p, v)
			return
		}
	case message.VisionPart:
		if mime, err := sniff(v.Data); err == nil {
			f.image(i, p, v, mime)
			return
		}
	}
	if f.room && travels(p) {
		f.travel(i, p, raw)
		return
	}
	f.plain(i, p)
}

func (f *from) call(i int, p message.Part, v message.ToolCallPart, raw fields) {
	c := ToolCall{ID: v.ToolCallID, Type: toolFunction, Function: Function{Name: v.ToolName, Arguments: compact(v.Input)}}
	if given, ok := raw[kept]; ok {
		var whole ToolCall
		if json.Unmarshal(given, &whole) == nil && whole.says(v) {
			c = whole
		}
	}
	f.ToolCalls = append(f.ToolCalls, c)
	carried := []string{"toolCallId", "toolName", "input", kept}
	if v.Status == message.ToolRequested {
		carried = append(carried, "status")
	}
	f.beside(i, p, "tool_calls", carried...)
}

func (f *from) answer(i int, p message.Part, v message.ToolResultPart) {
	f.Role, f.ToolCallID = RoleTool, &v.ToolCallID
	var output string
	if json.Unmarshal(v.Output, &output) != nil {
		output = compact(v.Output)
	}
	f.texts = append(f.texts, output)
	carried := []string{"toolCallId", "output"}
	if v.ToolName == "" {
		carried = append(carried, "toolName")
	}
	f.beside(i, p, "content", carried...)
}

func (f *from) image(i int, p message.Part, v message.VisionPart, mime string) {
	f.Images = append(f.Images, v.Data)
	carried := []string{"kind", "data"}
	if v.MimeType == mime {
		carried = append(carried, "mimeType")
	}
	if v.Caption != "" {
		f.tell(i, p.Type, v.Caption, "images have no captions")
		carried = append(carried, "caption")
	}
	f.beside(i, p, "images", carried...)
}

// travel puts a part in the payload, but not what is the host's own of it.
func (f *from) travel(i int, p message.Part, raw fields) {
	delete(raw, "id")
	if local := paths(p, raw); len(local) > 0 {
		for _, name := range local {
			delete(raw, name)
		}
		f.lose(i, p.Type, "payload", "left out: path")
	}
	f.parts = append(f.parts, raw)
}

// beside tells which fields of a part are left out.
func (f *from) beside(i int, p message.Part, to string, carried ...string) {
	if left := p.Beside(carried...); len(left) > 0 {
		f.lose(i, p.Type, to, "left out: "+strings.Join(left, ", "))
	}
}

// plain adds the nearest text of a part to the content.
func (f *from) plain(i int, p message.Part) {
	if text := p.Plain(); text != "" {
		f.tell(i, p.Type, text, "the model has no such part")
		return
	}
	f.lose(i, p.Type, message.LossNone, "has no form in text")
}

// tell puts text in the place of something of type typ.
func (f *from) tell(i int, typ, text, reason string) {
	f.texts = append(f.texts, text)
	f.lose(i, typ, message.LossText, reason)
}

// compact is JSON without space; "" for nothing.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}
