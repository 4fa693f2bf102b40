package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/internal/shape"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Limits bound a message.
type Limits struct {
	Parts     int // of a message
	PartBytes int // of one part's JSON
	Depth     int // how far objects and arrays may lie in each other
	Inline    int // bytes of an image in a part, decoded; 0 = none may be
}

// FrameLimits are those of a message that travels in one frame of the bridge:
// base64 takes four bytes for three, and routing needs room too.
func FrameLimits() Limits {
	return Limits{Parts: 100, PartBytes: wire.MaxFrame, Depth: MaxDepth, Inline: (wire.MaxFrame - 16<<10) / 4 * 3}
}

// HostLimits are those of a message inside the host and over REST: an image in
// it is kept as an attachment where a far end can't take it.
func HostLimits() Limits {
	return Limits{Parts: 100, PartBytes: 12 << 20, Depth: MaxDepth, Inline: 8 << 20}
}

// Problem says what is wrong with one part. Part is its place, -1 for the
// message itself.
type Problem struct {
	Part    int    `json:"part"`
	Type    string `json:"type,omitempty"`
	Field   string `json:"field,omitempty"`
	Found   string `json:"found"`
	Allowed string `json:"allowed"`

	over wire.Code // why no host can take it; "" = it breaks only a shape
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.Part < 0 {
		b.WriteString("message")
	} else {
		fmt.Fprintf(&b, "parts[%d]", p.Part)
	}
	if p.Type != "" {
		fmt.Fprintf(&b, " (%s)", p.Type)
	}
	if p.Field != "" {
		b.WriteString(" " + p.Field)
	}
	return b.String() + ": found " + p.Found + ", expected " + p.Allowed
}

// Problems are all that is wrong with a message, at most MaxProblems of them.
type Problems []Problem

// MaxProblems bounds what a validation tells.
const MaxProblems = 20

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "; ")
}

// Err is nil if there are no problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Validate looks for what is wrong with the parts of a message: what an SDK
// must not send. The host takes what breaks only shapes (Tolerable) and keeps
// it, with a warning. Unknown types and fields are never wrong.
func Validate(parts []Part, l Limits) Problems {
	v := validator{limits: l}
	if len(parts) > l.Parts {
		v.add(Problem{Part: -1, Field: "parts", Found: strconv.Itoa(len(parts)) + " parts", Allowed: "at most " + strconv.Itoa(l.Parts), over: wire.CodeTooLarge})
		return v.found
	}
	seen := map[string]int{}
	for i, p := range parts {
		v.part, v.typ = i, p.Type
		if !v.fits(p) {
			continue
		}
		if id := p.id(); id != "" {
			if first, ok := seen[id]; ok {
				v.wrong("id", fmt.Sprintf("%.40q, as in parts[%d]", id, first), "an id of its own")
			}
			seen[id] = i
		}
		if s, ok := shapes()[p.Type]; ok {
			v.value("", p.raw, s)
			v.rules(p)
		}
		if len(v.found) >= MaxProblems {
			return v.found[:MaxProblems]
		}
	}
	return v.found
}

// Over are the problems that no host can take: limits that are exceeded, and what
// readers choke on.
func (p Problems) Over() Problems {
	var out Problems
	for _, one := range p {
		if one.over != "" {
			out = append(out, one)
		}
	}
	return out
}

// Code is what a frame with these problems is refused with.
func (p Problems) Code() wire.Code {
	for _, one := range p {
		if one.over != "" {
			return one.over
		}
	}
	return wire.CodeWrongType
}

type validator struct {
	limits Limits
	part   int
	typ    string
	found  Problems
}

func (v *validator) add(p Problem) { v.found = append(v.found, p) }

func (v *validator) wrong(field, found, allowed string) {
	v.add(Problem{Part: v.part, Type: v.typ, Field: strings.TrimPrefix(field, "."), Found: found, Allowed: allowed})
}

// over is wrong, of what no host can take.
func (v *validator) over(code wire.Code, field, found, allowed string) {
	v.add(Problem{Part: v.part, Type: v.typ, Field: field, Found: found, Allowed: allowed, over: code})
}

// fits checks the bounds that hold whatever the type is.
func (v *validator) fits(p Part) bool {
	if len(p.raw) > v.limits.PartBytes {
		v.over(wire.CodeTooLarge, "", strconv.Itoa(len(p.raw))+" bytes", "at most "+strconv.Itoa(v.limits.PartBytes))
		return false
	}
	levels, number := measure(p.raw)
	switch {
	case levels > v.limits.Depth:
		v.over(wire.CodeTooDeep, "", strconv.Itoa(levels)+" levels", "at most "+strconv.Itoa(v.limits.Depth))
	case number != "":
		v.over(wire.CodeWrongType, "", number, plainNumber)
	default:
		return true
	}
	return false
}

// value checks raw, which is at field, against its shape.
func (v *validator) value(field string, raw json.RawMessage, s *shape.Shape) {
	raw = bytes.TrimSpace(raw)
	if s.Kind == shape.Any || len(v.found) >= MaxProblems {
		return
	}
	if !s.Kind.Is(raw) {
		v.wrong(field, excerpt(raw), s.Kind.String())
		return
	}
	switch s.Kind {
	case shape.Text:
		v.text(field, raw, s.Values)
	case shape.Array:
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) == nil {
			for i, e := range elements {
				v.value(field+"["+strconv.Itoa(i)+"]", e, s.Elements)
			}
		}
	case shape.Object:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil {
			v.object(field, fields, s)
		}
	}
}

