package swarm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Metadata of the host that has a field in a swarm's message.
const (
	metaAgentName = "agentName" // string: who spoke, in every model
	metaMode      = "mode"      // string: ModeUser or ModeTool
	metaPayload   = "payload"   // any JSON; null is not the same as absent
)

const (
	kept         = message.MetaSwarm // key of what is kept, in metadata and in parts
	payloadParts = "bridge.parts"    // key of the parts that travel in a payload
)

// origin is what the host's message does not show of the swarm's, in its
// metadata.
type origin struct {
	Absent []string                   `json:"absent,omitempty"` // of the fields that a message should have
	Rest   map[string]json.RawMessage `json:"rest,omitempty"`
}

// fields is a JSON object, field by field.
type fields map[string]json.RawMessage

func (f fields) lookup(name string) (string, bool) {
	var s string
	ok := text(f, name, &s)
	return s, ok
}

// Canonical is the host's message: plain text if there is only content, else
// parts in the order content, images, tool calls, parts that travelled in the
// payload. The content of a tool that answers a call is a tool result without
// the tool's name. The error is message.ErrNoContent if there is nothing of all
// this, or tells of an image that is no base64. Its parts have no ids.
func (m Message) Canonical() (message.Message, error) {
	o := origin{Rest: maps.Clone(m.Rest)}
	carried, payload := unpack(m.Payload)
	parts, err := m.attached()
	if err != nil {
		return message.Message{}, fmt.Errorf("swarm message: %w", err)
	}
	parts = append(parts, carried...)
	answers := m.Role == RoleTool && m.ToolCallID != nil && m.Content != nil
	switch {
	case answers:
		parts = slices.Insert(parts, 0, message.NewToolResult(*m.ToolCallID, "", quote(*m.Content)))
	case m.Content != nil && *m.Content != "" && len(parts) > 0:
		parts = slices.Insert(parts, 0, message.NewText(*m.Content))
	}
	if m.ToolCallID != nil && !answers {
		if o.Rest == nil {
			o.Rest = map[string]json.RawMessage{}
		}
		o.Rest["tool_call_id"] = quote(*m.ToolCallID)
	}
	out := message.Message{Role: message.RoleAgent, Status: message.StatusCompleted, Parts: parts, Text: message.RollUp(parts)}
	if m.Role == RoleUser {
		out.Role = message.RoleUser
	}
	if len(parts) == 0 {
		if m.Content == nil {
			return message.Message{}, message.ErrNoContent
		}
		out.Text = *m.Content
	}
	out.Meta, err = m.meta(o, payload)
	return out, err
}

