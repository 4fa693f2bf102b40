package agui

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/agui"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// speaker makes events of what the hub offers to one run, in an order that AG-UI
// takes.
type speaker struct {
	write   func([]byte) error
	shown   func(*hub.Parcel) *message.Message
	out     []byte             // that is not written yet
	open    map[string]*spoken // texts that are still being made, by their message
	order   []string           // theirs
	handles map[string]string  // messages of the run by what edits call them
	typing  bool
}

func newSpeaker(write func([]byte) error, shown func(*hub.Parcel) *message.Message) *speaker {
	return &speaker{write: write, shown: shown, open: map[string]*spoken{}, handles: map[string]string{}}
}

// spoken is a text as far as the client has it.
type spoken struct {
	id   string // of the message at the client
	text string
	n    int // how often it had to begin anew
}

func (s *speaker) say(e *event) { s.out = e.append(s.out) }

// flush writes what was said.
func (s *speaker) flush() error {
	out := s.out
	s.out = s.out[:0]
	if len(out) == 0 {
		return nil
	}
	return s.write(out)
}

// end closes what is open and says the last event.
func (s *speaker) end(last *event) error {
	for _, id := range s.order {
		if t := s.open[id]; t != nil {
			s.say(&event{Type: textEnd, MessageID: t.id})
		}
	}
	s.open, s.order = map[string]*spoken{}, nil
	s.show(false)
	s.say(last)
	return s.flush()
}

// parcel says what the hub offered.
func (s *speaker) parcel(p *hub.Parcel) {
	if !p.Lossy() {
		if m := s.shown(p); m != nil {
			s.message(m)
		}
		return
	}
	for i := range p.Frames {
		switch f := &p.Frames[i]; f.Type {
		case wire.TypeStartTyping, wire.TypeStopTyping:
			s.show(f.Type == wire.TypeStartTyping)
		case wire.TypeStream:
			s.text(p.Key, f.Text)
		}
	}
}

// show says that somebody types, or does no more.
func (s *speaker) show(typing bool) {
	if s.typing != typing {
		s.typing = typing
		s.custom("typing", map[string]bool{"on": typing}, nil)
	}
}

func (s *speaker) custom(name string, value any, meta json.RawMessage) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic("agui: marshal " + name + ": " + err.Error()) // strings, and JSON that was read
	}
	s.say(&event{Type: custom, Name: name, Value: raw, Metadata: meta})
}

// text brings a message's text to what it is now.
func (s *speaker) text(id, text string) {
	t := s.open[id]
	if t == nil {
		t = &spoken{id: id}
		s.open[id], s.order = t, append(s.order, id)
		s.say(&event{Type: textStart, MessageID: id, Role: model.RoleAssistant})
	}
	rest, ok := strings.CutPrefix(text, t.text)
	if !ok { // AG-UI can only append: it begins anew as another message, and says so
		old := t.id
		s.say(&event{Type: textEnd, MessageID: old})
		t.n++
		t.id, t.text = id+"/r"+strconv.Itoa(t.n), ""
		s.custom("message_replaced", map[string]string{"messageId": old, "by": t.id}, nil)
		s.say(&event{Type: textStart, MessageID: t.id, Role: model.RoleAssistant})
		rest = text
	}
	if rest != "" {
		s.say(&event{Type: textContent, MessageID: t.id, Delta: rest})
	}
	t.text = text
}

// message says a whole message, part by part: its text as far as it is new, tool
// calls as tool calls, and all that text can't say as an event of its own.
func (s *speaker) message(m *message.Message) {
	if a := render.ActOf(m); s.act(m, a) {
		return
	}
	parts := message.Complete(m.All())
	meta := publicMeta(m)
	switch text, ok := textOf(parts); {
	case s.open[m.ID] != nil: // it was streamed: its text comes first
		s.text(m.ID, text)
	case !ok && !hasTools(parts): // what clients show that know text alone
		if near := nearest(m); near != "" {
			s.text(m.ID, near)
		}
	}
	streamed := s.open[m.ID] != nil
	results := 0
	for i, p := range parts {
		if isText(p) {
			if !streamed {
				text, _ := textOf(parts[:i+1])
				s.text(m.ID, text)
			}
			continue
		}
		results += s.part(s.idOf(m.ID), p, results, meta)
	}
	id := s.idOf(m.ID)
	if s.open[m.ID] != nil {
		s.say(&event{Type: textEnd, MessageID: id, Metadata: meta})
		delete(s.open, m.ID)
	}
	if h := m.Meta.String(message.MetaPreviewHandle); h != "" {
		s.handles[h] = id
	}
}

