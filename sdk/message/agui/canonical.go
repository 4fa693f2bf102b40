package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Canonical is the message as the host knows it. Content that is one string
// makes no part. A message with neither content nor tool calls is
// message.ErrNoContent.
func (m Message) Canonical() (message.Message, error) {
	if err := m.check(); err != nil {
		return message.Message{}, fmt.Errorf("agui: %w", err)
	}
	c := message.Message{ID: m.ID, Role: message.RoleAgent, Status: message.StatusCompleted}
	if m.Role == RoleUser {
		c.Role = message.RoleUser
	}
	k := m.keep()
	if c.Role == message.RoleAgent && m.Role != RoleAssistant {
		c.Meta = c.Meta.With(message.MetaRole, m.Role)
	}
	if m.Role == RoleTool {
		c.Parts = append(c.Parts, m.result(&k))
	} else if err := m.content(&c, &k); err != nil {
		return message.Message{}, err
	}
	for _, raw := range m.ToolCalls {
		c.Parts = append(c.Parts, callPart(raw))
	}
	if len(c.Parts) > 0 {
		c.Text = message.RollUp(c.Parts)
	}
	k.metadata(&c)
	k.store(&c)
	return c, nil
}

// check is of messages that were not parsed. All that is kept must be JSON.
func (m *Message) check() error {
	if m.Content != nil && !json.Valid(m.Content) {
		return errors.New("content: found no JSON")
	}
	for i, raw := range m.ToolCalls {
		if kind(raw) != '{' || !json.Valid(raw) {
			return fmt.Errorf("toolCalls[%d]: found no JSON object", i)
		}
	}
	for name, raw := range m.More {
		if !json.Valid(raw) {
			return fmt.Errorf("%s: found no JSON", name)
		}
	}
	return checkContent(m.Content)
}

// keep is what no part of the message will say.
func (m *Message) keep() keep {
	k := keep{Fields: object(maps.Clone(m.More)).orNew()}
	_, odd := m.More["id"]
	k.NoID = m.ID == "" && !odd
	fields := map[string]string{"name": m.Name}
	if m.Role != RoleTool {
		fields["toolCallId"], fields["error"] = m.ToolCallID, m.Error
	}
	if !knownRole(m.Role) {
		fields["role"] = m.Role
	}
	for name, s := range fields {
		if s != "" {
			k.Fields[name] = quote(s)
		}
	}
	return k
}

func knownRole(role string) bool {
	switch role {
	case RoleUser, RoleAssistant, RoleSystem, RoleDeveloper, RoleTool, RoleActivity, RoleReasoning:
		return true
	}
	return false
}

// content makes the text or the parts of a message of any role but tool.
func (m *Message) content(c *message.Message, k *keep) error {
	raw := bytes.TrimSpace(m.Content)
	calls := len(m.ToolCalls) > 0
	switch kind(raw) {
	case 'n':
		k.Form = formNull
	case '"':
		text := str(raw)
		switch {
		case !calls:
			c.Text = text
			return nil
		case text == "":
			k.Form = formEmpty // an empty part would be sent
		default:
			c.Parts = []message.Part{message.NewText(text)}
		}
	case '{':
		c.Parts = []message.Part{message.NewCustom(PayloadObject, raw)}
	case '[':
		list, err := readArray(raw)
		if err != nil {
			return fmt.Errorf("agui: content: %w", err)
		}
		k.Form = formArray
		for _, one := range list {
			p := contentPart(one, c.Role)
			c.Parts = append(c.Parts, p)
			if p.Type != message.TypeText {
				k.Form = "" // it can be nothing else
			}
		}
	}
	if len(c.Parts) == 0 && !calls {
		return message.ErrNoContent
	}
	return nil
}

// result is the part of a message of role tool.
func (m *Message) result(k *keep) message.Part {
	output := json.RawMessage(bytes.TrimSpace(m.Content))
	switch kind(output) {
	case 0:
		k.Form, output = formAbsent, json.RawMessage("null")
	case 'n':
		k.Form = formNull
	case '"':
	default:
		k.Form = formAsIs
	}
	o := object{"type": quote(message.TypeToolResult), "toolCallId": quote(m.ToolCallID), "toolName": quote(""), "output": output}
	if m.Error != "" {
		o["error"] = quote(m.Error)
	}
	return part(o, mark{})
}

// callPart is the part of one tool call. Arguments that are JSON become the
// input, others are the input as a string.
func callPart(raw json.RawMessage) message.Part {
	call, err := readObject(raw)
	if err != nil {
		return message.NewCustom(PayloadCall, raw)
	}
	function, err := readObject(call["function"])
	id, arguments := call.take("id"), function["arguments"]
	name := function.take("name")
	if err != nil || id == nil || name == nil || !isText(arguments) || str(call["type"]) != "function" {
		return message.NewCustom(PayloadCall, raw)
	}
	for _, used := range []string{"type", "function"} {
		delete(call, used)
	}
	delete(function, "arguments")
	mk := mark{Rest: call.rest(), Inner: function.rest()}
	input := arguments
	if text := str(arguments); json.Valid([]byte(text)) && kind([]byte(text)) != '"' {
		input = json.RawMessage(text)
		if string(marshal(input)) != text {
			mk.Arguments = text
		}
	}
	return part(object{
		"type": quote(message.TypeToolCall), "toolCallId": id, "toolName": name, "input": input,
		"status": quote(message.ToolRequested),
	}, mk)
}
