// Package swarm converts messages of agent-swarm-kit to the host's and back.
// There and back is the identity: what the host has no field for is kept in the
// part or in the metadata, under "swarm".
package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/pontoon-bridge/pontoon/sdk/message/internal/object"
)

// The roles that mean something to the conversion or to agent-swarm-kit; others
// pass too.
const (
	RoleAssistant = "assistant"
	RoleSystem    = "system"
	RoleTool      = "tool" // the output of a tool call
	RoleUser      = "user"
	RoleResque    = "resque" // recovery from an error of the model
	RoleFlush     = "flush"  // the history begins anew
	RoleDeveloper = "developer"
)

// The modes: where a message comes from.
const (
	ModeUser = "user" // a user, or a stateless run
	ModeTool = "tool" // a tool, or the system
)

// Message is one message of a swarm. A nil pointer is a field that is absent,
// which is not the same as an empty one.
type Message struct {
	Role       string          `json:"role"`
	AgentName  *string         `json:"agentName,omitempty"`
	Content    *string         `json:"content,omitempty"`
	Mode       *string         `json:"mode,omitempty"`
	Images     []string        `json:"images,omitempty"`  // base64
	Payload    json.RawMessage `json:"payload,omitempty"` // an object or null; nil = absent
	ToolCalls  []ToolCall      `json:"tool_calls,omitempty"`
	ToolCallID *string         `json:"tool_call_id,omitempty"`

	// Rest is what else came: unknown fields, and known ones other than Payload
	// that are null or an empty array.
	Rest map[string]json.RawMessage `json:"-"`
}

// ToolCall asks for a call of a tool. One that came with more than these fields
// or with others is kept as it came, and what is set here does not count.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // function
	Function Function `json:"function"`

	given json.RawMessage
}

// Function is the tool with the text of its arguments, as a rule JSON.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// toolFunction is the only type of tool calls.
const toolFunction = "function"

// UnmarshalJSON implements json.Unmarshaler. Arguments that are no string, such
// as the object that agent-swarm-kit makes of them, read as their JSON.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	var fields, function map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	if fields == nil {
		return fmt.Errorf("found null, expected an object")
	}
	*c = ToolCall{}
	regular := text(fields, "id", &c.ID) && text(fields, "type", &c.Type) && c.Type == toolFunction && len(fields) == 3
	if json.Unmarshal(fields["function"], &function) != nil {
		function = nil
	}
	regular = text(function, "name", &c.Function.Name) && len(function) == 2 && regular
	if !text(function, "arguments", &c.Function.Arguments) {
		c.Function.Arguments, regular = string(function["arguments"]), false
	}
	if !regular {
		c.given = bytes.Clone(b)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	if c.given != nil {
		return c.given, nil
	}
	type plain ToolCall
	return json.Marshal(plain(c))
}

// text reads a field that is a string; false if it is absent or another type.
func text(fields map[string]json.RawMessage, name string, to *string) bool {
	raw := fields[name]
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, to) == nil
}

// Parse reads a message. It refuses what is not an object, one without a role,
// and known fields of another type, but for the payload.
func Parse(b []byte) (Message, error) {
	var m Message
	if err := m.UnmarshalJSON(b); err != nil {
		return Message{}, fmt.Errorf("parse swarm message: %w", err)
	}
	return m, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all == nil {
		return fmt.Errorf("found null, expected an object")
	}
	var read Message
	if !text(all, "role", &read.Role) {
		return fmt.Errorf("role: found no text, expected the name of a role")
	}
	delete(all, "role")
	if err := read.read(all); err != nil {
		return err
	}
	*m = read
	return nil
}

// read takes the fields of a message other than the role out of all that came;
// the others are the rest.
func (m *Message) read(all map[string]json.RawMessage) error {
	for name, to := range map[string]any{
		"agentName": &m.AgentName, "content": &m.Content, "mode": &m.Mode, "images": &m.Images,
		"tool_calls": &m.ToolCalls, "tool_call_id": &m.ToolCallID,
	} {
		if err := object.Take(all, name, to); err != nil {
			return err
		}
	}
	m.Payload = all["payload"]
	delete(all, "payload")
	if m.Rest = all; len(all) == 0 {
		m.Rest = nil
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	all := make(map[string]any, len(m.Rest)+8)
	for name, raw := range m.Rest {
		all[name] = raw
	}
	all["role"] = m.Role
	for name, s := range map[string]*string{"agentName": m.AgentName, "content": m.Content, "mode": m.Mode, "tool_call_id": m.ToolCallID} {
		if s != nil {
			all[name] = *s
		}
	}
	if len(m.Images) > 0 {
		all["images"] = m.Images
	}
	if m.Payload != nil {
		all["payload"] = m.Payload
	}
	if len(m.ToolCalls) > 0 {
		all["tool_calls"] = m.ToolCalls
	}
	return json.Marshal(all)
}
