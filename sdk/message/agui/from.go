package agui

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// From is the message as AG-UI knows it, and what of it AG-UI can't carry: a
// part that has no form there is its plain text, or nothing. A loss of Part -1 is
// of the message itself. What Canonical made is given back as it came. The
// message is not changed.
//
// A text of several parts is one string, joined by newline as ever, unless a
// user wrote it: clients take arrays from users alone. Part ids are left out,
// for contents have none; so are the host's own metadata.
func From(m *message.Message) (Message, []message.Loss) { return from(m, false) }

// FromAsList is From with a content that is an array of what the parts become,
// whoever wrote them, but for the result of a tool.
func FromAsList(m *message.Message) (Message, []message.Loss) { return from(m, true) }

func from(m *message.Message, list bool) (Message, []message.Loss) {
	k := kept(m.Meta)
	w := writer{role: m.Role, list: list}
	o := object{}
	if m.ID != "" {
		o["id"] = quote(m.ID)
	}
	role := w.speaker(m, &k)
	o["role"] = quote(role)
	w.unsaid(m)
	for _, p := range whole(m) {
		if role == RoleTool && p.Type == message.TypeToolResult {
			w.result(o, p, k.Form)
			continue
		}
		w.part(p)
	}
	if role != RoleTool {
		w.finish(o, &k)
	}
	if len(w.calls) > 0 {
		o["toolCalls"] = array(w.calls)
	}
	k.fields(o, m.Meta)
	return fromObject(o), w.losses
}

// writer gathers what the parts of one message become.
type writer struct {
	role     message.Role
	list     bool // the content is an array, whatever it holds
	contents []content
	calls    []json.RawMessage
	losses   []message.Loss
}

// content is one element of the content.
type content struct {
	raw  json.RawMessage
	text json.RawMessage // the JSON string that is all of it; nil = it is more than a text
	sole *placed         // the part, if its content can only stand alone
}

// placed is a part with its place in the message.
type placed struct {
	message.Part
	at int
}

// whole are the parts of a message, the pieces of a text that is still being
// written joined at the place of the first.
func whole(m *message.Message) []placed {
	parts := m.Parts
	if len(parts) == 0 {
		parts = []message.Part{message.NewText(m.Text)}
	}
	out := make([]placed, 0, len(parts))
	if !slices.ContainsFunc(parts, message.Is[message.TextDeltaPart]) {
		for i, p := range parts {
			out = append(out, placed{p, i})
		}
		return out
	}
	for i := range parts { // one that joins an earlier one makes no part more
		if done := message.Complete(parts[:i+1]); len(done) > len(out) {
			out = append(out, placed{at: i})
		}
	}
	for i, p := range message.Complete(parts) {
		out[i].Part = p
	}
	return out
}

// lose reports that something of a part is not said as it was.
func (w *writer) lose(p placed, to, reason string) {
	w.losses = append(w.losses, message.Loss{Part: p.at, From: p.Type, To: to, Reason: reason})
}

// loseWhole reports what the metadata say of the message itself.
func (w *writer) loseWhole(key, to, reason string) {
	w.losses = append(w.losses, message.Loss{Part: -1, From: "metadata." + key, To: to, Reason: reason})
}

// leftOver reports the fields of a part that were not used and say something, which
// an id does only if it is not a text: such a part came from somebody who means
// something else by it.
func (w *writer) leftOver(p placed, o object, to string, more ...string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if name == "type" || name == "id" && isText(o[name]) {
			continue
		}
		if s := string(o[name]); s != "null" && s != `""` {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		w.lose(p, to, "AG-UI has no field for "+strings.Join(more, ", "))
	}
}

// speaker is the role, of which AG-UI has a closed set: another one is said only
// if it came from there.
func (w *writer) speaker(m *message.Message, k *keep) string {
	given := m.Meta.String(message.MetaRole)
	role := RoleAssistant
	if m.Role == message.RoleUser {
		role = RoleUser
	}
	answers, alone := answer(m.Parts)
	switch {
	case role == RoleUser:
	case given == "" && alone:
		role = RoleTool
	case given == RoleTool:
		if answers {
			role = RoleTool
		}
	case given != RoleUser && (knownRole(given) || given != "" && given == str(k.Fields["role"])):
		role = given
	}
	if given != "" && given != role {
		w.loseWhole(message.MetaRole, role, "AG-UI has no such message")
	}
	return role
}

// answer reports whether the parts answer one tool call, at most beside calls of
// others, and whether they are nothing but an answer to a call that is named.
func answer(parts []message.Part) (answers, alone bool) {
	results, named := 0, false
	for _, p := range parts {
		if p.Type != message.TypeToolResult {
			continue
		}
		o, err := readObject(p.Raw())
		if results++; err != nil || results > 1 {
			return false, false
		}
		named = str(o["toolCallId"]) != ""
	}
	if results == 0 {
		return false, false
	}
	for _, p := range parts {
		var w writer
		if p.Type != message.TypeToolResult {
			w.part(placed{Part: p})
		}
		if len(w.contents) > 0 {
			return false, false // an answer has no room for it
		}
	}
	return true, named && len(parts) == 1
}

// unsaid reports what of the message itself has no place in an AG-UI message.
func (w *writer) unsaid(m *message.Message) {
	if _, ok := m.Meta[message.MetaText]; ok {
		w.loseWhole(message.MetaText, message.LossNone, "AG-UI has one content, which is that of the parts")
	}
	if _, ok := m.Meta[MetaPayload]; ok {
		w.loseWhole(MetaPayload, message.LossNone, "forwardedProps are those of a run: use FromRun")
	}
}

// finish gives the content its form.
func (w *writer) finish(o object, k *keep) {
	if len(w.contents) == 1 && w.contents[0].sole != nil {
		o["content"] = w.contents[0].raw
		return
	}
	all := w.contents
	w.contents = nil
	for _, c := range all {
		if c.sole != nil {
			w.nearest(*c.sole, noContent+" beside others")
			continue
		}
		w.contents = append(w.contents, c)
	}
	var texts []string
	list := []json.RawMessage{}
	for _, c := range w.contents {
		if c.text != nil {
			texts = append(texts, str(c.text))
		}
		list = append(list, c.raw)
	}
	switch {
	case w.list:
		o["content"] = array(list)
	case len(list) == 0 && k.Form == formNull:
		o["content"] = json.RawMessage("null")
	case len(list) == 0 && k.Form != formArray:
		if k.Form == formEmpty || len(w.calls) == 0 {
			o["content"] = json.RawMessage(`""`)
		}
	case k.Form == formArray || len(texts) < len(list) || len(texts) > 1 && w.role == message.RoleUser:
		o["content"] = array(list)
	case len(texts) == 1:
		o["content"] = w.contents[0].text
	default:
		o["content"] = quote(strings.Join(texts, "\n"))
	}
}
