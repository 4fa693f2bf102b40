// Package message is the one message type that flows through the host: an
// envelope and an ordered list of typed parts, each of which keeps its bytes.
package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Role says which side speaks.
type Role string

// The canonical roles.
const (
	RoleUser  Role = "user"
	RoleAgent Role = "agent"
)

// Status is the life of a message's content; delivery has a state of its own.
type Status string

// The statuses of a message.
const (
	StatusPending   Status = "pending"
	StatusStreaming Status = "streaming"
	StatusCompleted Status = "completed"
	StatusError     Status = "error"
)

// Message is one message. No Parts means one text part with Text, which is
// never built unless somebody asks.
type Message struct {
	ID     string
	Role   Role
	Status Status
	Text   string
	Parts  []Part
	Meta   Meta
}

// Meta is a message's free metadata. The keys that the host knows have
// constants.
type Meta map[string]json.RawMessage

// Metadata keys that the host reads or sets.
const (
	MetaPreviewHandle = "preview_handle" // string: what an edit of this message takes
	MetaEdits         = "edits"          // string: the message that this one changes
	MetaDeletes       = "deletes"        // string: the message that this one takes back
	MetaReactsTo      = "reacts_to"      // string: the message that this one is a reaction to
	MetaReaction      = "reaction"       // string: the emoji of a reaction
	MetaRemoved       = "removed"        // true: the reaction is taken back
	MetaPlatformID    = "platform_id"    // string: the platform's id of the message that this one concerns
	MetaStreamed      = "streamed"       // true: it was shown while it was made
	MetaDraft         = "draft"          // true: the beginning of an answer; an edit after it makes it whole
	MetaLinks         = "links"          // object: attachments that hold what parts have inline or by path, by their place
	MetaAction        = "action"         // string: the message is this action of a button
	MetaNotice        = "notice"         // true: the host speaks, not an agent
	MetaRepeated      = "repeated"       // true: handed over again after a crash
	MetaText          = "text"           // string: what came beside parts that say something else
	MetaRole          = "role"           // string: the role that another model gave
	MetaWarnings      = "warnings"       // Problems: what was taken although it is wrong
	MetaSentBy        = "sent_by"        // string: the person who wrote it in the console

	// Of an answer to a run of a front end: which run, how long the answer took,
	// and the message's own id. Of a user's message, the run that it began.
	MetaRunID     = "run_id"     // string
	MetaLatency   = "latency_ms" // number
	MetaMessageID = "message_id" // string
	MetaStage     = "stage"      // string, as the agent gives it

	// MetaAttachments are the files that came with a message: an object
	// {bucket, path, mime_type}, or a list of several.
	MetaAttachments = "user_message_attachments"
)

// The metadata under which other models keep what has no place in a Message.
const (
	MetaAGUI   = "agui"
	MetaBridle = "bridle"
	MetaSwarm  = "swarm"
)

// hostKeys are the keys that only the host sets.
var hostKeys = []string{
	MetaPreviewHandle, MetaEdits, MetaDeletes, MetaReactsTo, MetaReaction, MetaRemoved, MetaPlatformID, MetaStreamed, MetaDraft, MetaLinks, MetaAction,
	MetaNotice, MetaRepeated, MetaText, MetaRole, MetaWarnings, MetaSentBy, MetaAttachments, MetaAGUI, MetaBridle, MetaSwarm,
}

// HostKeys lists the keys that OfHost reports.
func HostKeys() []string { return slices.Clone(hostKeys) }

// OfHost reports the keys that only the host sets: no client may, and no other
// model is told them. It is the one list for all doors.
func OfHost(key string) bool { return slices.Contains(hostKeys, key) }

// String is the value of a string key; "" if absent or of another type.
func (m Meta) String(key string) string {
	var s string
	if json.Unmarshal(m[key], &s) != nil {
		return ""
	}
	return s
}

// With returns the metadata with key set to the string value.
func (m Meta) With(key, value string) Meta {
	if m == nil {
		m = Meta{}
	}
	m[key] = wire.AppendString(nil, value)
	return m
}

// Text is a plain text message of an agent.
func Text(text string) Message {
	return Message{Role: RoleAgent, Status: StatusCompleted, Text: text}
}

// New is a message of an agent made of parts; text is its roll-up.
func New(parts ...Part) Message {
	return Message{Role: RoleAgent, Status: StatusCompleted, Text: RollUp(parts), Parts: parts}
}

