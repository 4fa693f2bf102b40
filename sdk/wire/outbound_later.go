package wire

import "encoding/json"

// Audio is a recording by address.
type Audio struct {
	URL        string `json:"url"`
	MimeType   string `json:"mime_type"`
	DurationMS int64  `json:"duration_ms,omitempty"` // 0 = not known
	Caption    string `json:"caption,omitempty"`
}

// appendLater appends what a content frame of protocol 1.1 carries besides its
// routing and message_id.
func (f *Frame) appendLater(dst []byte) []byte {
	switch f.Type {
	case TypeSendParts, TypeStream, TypeStreamEnd:
		if f.Type == TypeStream {
			dst = intIf(dst, "draft", f.Draft)
		}
		dst = field(dst, "text", f.Text)
		if len(f.Parts) == 0 {
			return append(key(dst, "parts"), '[', ']')
		}
		dst = append(key(dst, "parts"), f.Parts...)
	case TypeDeleteMessage:
		dst = field(dst, "preview_handle", f.PreviewHandle)
	case TypeSendReaction:
		dst = field(dst, "emoji", f.Emoji)
		dst = boolIf(dst, "remove", f.Remove)
	case TypeSendAudio:
		dst = append(key(dst, "audio"), '{')
		dst = field(dst, "url", f.Audio.URL)
		dst = field(dst, "mime_type", f.Audio.MimeType)
		dst = intIf(dst, "duration_ms", f.Audio.DurationMS)
		dst = fieldIf(dst, "caption", f.Audio.Caption)
		dst = append(dst, '}')
	case TypeSendForm:
		dst = rawField(dst, "ui", Raw(f.UI))
	}
	return dst
}

// later reads what a frame of protocol 1.1 carries besides the fields of 1.0.
// They are read for these types alone, since a host of 1.0 may use their names
// for something else.
func (o *Outbound) later(frame []byte) error {
	switch o.Type {
	case TypeMessageAck:
		o.MessageID = "" // belongs to MessageAck
		o.MessageAck = new(MessageAck)
		return decodeInto(o.MessageAck, frame)
	case TypeUploadAck:
		o.MessageID = ""
		o.UploadAck = new(UploadAck)
		return decodeInto(o.UploadAck, frame)
	case TypeSendParts, TypeStream, TypeStreamEnd, TypeSendReaction, TypeSendAudio, TypeSendForm:
	default:
		return nil
	}
	var f struct {
		Draft  int64           `json:"draft"`
		Parts  json.RawMessage `json:"parts"`
		Audio  *Audio          `json:"audio"`
		UI     json.RawMessage `json:"ui"`
		Emoji  string          `json:"emoji"`
		Remove bool            `json:"remove"`
	}
	if err := decodeInto(&f, frame); err != nil {
		return err
	}
	switch o.Type {
	case TypeSendReaction:
		o.Emoji, o.Remove = f.Emoji, f.Remove
	case TypeSendAudio:
		o.Audio = f.Audio
	case TypeSendForm:
		o.UI = f.UI
		return expect(f.UI, "ui", '{', "an object")
	default:
		if o.Type == TypeStream {
			o.Draft = f.Draft
		}
		o.Parts = f.Parts
		return expect(f.Parts, "parts", '[', "an array")
	}
	return nil
}

// expect refuses a raw value that does not start as it must.
func expect(raw json.RawMessage, name string, first byte, kind string) error {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return errorf(CodeMissingField, "%s: absent, expected %s", name, kind)
	case raw[0] != first:
		return errorf(CodeWrongType, "%s: found %s, expected %s", name, kindOf(string(raw)), kind)
	}
	return nil
}