// idOf is what the client knows a message by.
func (s *speaker) idOf(id string) string {
	if t := s.open[id]; t != nil {
		return t.id
	}
	return id
}

// part says one part that is no text; it returns how many results of tools it was.
func (s *speaker) part(id string, p message.Part, results int, meta json.RawMessage) int {
	switch p.Type {
	case message.TypeToolCall:
		c, err := message.As[message.ToolCallPart](p)
		if err != nil || c.ToolCallID == "" {
			break
		}
		s.toolCall(id, c, p, meta)
		return 0
	case message.TypeToolResult:
		r, err := message.As[message.ToolResultPart](p)
		if err != nil || r.ToolCallID == "" {
			break
		}
		content := valueText(r.Output)
		if len(r.Error) > 0 && content == "" {
			content = valueText(r.Error)
		}
		s.say(&event{Type: toolCallResult, MessageID: resultID(id, results+1), ToolCallID: r.ToolCallID, Content: &content, Role: model.RoleTool, Metadata: meta})
		return 1
	}
	s.custom(p.Type, p, meta)
	return 0
}

// resultID is the id of the n-th result that a message holds, which at a client
// is a message of its own.
func resultID(id string, n int) string { return id + "/" + strconv.Itoa(n) }

// toolCall says a call, and what of it AG-UI has no field for.
func (s *speaker) toolCall(id string, c message.ToolCallPart, p message.Part, meta json.RawMessage) {
	s.say(&event{Type: toolCallStart, ToolCallID: c.ToolCallID, ToolCallName: c.ToolName, ParentMessageID: id, Metadata: meta})
	if args := valueText(c.Input); args != "" {
		s.say(&event{Type: toolCallArgs, ToolCallID: c.ToolCallID, Delta: args})
	}
	s.say(&event{Type: toolCallEnd, ToolCallID: c.ToolCallID})
	switch c.Status {
	case "", message.ToolRequested, message.ToolExecuting, message.ToolCompleted: // which its events say
		if len(p.Beside("toolCallId", "toolName", "input", "status")) == 0 {
			return
		}
	}
	s.custom(p.Type, p, meta)
}

// act says what a message does to an earlier one; false if it is a message of its
// own, or more than that.
func (s *speaker) act(m *message.Message, a render.Act) bool {
	switch a.Kind {
	case render.ActDelete:
		s.custom("delete_message", map[string]string{"messageId": a.ID}, nil)
		return true
	case render.ActReact:
		s.custom("reaction", map[string]any{"messageId": a.ID, "emoji": a.Emoji, "remove": a.Remove}, nil)
		return true
	case render.ActEdit: // it is text too, as in the history
		id := a.ID
		if id == "" {
			id = s.handles[a.Handle]
		}
		if id != "" {
			s.custom("update_message", map[string]string{"messageId": id, "text": m.Text}, nil)
		}
	}
	return false
}

func isText(p message.Part) bool { return p.Type == message.TypeText || p.Type == message.TypeMarkdown }

// textOf is the text of the parts, as that of a message is; false if none of them
// is text.
func textOf(parts []message.Part) (string, bool) {
	var texts []string
	for _, p := range parts {
		if isText(p) {
			texts = append(texts, message.TextField(p.Raw(), p.Type)) // either has a field of its name
		}
	}
	return strings.Join(texts, "\n"), texts != nil
}

// nearest is the text that stands for a message without any, as in the history.
func nearest(m *message.Message) string {
	one, _ := model.FromAsList(m)
	var texts []string
	var list []struct{ Text string }
	if json.Unmarshal(one.Content, &list) == nil {
		for _, c := range list {
			if c.Text != "" {
				texts = append(texts, c.Text)
			}
		}
	}
	if len(texts) == 0 {
		return render.Text(m) // such as the address of a picture without a caption
	}
	return strings.Join(texts, "\n")
}

func hasTools(parts []message.Part) bool {
	for _, p := range parts {
		if p.Type == message.TypeToolCall || p.Type == message.TypeToolResult {
			return true
		}
	}
	return false
}

// publicMeta is the metadata that clients are told; nil = none.
func publicMeta(m *message.Message) json.RawMessage {
	if len(m.Meta) == 0 {
		return nil
	}
	if _, ok := m.Meta[message.MetaRunID]; ok {
		meta := message.Meta{}
		for k, v := range m.Meta {
			meta[k] = v
		}
		m.Meta = meta.With(message.MetaMessageID, m.ID)
	}
	bare := message.Message{Role: m.Role, Meta: m.Meta}
	out, _ := model.From(&bare)
	return out.More["metadata"]
}

// valueText is the text that a JSON string holds, and other JSON as it is.
func valueText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