// attached are the parts of images and tool calls.
func (m Message) attached() ([]message.Part, error) {
	var out []message.Part
	kind := message.VisionOutput
	if m.Role == RoleUser {
		kind = message.VisionInput
	}
	for i, data := range m.Images {
		mime, err := sniff(data)
		if err != nil {
			return nil, fmt.Errorf("images[%d]: %w", i, err)
		}
		out = append(out, message.NewVision(message.VisionPart{Kind: kind, MimeType: mime, Data: data}))
	}
	for i, c := range m.ToolCalls {
		p, err := c.part()
		if err != nil {
			return nil, fmt.Errorf("tool_calls[%d]: %w", i, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// part is the tool call with the value of its arguments. The call itself is kept
// in it if the part's fields don't give its exact bytes.
func (c ToolCall) part() (message.Part, error) {
	out := fields{
		"type": quote(message.TypeToolCall), "toolCallId": quote(c.ID), "toolName": quote(c.Function.Name),
		"status": quote(string(message.ToolRequested)), "input": c.input(),
	}
	if string(out["input"]) != c.Function.Arguments || c.given != nil || c.Type != toolFunction {
		whole, err := json.Marshal(c)
		if err != nil {
			return message.Part{}, err
		}
		out[kept] = whole
	}
	return out.part()
}

// input is the value of the arguments, or their text if they are no JSON: half
// of it, or none.
func (c ToolCall) input() json.RawMessage {
	raw, err := json.Marshal(json.RawMessage(c.Function.Arguments))
	if err != nil {
		return quote(c.Function.Arguments)
	}
	return raw
}

// says reports whether the part is that of the call, so that nothing else is
// called than what was seen and approved here.
func (c ToolCall) says(v message.ToolCallPart) bool {
	want, err := json.Marshal(c.input())
	if err != nil {
		return false
	}
	have, err := json.Marshal(v.Input)
	return err == nil && bytes.Equal(want, have) && c.ID == v.ToolCallID && c.Function.Name == v.ToolName
}

// meta is the message's metadata.
func (m Message) meta(o origin, payload json.RawMessage) (message.Meta, error) {
	var meta message.Meta
	if m.Role != RoleUser && m.Role != RoleAssistant {
		meta = meta.With(message.MetaRole, m.Role)
	}
	if m.AgentName != nil {
		meta = meta.With(metaAgentName, *m.AgentName)
	} else {
		o.Absent = append(o.Absent, "agentName")
	}
	if m.Mode != nil {
		meta = meta.With(metaMode, *m.Mode)
	} else {
		o.Absent = append(o.Absent, "mode")
	}
	if m.Content == nil {
		o.Absent = append(o.Absent, "content")
	}
	if meta == nil {
		meta = message.Meta{}
	}
	if payload != nil {
		meta[metaPayload] = payload
	}
	if len(o.Absent)+len(o.Rest) > 0 {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("swarm message: %w", err)
		}
		meta[kept] = raw
	}
	return meta, nil
}

// unpack takes the parts out of a payload that From put there. A payload that
// From would not have made stays as it is.
func unpack(payload json.RawMessage) ([]message.Part, json.RawMessage) {
	var all fields
	var raws []fields
	if !bytes.Contains(payload, []byte(payloadParts)) {
		return nil, payload // as a rule
	}
	if json.Unmarshal(payload, &all) != nil || json.Unmarshal(all[payloadParts], &raws) != nil || len(raws) == 0 {
		return nil, payload
	}
	parts := make([]message.Part, len(raws))
	for i, raw := range raws {
		p, err := raw.part()
		if _, id := raw["id"]; err != nil || id || !travels(p) || len(paths(p, raw)) > 0 {
			return nil, payload
		}
		parts[i] = p
	}
	if delete(all, payloadParts); len(all) == 0 {
		return parts, nil
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return nil, payload
	}
	return parts, rest
}

// travels reports a part that goes into the payload: what has an address, forms
// and their answers, and what the host does not know either.
func travels(p message.Part) bool {
	view, err := p.View()
	switch v := view.(type) {
	case message.FilePart:
		return v.URL != ""
	case message.VisionPart:
		_, err := sniff(v.Data)
		return v.URL != "" && err != nil // with data it goes to the images
	case message.UIPart, message.UISubmitPart:
		return true
	}
	return errors.Is(err, message.ErrUnknownType)
}

// paths are the keys by which a part of a known type names a file of the host's
// machine: no other machine may, and none needs to know.
func paths(p message.Part, raw fields) []string {
	if p.Type != message.TypeFile && p.Type != message.TypeVision {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(raw)), func(name string) bool { return !strings.EqualFold(name, "path") })
}

func (f fields) part() (message.Part, error) {
	raw, err := json.Marshal(f)
	if err != nil {
		return message.Part{}, err
	}
	var out message.Part
	if err := out.UnmarshalJSON(raw); err != nil {
		return message.Part{}, err
	}
	if typ, _ := f.lookup("type"); typ != out.Type {
		return message.Part{}, fmt.Errorf("type: found several, expected one")
	}
	return out, nil
}

// sniff is the type of an image in base64.
func sniff(data string) (string, error) {
	if data == "" {
		return "", fmt.Errorf("found nothing, expected base64")
	}
	b, err := base64.StdEncoding.DecodeString(data)
	return http.DetectContentType(b), err
}

func quote(s string) json.RawMessage { return wire.AppendString(nil, s) }
