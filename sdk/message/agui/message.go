// Package agui converts the messages of AG-UI, the protocol between agents and
// web clients, to canonical ones and back.
//
// What comes from AG-UI goes back identically: what the canonical model has no
// place for is kept under the key "agui" of the part or of the metadata. What
// goes out from elsewhere takes its nearest form, and each loss is reported.
package agui

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Payload types of the custom parts that carry what no other part can.
const (
	PayloadContent = "agui.content" // data is one input content, as it came: of an unknown type, or with inline data that is no image
	PayloadObject  = "agui.object"  // data is a whole content that is an object, such as that of an activity
	PayloadCall    = "agui.call"    // data is a tool call of another shape than {id, type: function, function: {name, arguments}}
)

// Roles of AG-UI. Other roles are taken too.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleTool      = "tool"
	RoleActivity  = "activity"
	RoleReasoning = "reasoning"
)

// Message is one message of AG-UI. Fields that are empty or of another type
// than here are in More, as they came.
type Message struct {
	ID         string
	Role       string
	Name       string
	Content    json.RawMessage   // a string, an array of objects with a type, an object or null; nil = absent
	ToolCalls  []json.RawMessage // each {id, type, function: {name, arguments}}
	ToolCallID string            // role tool: the call that it answers
	Error      string            // role tool: why the call failed
	More       map[string]json.RawMessage
}

// Parse reads one message: an object with a role whose content and toolCalls
// are of their types. The error names the field.
func Parse(b []byte) (Message, error) {
	var m Message
	if err := m.UnmarshalJSON(b); err != nil {
		return Message{}, fmt.Errorf("agui: %w", err)
	}
	return m, nil
}

// UnmarshalJSON implements json.Unmarshaler, with the errors of Parse.
func (m *Message) UnmarshalJSON(b []byte) error {
	var raw json.RawMessage // a copy, and valid
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return m.read(raw)
}

// read is UnmarshalJSON of valid JSON, which the message keeps.
func (m *Message) read(raw json.RawMessage) error {
	o, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	if str(o["role"]) == "" {
		return fmt.Errorf("role: found %s, expected user, assistant or another role", found(o["role"]))
	}
	if err := checkContent(o["content"]); err != nil {
		return err
	}
	if err := checkCalls(o["toolCalls"]); err != nil {
		return err
	}
	*m = fromObject(o)
	return nil
}

// MarshalJSON implements json.Marshaler. Values that are no JSON are an error of
// json.Marshal.
func (m Message) MarshalJSON() ([]byte, error) {
	o := object(maps.Clone(m.More)).orNew()
	for name, s := range map[string]string{"id": m.ID, "role": m.Role, "name": m.Name, "toolCallId": m.ToolCallID, "error": m.Error} {
		if s != "" {
			o[name] = quote(s)
		}
	}
	if m.Content != nil {
		o["content"] = m.Content
	}
	if len(m.ToolCalls) > 0 {
		o["toolCalls"] = array(m.ToolCalls)
	}
	return o.json(), nil
}

// fromObject makes a message of its fields, and keeps the object.
func fromObject(o object) Message {
	m := Message{
		ID: str(o.take("id")), Role: str(o.take("role")), Name: str(o.take("name")),
		ToolCallID: str(o.take("toolCallId")), Error: str(o.take("error")), Content: o["content"],
	}
	delete(o, "content")
	if calls, err := readArray(o["toolCalls"]); err == nil && len(calls) > 0 {
		m.ToolCalls = calls
		delete(o, "toolCalls")
	}
	if len(o) > 0 {
		m.More = o
	}
	return m
}

func checkContent(raw json.RawMessage) error {
	switch kind(raw) {
	case 0, '"', '{', 'n':
		return nil
	case '[':
	default:
		return fmt.Errorf("content: found %s, expected a string or an array of contents", found(raw))
	}
	list, err := readArray(raw)
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	for i, one := range list {
		o, err := readObject(one)
		if err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		if str(o["type"]) == "" {
			return fmt.Errorf("content[%d].type: found %s, expected the name of a content type", i, found(o["type"]))
		}
	}
	return nil
}

func checkCalls(raw json.RawMessage) error {
	if k := kind(raw); k == 0 || k == 'n' {
		return nil
	}
	list, err := readArray(raw)
	if err != nil {
		return fmt.Errorf("toolCalls: %w", err)
	}
	for i, one := range list {
		if kind(one) != '{' {
			return fmt.Errorf("toolCalls[%d]: found %s, expected an object", i, found(one))
		}
	}
	return nil
}

// found names a value's kind for an error.
func found(raw json.RawMessage) string {
	switch kind(raw) {
	case 0:
		return "nothing"
	case '"':
		if len(raw) == len(`""`) {
			return "an empty string"
		}
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}
