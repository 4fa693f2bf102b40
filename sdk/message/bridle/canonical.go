package bridle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	metaAgentName = "agentName"        // string: who spoke, in every model
	kept          = message.MetaBridle // key of what is kept, in metadata and in parts
)

// origin is what the host's message does not show of Bridle's, in its metadata.
type origin struct {
	NoText bool                       `json:"noText,omitempty"` // parts came without text
	Images bool                       `json:"images,omitempty"` // the parts came in the older form, as text and images
	Rest   map[string]json.RawMessage `json:"rest,omitempty"`
}

// Canonical is the host's message: plain text if there are no parts, else the
// parts, which win over a text that differs and over images beside them. The
// error is message.ErrNoContent if there is nothing at all, or tells of an image
// of the older form that is no base64. Its parts have no ids.
func (m Message) Canonical() (message.Message, error) {
	o := origin{Rest: maps.Clone(m.Rest)}
	parts, err := m.parts(&o)
	if err != nil {
		return message.Message{}, fmt.Errorf("bridle message: %w", err)
	}
	role := message.RoleUser
	if m.Side == Agent {
		role = message.RoleAgent
	}
	out, err := message.Content{Text: m.Text, Parts: parts}.Message(role)
	if err != nil {
		return message.Message{}, err
	}
	o.NoText = m.Text == nil
	if m.AgentID != nil {
		out.Meta = out.Meta.With(metaAgentName, *m.AgentID)
	}
	if !o.NoText && !o.Images && len(o.Rest) == 0 {
		return out, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return message.Message{}, fmt.Errorf("bridle message: %w", err)
	}
	if out.Meta == nil {
		out.Meta = message.Meta{}
	}
	out.Meta[kept] = raw
	return out, nil
}

// parts converts the parts, or text and images if there are none.
func (m Message) parts(o *origin) ([]message.Part, error) {
	kind := message.VisionInput
	if m.Side == Agent {
		kind = message.VisionOutput
	}
	var out []message.Part
	if len(m.Parts) == 0 && len(m.Images) > 0 {
		o.Images = true
		if m.Text != nil && *m.Text != "" {
			out = append(out, message.NewText(*m.Text))
		}
		for i, p := range m.Images {
			part, err := picture(p, kind, 2)
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", fieldImages, i, err)
			}
			out = append(out, part)
		}
		return out, nil
	}
	if len(m.Images) > 0 {
		raw, err := json.Marshal(m.Images)
		if err != nil {
			return nil, err
		}
		if o.Rest == nil {
			o.Rest = map[string]json.RawMessage{}
		}
		o.Rest[fieldImages] = raw
	}
	for i, p := range m.Parts {
		part, err := p.canonical(kind)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", fieldParts, i, err)
		}
		out = append(out, part)
	}
	return out, nil
}

// canonical is the host's part. What Bridle has and the host's fields don't say
// is kept in it; a part that Bridle itself would not know passes as it is.
func (p Part) canonical(kind message.VisionKind) (message.Part, error) {
	switch p.Type() {
	case TypeImage:
		if part, err := picture(p, kind, 3); err == nil {
			return part, nil
		}
	case TypeFile:
		return p.file(kind)
	}
	return p.pass()
}

// picture is an image that has size fields if nothing is odd about it: three in
// a part, two in the older form, which has no type.
func picture(p Part, kind message.VisionKind, size int) (message.Part, error) {
	data, mime := p.String(fieldBase64), p.String(fieldMediaType)
	if data == "" {
		return message.Part{}, fmt.Errorf("%s: found no text, expected base64", fieldBase64)
	}
	regular := mime != "" && len(p) == size
	if mime == "" {
		var err error
		if mime, err = sniff(data); err != nil {
			return message.Part{}, fmt.Errorf("%s: %w", fieldBase64, err)
		}
	}
	out := Part{fieldType: quote(message.TypeVision), "kind": quote(string(kind)), fieldMimeType: quote(mime), "data": p[fieldBase64]}
	if regular {
		return out.part()
	}
	return out.keeping(p.without(fieldBase64))
}

// sniff is the type of an image in base64.
func sniff(data string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(data)
	return http.DetectContentType(b), err
}

// file is a file, or an image by address if its type says so: that is how
// Bridle shows it. One without an address is a file all the same.
func (p Part) file(kind message.VisionKind) (message.Part, error) {
	url, mime := p.String(fieldURL), p.String(fieldMimeType)
	if url != "" && strings.HasPrefix(mime, "image/") {
		out := Part{fieldType: quote(message.TypeVision), "kind": quote(string(kind)), fieldMimeType: p[fieldMimeType], fieldURL: p[fieldURL]}
		return out.keeping(p.without(fieldURL))
	}
	out, rest := Part{fieldType: p[fieldType]}, p
	if _, ok := p.lookup(fieldName); ok {
		out["fileName"] = p[fieldName]
	}
	if _, ok := p.lookup(fieldMimeType); ok {
		out[fieldMimeType] = p[fieldMimeType]
	}
	if url != "" {
		out[fieldURL] = p[fieldURL]
		rest = p.without(fieldURL)
	}
	if url != "" && len(out) == len(p) {
		return out.part()
	}
	return out.keeping(rest)
}

// apart reports a key that is kept apart in a part that passes as it is: an id
// that is not ours, and what the host would read otherwise. A path is a file of
// its machine, and encoding/json takes Type for type.
func apart(name string) bool {
	return name == "id" || name == kept || strings.EqualFold(name, "path") || name != fieldType && strings.EqualFold(name, fieldType)
}

// pass is the part as it is, but for what is kept apart.
func (p Part) pass() (message.Part, error) {
	own := Part{}
	for name, raw := range p {
		if apart(name) {
			own[name] = raw
		}
	}
	if len(own) == 0 && (!means(p.Type()) || shared(p.Type())) {
		return p.part()
	}
	out := p.without(slices.Collect(maps.Keys(own))...)
	if id, ok := own.lookup("id"); ok {
		out["id"] = quote(id)
	}
	own[fieldType] = p[fieldType]
	return out.keeping(own)
}

// shared reports a type of part that is the same in both models.
func shared(typ string) bool { return typ == TypeText || typ == TypeUI || typ == TypeUISubmit }

// means reports a type of part that the host knows.
func means(typ string) bool { return slices.Contains(message.Types(), typ) }

// keeping is the part with fields of Bridle's kept in it.
func (p Part) keeping(rest Part) (message.Part, error) {
	raw, err := json.Marshal(rest)
	if err != nil {
		return message.Part{}, err
	}
	p[kept] = raw
	return p.part()
}

func (p Part) part() (message.Part, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return message.Part{}, err
	}
	var out message.Part
	err = out.UnmarshalJSON(raw)
	return out, err
}

func quote(s string) json.RawMessage { return wire.AppendString(nil, s) }
