package agui

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// noContent is why a part becomes text.
const noContent = "AG-UI has no such content"

// part adds what one part becomes.
func (w *writer) part(p placed) {
	o, err := readObject(p.Raw())
	if err != nil {
		w.nearest(p, noContent)
		return
	}
	said := false
	switch p.Type {
	case message.TypeText:
		said = w.text(p, o)
	case message.TypeVision, message.TypeFile, message.TypeAudioInput, message.TypeAudioOutput:
		said = w.media(p, o)
	case message.TypeToolCall:
		said = w.call(p, o)
	case message.TypeCustom:
		said = w.custom(p, o)
	}
	if !said {
		w.nearest(p, noContent)
	}
}

// plain is a content that is a text, which is a JSON string.
func plain(text json.RawMessage) content {
	return content{raw: object{"type": json.RawMessage(`"text"`), "text": text}.json(), text: text}
}

func (w *writer) addText(s string) {
	w.contents = append(w.contents, plain(quote(s)))
}

// nearest adds the text that stands for a part, if there is one.
func (w *writer) nearest(p placed, reason string) {
	text := p.Plain()
	if text == "" {
		w.lose(p, message.LossNone, reason+", and no text says it")
		return
	}
	w.addText(text)
	w.lose(p, message.LossText, reason)
}

func (w *writer) text(p placed, o object) bool {
	text := o["text"]
	if !isText(text) {
		return false
	}
	delete(o, "text")
	mk := o.takeMark()
	w.leftOver(p, o, message.LossText)
	if len(mk.Rest) == 0 {
		w.contents = append(w.contents, plain(text))
		return true
	}
	mk.Rest["type"], mk.Rest["text"] = quote(typeText), text
	w.contents = append(w.contents, content{raw: mk.Rest.json()})
	return true
}

// custom adds what Canonical kept whole.
func (w *writer) custom(p placed, o object) bool {
	data := o["data"]
	d, err := readObject(data)
	if err != nil {
		return false
	}
	switch str(o["payloadType"]) {
	case PayloadContent:
		if str(d["type"]) == "" {
			return false
		}
		w.contents = append(w.contents, content{raw: data})
	case PayloadObject:
		w.contents = append(w.contents, content{raw: data, sole: &p})
	case PayloadCall:
		w.calls = append(w.calls, data)
	default:
		return false
	}
	for _, used := range []string{"payloadType", "data"} {
		delete(o, used)
	}
	w.leftOver(p, o, "content")
	return true
}

// call adds a tool call. Of one that was altered the arguments are its input.
func (w *writer) call(p placed, o object) bool {
	input := o["input"]
	if !isText(o["toolCallId"]) || !isText(o["toolName"]) || input == nil {
		return false
	}
	mk := o.takeMark()
	call, function := mk.Rest.orNew(), mk.Inner.orNew()
	call["id"], call["type"] = o["toolCallId"], quote("function")
	function["name"], function["arguments"] = o["toolName"], quote(arguments(input, mk.Arguments))
	call["function"] = function.json()
	w.calls = append(w.calls, call.json())
	for _, used := range []string{"toolCallId", "toolName", "input"} {
		delete(o, used)
	}
	if str(o["status"]) == string(message.ToolRequested) {
		delete(o, "status")
	}
	w.leftOver(p, o, "toolCalls")
	return true
}

// arguments are an input as text: as they came, if they still say the same.
func arguments(input json.RawMessage, came string) string {
	if isText(input) {
		return str(input)
	}
	if json.Valid([]byte(came)) && bytes.Equal(marshal(json.RawMessage(came)), marshal(input)) {
		return came
	}
	var b bytes.Buffer
	if json.Compact(&b, input) != nil {
		return string(input)
	}
	return b.String()
}

