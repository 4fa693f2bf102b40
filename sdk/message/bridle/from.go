package bridle

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// From is Bridle's message, with what it can't carry: parts that Bridle lacks
// become text, or nothing if they have none, and so do fields of images and
// files. Ids that parts got here are left out. Of the metadata, the agent's name
// is carried; a role, mode or payload of another model is a loss, the rest is
// not for the other side.
func From(m *message.Message) (Message, []message.Loss) {
	var o origin
	if raw, ok := m.Meta[kept]; ok && json.Unmarshal(raw, &o) != nil {
		o = origin{}
	}
	out := Message{Side: Browser}
	if out.read(o.Rest) != nil {
		out, o = Message{Side: Browser}, origin{} // not of our making
	}
	beside := out.Images
	out.Text, out.Parts, out.Images, out.AgentID = nil, nil, nil, nil
	if m.Role == message.RoleAgent {
		out.Side = Agent
	}
	if name, ok := (Part)(m.Meta).lookup(metaAgentName); ok {
		out.AgentID = &name
	}
	f := from{}
	for i, p := range m.Parts {
		f.part(i, p)
	}
	text := f.text(m)
	if o.Images && f.older(text) {
		out.Images = f.images
	} else {
		out.Parts, out.Images = f.out, beside
	}
	if !o.NoText || len(m.Parts) == 0 || len(out.Parts)+len(out.Images) == 0 {
		out.Text = &text
	}
	for _, key := range []string{message.MetaRole, "mode", "payload"} {
		if _, ok := m.Meta[key]; ok {
			f.lose(-1, "metadata."+key, message.LossNone, "Bridle has no such field")
		}
	}
	return out, f.losses
}

// from converts the parts of one message.
type from struct {
	out    []Part
	images []Part // the out of images, in the older form
	told   bool   // a part became text
	losses []message.Loss
}

func (f *from) lose(i int, what, to, reason string) {
	f.losses = append(f.losses, message.Loss{Part: i, From: what, To: to, Reason: reason})
}

// text is that of the message: the one that came with it, unless that is but
// the roll-up, to which parts that became text add theirs.
func (f *from) text(m *message.Message) string {
	if len(m.Parts) == 0 {
		return m.Text
	}
	given := m.Given()
	if _, ok := m.Meta[message.MetaText]; ok || !f.told || given != message.RollUp(m.Parts) {
		return given
	}
	var texts []string
	for _, p := range f.out {
		if p.Type() == TypeText {
			texts = append(texts, p.String(fieldText))
		}
	}
	return strings.Join(texts, "\n")
}

// older reports whether the parts still are that text, unless it is empty, and
// images.
func (f *from) older(text string) bool {
	lead := ""
	if len(f.out) > len(f.images) && f.out[0].Type() == TypeText && len(f.out[0]) == 2 {
		lead = f.out[0].String(fieldText)
	}
	n := len(f.images)
	return n > 0 && lead == text && (text == "" && len(f.out) == n || text != "" && len(f.out) == n+1)
}

func (f *from) part(i int, p message.Part) {
	var fields Part
	if json.Unmarshal(p.Raw(), &fields) != nil || fields.Type() == "" {
		f.lose(i, p.Type, message.LossNone, "malformed part")
		return
	}
	var rest Part
	if raw, ok := fields[kept]; ok && json.Unmarshal(raw, &rest) != nil {
		rest = nil
	}
	switch typ := fields.Type(); {
	case typ != TypeFile && rest.Type() == typ:
		maps.DeleteFunc(rest, func(name string, _ json.RawMessage) bool { return !apart(name) })
		f.out = append(f.out, fields.without("id", kept).with(rest))
	case typ == message.TypeVision && fields.String("data") != "":
		f.image(i, p, fields, rest)
	case typ == TypeFile && rest.Type() == TypeFile, (typ == TypeFile || typ == message.TypeVision) && fields.String(fieldURL) != "":
		f.file(i, p, fields, rest)
	case shared(typ) || !means(typ):
		f.out = append(f.out, fields.without("id"))
	default:
		f.plain(i, p)
	}
}

// image puts an image in both of its forms.
func (f *from) image(i int, p message.Part, fields, rest Part) {
	mime := fields.String(fieldMimeType)
	if mime == "" {
		mime, _ = sniff(fields.String("data")) // bytes of an unknown kind have a type too
	}
	regular := Part{fieldBase64: fields["data"], fieldMediaType: quote(mime)}
	older, part := regular, regular.with(Part{fieldType: quote(TypeImage)})
	if rest != nil {
		older = rest.with(Part{fieldBase64: fields["data"]})
		if rest.String(fieldMediaType) != "" {
			older[fieldMediaType] = quote(mime)
		}
	}
	if rest.Type() == TypeImage {
		part = older
	}
	f.out, f.images = append(f.out, part), append(f.images, older)
	f.beside(i, p, TypeImage, "kind", fieldMimeType, "data")
}

// file puts a file, or an image by address. Of what is kept, only that counts
// which the part itself does not say.
func (f *from) file(i int, p message.Part, fields, rest Part) {
	out := Part{fieldType: quote(TypeFile)}
	ours := rest.Type() == TypeFile
	if ours {
		out = rest.with(nil)
		if out.String(fieldURL) != "" {
			delete(out, fieldURL)
		}
	}
	for to, name := range map[string]string{fieldURL: fieldURL, fieldName: "fileName", fieldMimeType: fieldMimeType} {
		if _, ok := fields.lookup(name); ok {
			out[to] = fields[name]
		}
	}
	if p.Type == message.TypeVision && !ours {
		out[fieldName] = quote(lastOf(fields.String(fieldURL)))
		if out.String(fieldMimeType) == "" {
			delete(out, fieldMimeType)
		}
	}
	f.out = append(f.out, out)
	f.beside(i, p, TypeFile, "kind", "fileName", fieldMimeType, fieldURL)
}

// lastOf is the name of what is at an address.
func lastOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || path.Base(u.Path) == "." || path.Base(u.Path) == "/" {
		return "image"
	}
	return path.Base(u.Path)
}

// beside puts a caption as text of its own and tells what else is left out.
func (f *from) beside(i int, p message.Part, to string, carried ...string) {
	carried = append(carried, kept)
	if caption := message.TextField(p.Raw(), "caption"); caption != "" {
		f.tell(i, p.Type, caption, "Bridle has no captions")
		carried = append(carried, "caption")
	}
	if left := p.Beside(carried...); len(left) > 0 {
		f.lose(i, p.Type, to, "left out: "+strings.Join(left, ", "))
	}
}

// plain puts the nearest text of a part.
func (f *from) plain(i int, p message.Part) {
	text := p.Plain()
	if text != "" {
		f.tell(i, p.Type, text, "Bridle has no such part")
		return
	}
	reason := "has no form in text"
	if _, err := p.View(); err != nil {
		reason = "malformed part"
	}
	f.lose(i, p.Type, message.LossNone, reason)
}

// tell puts text in the place of something of type typ.
func (f *from) tell(i int, typ, text, reason string) {
	f.told = true
	f.out = append(f.out, Text(text))
	f.lose(i, typ, message.LossText, reason)
}