func (v *validator) text(field string, raw json.RawMessage, allowed []string) {
	if allowed == nil {
		return
	}
	var found string
	_ = json.Unmarshal(raw, &found) // it is a string
	for _, a := range allowed {
		if a == found {
			return
		}
	}
	v.wrong(field, excerpt(raw), "one of "+strings.Join(allowed, ", "))
}

func (v *validator) object(field string, fields map[string]json.RawMessage, s *shape.Shape) {
	for _, f := range s.Fields {
		raw, there := fields[f.Name]
		switch {
		case there && (f.Required || !isNull(raw)):
			v.value(field+"."+f.Name, raw, f.Shape)
		case f.Required:
			v.wrong(field+"."+f.Name, "nothing", f.Shape.Kind.String())
		}
	}
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// excerptLen is how much of a value a person is shown.
const excerptLen = 60

// excerpt shows a value to a person.
func excerpt(raw json.RawMessage) string {
	switch {
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case len(raw) > excerptLen:
		return strings.ToValidUTF8(string(raw[:excerptLen]), "") + "…"
	}
	return string(raw)
}

// rules are those that no shape can say.
func (v *validator) rules(p Part) {
	view, err := p.View()
	if err != nil {
		return // its shape is wrong, which was said
	}
	switch m := view.(type) {
	case FilePart:
		if m.UploadStatus == UploadCompleted && m.URL == "" {
			v.wrong("url", "nothing", "a url, since uploadStatus is completed")
		}
		v.preview(p)
	case VisionPart:
		v.inline(m)
	case AudioOutputPart:
		if m.Status == OutputInterrupted && m.PlayedUpToMs == nil {
			v.wrong("playedUpToMs", "nothing", "a number, since status is interrupted")
		}
	case UIPart:
		v.form(m)
	case UISubmitPart:
		for name, raw := range m.Values {
			v.answer("values."+name, raw)
		}
	}
}

// preview allows what is safe to know of a file, and nothing else.
func (v *validator) preview(p Part) {
	var f struct {
		Preview map[string]json.RawMessage `json:"preview"`
	}
	_ = json.Unmarshal(p.raw, &f) // it was read before
	for name := range f.Preview {
		if !isPreviewKey(name) {
			v.wrong("preview."+strings.ToValidUTF8(name, "\uFFFD"), "a key", "kind, fileName, mimeType or sizeBytes alone")
		}
	}
}

func isPreviewKey(name string) bool {
	switch name {
	case "kind", "fileName", "mimeType", "sizeBytes":
		return true
	}
	return false
}

func (v *validator) inline(m VisionPart) {
	if m.Data == "" {
		return
	}
	if n := base64.StdEncoding.DecodedLen(len(m.Data)); n > v.limits.Inline {
		v.over(wire.CodeTooLarge, "data", strconv.Itoa(n)+" bytes", "at most "+strconv.Itoa(v.limits.Inline)+": use a url")
		return
	}
	if _, err := base64.StdEncoding.DecodeString(m.Data); err != nil {
		v.wrong("data", err.Error(), "base64 with padding, without a data: prefix")
	}
}

// form checks that each component has what its type needs.
func (v *validator) form(ui UIPart) {
	names := map[string]bool{}
	for i, c := range ui.Components {
		at := "components[" + strconv.Itoa(i) + "]."
		if c.Type == UIHeading || c.Type == UIText {
			if c.Text == "" {
				v.wrong(at+"text", "nothing", "a string")
			}
			continue
		}
		switch {
		case c.Name == "":
			v.wrong(at+"name", "nothing", "a string")
		case names[c.Name]:
			v.wrong(at+"name", fmt.Sprintf("%.40q again", c.Name), "a name of its own")
		}
		names[c.Name] = true
		switch c.Type {
		case UIRadio, UISelect, UICheckboxGroup:
			if len(c.Options) == 0 {
				v.wrong(at+"options", "none", "at least one")
			}
		case UICheckbox:
			if c.Label == "" {
				v.wrong(at+"label", "nothing", "a string")
			}
		}
		v.initial(at+"default", c)
	}
}

func (v *validator) initial(at string, c UIComponent) {
	want := shape.Text
	switch c.Type {
	case UICheckbox:
		want = shape.Boolean
	case UICheckboxGroup:
		want = shape.Array
	}
	if len(c.Default) > 0 && !isNull(c.Default) && !want.Is(bytes.TrimSpace(c.Default)) {
		v.wrong(at, excerpt(bytes.TrimSpace(c.Default)), want.String())
	}
}

func (v *validator) answer(at string, raw json.RawMessage) {
	var list []string
	if r := bytes.TrimSpace(raw); !shape.Text.Is(r) && !shape.Boolean.Is(r) && json.Unmarshal(r, &list) != nil {
		v.wrong(at, excerpt(r), "a string, a boolean or an array of strings")
	}
}