// result makes a message of role tool of the part.
func (w *writer) result(o object, p placed, f form) {
	fields, err := readObject(p.Raw())
	if err != nil {
		fields = object{}
	}
	o.move("toolCallId", fields, "toolCallId")
	o.move("error", fields, "error")
	output := fields["output"]
	delete(fields, "output")
	var lost []string
	switch {
	case isText(output):
		o["content"] = output
	case f == formAbsent && kind(output) == 'n':
	case f == formNull && kind(output) == 'n':
		o["content"] = output
	case f == formAsIs && (kind(output) == '{' || kind(output) == '['):
		o["content"] = output
	case output == nil:
		o["content"] = json.RawMessage(`""`)
	default:
		o["content"] = quote(arguments(output, ""))
		lost = append(lost, "an output that is no text")
	}
	if raw := fields["error"]; raw != nil && !isText(raw) && kind(raw) != 'n' {
		o["error"] = quote(arguments(raw, ""))
		delete(fields, "error")
		lost = append(lost, "an error that is no text")
	}
	w.leftOver(p, fields, RoleTool, lost...)
}

// media adds a picture, a sound or a file; false if it has neither address nor
// data. Captions stand beside it as text.
func (w *writer) media(p placed, o object) bool {
	mk := o.takeMark()
	var out object
	var back string // the type that it comes back as
	if newer(mk.As) {
		out, back = source(mk, o, w.role)
	} else {
		out, back = binary(mk, p.Type, o, w.role)
	}
	if out == nil {
		return false
	}
	w.contents = append(w.contents, content{raw: out.json()})
	typ := str(out["type"])
	var lost []string
	last := ""
	for _, name := range []string{"caption", "altText"} {
		s := str(o.take(name))
		if s == "" {
			continue
		}
		lost = append(lost, name)
		if s != last {
			w.addText(s)
		}
		last = s
	}
	if back != p.Type {
		lost = append(lost, "the type "+p.Type)
	}
	switch p.Type { // what follows from the role
	case message.TypeVision:
		if str(o["kind"]) == string(visionKind(w.role)) {
			delete(o, "kind")
		}
	case message.TypeAudioInput, message.TypeAudioOutput:
		if str(o["status"]) == "completed" {
			delete(o, "status")
		}
	}
	w.leftOver(p, o, typ, lost...)
	return true
}

// source is the part as a content with a source, and the type that it comes back
// as; nil if it has neither address nor data.
func source(mk mark, o object, role message.Role) (object, string) {
	out, in := mk.Rest.orNew(), mk.Inner.orNew()
	from := "url"
	if !o.has(from) {
		from = "data"
	}
	back := sourceType(mk.As, from, role)
	if !o.has(from) || back == "" {
		return nil, ""
	}
	in["type"] = quote(from)
	in.move("value", o, from)
	in.move("mimeType", o, "mimeType")
	out["type"], out["source"] = quote(mk.As), in.json()
	return out, back
}

// binary is the part as a binary content, and the type that it comes back as;
// nil if it has neither address nor data. A media type is made up if none is
// known, since AG-UI demands one.
func binary(mk mark, typ string, o object, role message.Role) (object, string) {
	out := mk.Rest.orNew()
	for as, name := range carried[typ] {
		out.move(as, o, name)
	}
	if !out.has("url") && !out.has("data") && !out.has("id") {
		return nil, ""
	}
	if out["mimeType"] == nil && mk.As != typeBinary {
		out["mimeType"] = quote(guess(typ, str(out["url"]), out["data"]))
	}
	back := binaryType(out, role)
	out["type"] = quote(typeBinary)
	return out, back
}

// guess is the media type of a part that tells none: an image's by its first
// bytes or the end of its address.
func guess(typ, url string, data json.RawMessage) string {
	const sniff = 512 / 3 * 4 // base64 of what DetectContentType looks at
	switch typ {
	case message.TypeFile:
		return "application/octet-stream"
	case message.TypeAudioInput, message.TypeAudioOutput:
		return "audio/*"
	}
	if s := str(data); s != "" {
		s = s[:min(len(s), sniff)/4*4]
		if b, err := base64.StdEncoding.DecodeString(s); err == nil {
			if mime := http.DetectContentType(b); strings.HasPrefix(mime, "image/") {
				return mime
			}
		}
	}
	url, _, _ = strings.Cut(url, "?")
	switch ext := strings.ToLower(path.Ext(url)); ext {
	case ".png", ".gif", ".webp", ".jpeg":
		return "image/" + ext[1:]
	case ".jpg":
		return "image/jpeg"
	}
	return "image/*"
}
