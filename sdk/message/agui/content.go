package agui

import (
	"encoding/json"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Types of input contents. A binary content has its address or data beside its
// type; the newer ones have a source.
const (
	typeText     = "text"
	typeBinary   = "binary"
	typeImage    = "image"
	typeAudio    = "audio"
	typeVideo    = "video"
	typeDocument = "document"
)

// newer reports the types of contents that have a source.
func newer(typ string) bool {
	switch typ {
	case typeImage, typeAudio, typeVideo, typeDocument:
		return true
	}
	return false
}

// contentPart is the part of one input content, which was checked. What no part
// can say is custom, as it came.
func contentPart(raw json.RawMessage, role message.Role) message.Part {
	o, err := readObject(raw)
	if err != nil {
		return message.NewCustom(PayloadContent, raw)
	}
	typ := str(o["type"])
	delete(o, "type")
	var p message.Part
	ok := false
	switch {
	case typ == typeText && isText(o["text"]):
		text := object{"type": quote(message.TypeText), "text": o["text"]}
		delete(o, "text")
		return part(text, mark{Rest: o.rest()})
	case typ == typeBinary:
		p, ok = binaryPart(o, role)
	case newer(typ):
		p, ok = sourcePart(typ, o, role)
	}
	if !ok {
		return message.NewCustom(PayloadContent, raw)
	}
	return p
}

// binaryType is the type of the part of a binary content; "" = none can say it.
// It decides both ways.
func binaryType(o object, role message.Role) string {
	mime := strings.ToLower(str(o["mimeType"]))
	switch {
	case strings.HasPrefix(mime, "image/") && (o.has("url") || o.has("data")):
		return message.TypeVision
	case o.has("data"):
		return "" // no part but vision holds bytes
	case strings.HasPrefix(mime, "audio/") && o.has("url"):
		return audioType(role)
	case o.has("url") || o.has("id"):
		return message.TypeFile
	}
	return ""
}

// sourceType is the same of a content with a source of the given type.
func sourceType(typ, from string, role message.Role) string {
	switch {
	case typ == typeImage && (from == "url" || from == "data"):
		return message.TypeVision
	case from != "url":
		return ""
	case typ == typeAudio:
		return audioType(role)
	}
	return message.TypeFile
}

// binaryPart is the part of a binary content; false = none can say it.
func binaryPart(o object, role message.Role) (message.Part, bool) {
	typ := binaryType(o, role)
	if typ == "" {
		return message.Part{}, false
	}
	mk := mark{}
	if !o.has("mimeType") {
		mk.As = typeBinary // none is to be made up on the way back
	}
	out := empty(typ, role)
	for as, name := range carried[typ] {
		out.move(name, o, as)
	}
	mk.Rest = o.rest()
	return part(out, mk), true
}

// sourcePart is the part of a content with a source; false = none can say it.
func sourcePart(content string, o object, role message.Role) (message.Part, bool) {
	source, err := readObject(o["source"])
	if err != nil || !source.has("value") {
		return message.Part{}, false
	}
	from := str(source["type"])
	typ := sourceType(content, from, role)
	if typ == "" {
		return message.Part{}, false
	}
	out := empty(typ, role)
	out.move("mimeType", source, "mimeType")
	out.move(from, source, "value")
	delete(source, "type")
	delete(o, "source")
	return part(out, mark{As: content, Rest: o.rest(), Inner: source.rest()}), true
}

// carried are the fields of each type of media: name in a binary content → name
// in the part.
var carried = map[string]map[string]string{
	message.TypeVision:      {"mimeType": "mimeType", "url": "url", "data": "data"},
	message.TypeFile:        {"mimeType": "mimeType", "url": "url", "filename": "fileName", "id": "attachmentId"},
	message.TypeAudioInput:  {"mimeType": "mimeType", "url": "url"},
	message.TypeAudioOutput: {"mimeType": "mimeType", "url": "url"},
}

// empty is a part of a type of media, with the fields that it must have.
func empty(typ string, role message.Role) object {
	o := object{"type": quote(typ)}
	switch typ {
	case message.TypeVision:
		o["kind"], o["mimeType"] = quote(visionKind(role)), quote("")
	case message.TypeFile:
		o["fileName"] = quote("")
	default:
		o["status"], o["mimeType"] = quote("completed"), quote("")
	}
	return o
}

func visionKind(role message.Role) message.VisionKind {
	if role == message.RoleUser {
		return message.VisionInput
	}
	return message.VisionOutput
}

func audioType(role message.Role) string {
	if role == message.RoleUser {
		return message.TypeAudioInput
	}
	return message.TypeAudioOutput
}