// RollUp is the text of a message: its text parts joined by newline.
func RollUp(parts []Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type != TypeText {
			continue
		}
		if text := p.plainText(); text != nil {
			texts = append(texts, string(text))
		} else if t, err := As[TextPart](p); err == nil {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Part is one part of a message. It keeps the bytes that it was read from, so
// that fields and types unknown here pass through.
type Part struct {
	Type string
	raw  json.RawMessage
}

// Raw is the part's JSON object, exactly as it came. It must not be changed.
func (p Part) Raw() json.RawMessage { return p.raw }

// MarshalJSON implements json.Marshaler.
func (p Part) MarshalJSON() ([]byte, error) { return p.raw, nil }

// UnmarshalJSON implements json.Unmarshaler: any object with a string type.
func (p *Part) UnmarshalJSON(b []byte) error {
	var fields map[string]json.RawMessage // names count exactly: a struct would take "Type" too
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("part: %w", err)
	}
	var name string
	switch raw := fields["type"]; {
	case fields == nil:
		return fmt.Errorf("part: found null, expected an object")
	case len(raw) == 0 || string(raw) == "null":
		return fmt.Errorf("part: type is absent, expected the name of a part type")
	case json.Unmarshal(raw, &name) != nil:
		return fmt.Errorf("part: type: found %s, expected a string", excerpt(raw))
	case name == "":
		return fmt.Errorf("part: type is empty, expected the name of a part type")
	}
	p.Type, p.raw = name, append(json.RawMessage(nil), b...)
	return nil
}

// ParseParts reads a JSON array of parts; nil and empty input give none.
func ParseParts(b []byte) ([]Part, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if last := len(b) - 1; b[0] == '[' && b[last] == ']' {
		if p := (Part{TypeText, b[1:last]}); p.plainText() != nil {
			return []Part{{TypeText, bytes.Clone(p.raw)}}, nil
		}
	}
	var parts []Part
	if err := json.Unmarshal(b, &parts); err != nil {
		return nil, fmt.Errorf("parts: %w", err)
	}
	return parts, nil
}

// AppendParts appends the parts as a JSON array; nothing for none.
func AppendParts(dst []byte, parts []Part) []byte {
	if len(parts) == 0 {
		return dst
	}
	dst = append(dst, '[')
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.raw...)
	}
	return append(dst, ']')
}

// Number gives the parts that have no id the ids p1, p2, … by their place,
// leaving out those that are in use.
func Number(parts []Part) []Part {
	used := map[string]bool{}
	for _, p := range parts {
		used[p.id()] = true
	}
	for i, p := range parts {
		if p.id() != "" || len(p.raw) < 2 {
			continue
		}
		n := i + 1
		for used["p"+strconv.Itoa(n)] {
			n += len(parts)
		}
		id := "p" + strconv.Itoa(n)
		used[id] = true
		parts[i] = p.with("id", id) //nolint:gosec // G602: i is of the same slice
	}
	return parts
}

// What is around the text of a part that Alone makes.
const aloneHead, aloneTail = `{"type":"text","text":`, `,"id":"p1"}`

// Alone are the parts of a message that is text and nothing else, numbered.
func Alone(text string) []Part {
	raw := make([]byte, 0, len(aloneHead)+len(text)+len(aloneTail)+8)
	raw = wire.AppendString(append(raw, aloneHead...), text)
	return []Part{{Type: TypeText, raw: append(raw, aloneTail...)}}
}

// plainText is the text of a part as Alone makes them, if nothing in it is escaped, as of
// most; nil = the library is to read it, which takes several times as long.
func (p Part) plainText() []byte {
	text, ok := bytes.CutPrefix(p.raw, []byte(aloneHead+`"`))
	if ok {
		text, ok = bytes.CutSuffix(text, []byte(`"`+aloneTail))
	}
	if !ok || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }) {
		return nil
	}
	return text
}

// id is the part's id as a string; "" if it has none. One of another type
// counts, as it came.
func (p Part) id() string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(p.raw, &fields) != nil || len(fields["id"]) == 0 {
		return ""
	}
	var id any
	if json.Unmarshal(fields["id"], &id) != nil || id == nil {
		return ""
	}
	return fmt.Sprint(id)
}
