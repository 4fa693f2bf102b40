package wire

import "fmt"

// Attachment is a file that came with a message: one that was uploaded
// (AttachmentID) or one at an address (URL).
type Attachment struct {
	AttachmentID string `json:"attachment_id,omitempty" maxLength:"4096"`
	URL          string `json:"url,omitempty"`
	Name         string `json:"name,omitempty" maxLength:"4096"`
	MimeType     string `json:"mime_type,omitempty" maxLength:"4096"`
	SizeBytes    int64  `json:"size_bytes,omitempty" minimum:"0" maximum:"9007199254740991"` // 0 = not known
	Caption      string `json:"caption,omitempty"`
}

// maxSize is the largest size_bytes: beyond it, readers whose numbers are
// doubles (JavaScript) read another one.
const maxSize = 1<<53 - 1

// later are the frames of protocol 1.1 that an adapter may send, and the
// capability that each needs (0 = only 1.1). Otherwise they are answered with
// not_supported.
var later = map[Type]Caps{
	TypeMessageAck:    CapAck,
	TypeMessageEdit:   0,
	TypeMessageDelete: CapDeleteMessage,
	TypeReaction:      CapReaction,
	TypeFormSubmit:    CapForm,
	TypeUpload:        0,

	TypePlatformStatus: 0,
}

func nameOf(needs Caps) string {
	if needs == 0 {
		return "protocol 1.1"
	}
	return needs.String()
}

// later reads a frame of the map later.
func (in *Inbound) later(f *fields) *Error {
	l := new(Later)
	in.Later = l
	switch in.Type {
	case TypeMessageAck:
		if err := f.filled(&in.MessageID, keyMessageID); err != nil {
			return err
		}
		return l.ack(f)
	case TypeUpload:
		return l.upload(f)
	case TypePlatformStatus:
		return l.status(f)
	case TypeFormSubmit:
		if err := l.form(f); err != nil {
			return err
		}
		return in.author(f, Dialect{Protocol: V11})
	}
	if err := f.filled(&in.MessageID, keyMessageID); err != nil { // whose edit, deletion, reaction
		return err
	}
	switch in.Type {
	case TypeMessageEdit:
		if err := f.required(&in.Text, keyText); err != nil {
			return err
		}
	case TypeReaction:
		if err := f.filled(&l.Emoji, keyEmoji); err != nil {
			return err
		}
		if err := f.boolean(&l.Remove, keyRemove); err != nil {
			return err
		}
	}
	return in.author(f, Dialect{Protocol: V11})
}

func (l *Later) ack(f *fields) *Error {
	if err := f.missing(keyOK, "a boolean"); err != nil {
		return err
	}
	for _, b := range [...]struct {
		dst *bool
		key int
	}{{&l.OK, keyOK}, {&l.Retryable, keyRetryable}, {&l.Ambiguous, keyAmbiguous}} {
		if err := f.boolean(b.dst, b.key); err != nil {
			return err
		}
	}
	// However long, a reason must not cost the acknowledgement.
	if err := f.text(&l.Error, keyError, MaxFrame); err != nil {
		return err
	}
	if err := readInt(&l.RetryAfterMS, "", keyNames[keyRetryAfter], f[keyRetryAfter], MostRetryAfter.Milliseconds()); err != nil {
		return err
	}
	if err := f.text(&l.Note, keyNote, MaxField); err != nil {
		return err
	}
	return f.text(&l.PreviewHandle, keyPreviewHandle, MaxField)
}

func (l *Later) upload(f *fields) *Error {
	if err := f.filled(&l.Name, keyName); err != nil {
		return err
	}
	if err := f.filled(&l.MimeType, keyMimeType); err != nil {
		return err
	}
	if err := f.missing(keySizeBytes, "an integer"); err != nil {
		return err
	}
	return readInt(&l.SizeBytes, "", keyNames[keySizeBytes], f[keySizeBytes], maxSize)
}

func (l *Later) form(f *fields) *Error {
	if err := f.filled(&l.UIID, keyUIID); err != nil {
		return err
	}
	if err := f.missing(keyValues, "an object"); err != nil {
		return err
	}
	if raw := f[keyValues]; raw[0] != '{' {
		return errorf(CodeWrongType, "values: found %s, expected an object", kindOf(raw))
	}
	l.Values = Raw(f[keyValues])
	return nil
}

// message reads what a message says: under 1.1 its text may be left to parts or
// attachments, where the session has negotiated these.
func (in *Inbound) message(f *fields, d Dialect) *Error {
	if d.Protocol == V10 {
		if f.absent(keyText) {
			in.Lenient |= lenientText
		}
		return f.text(&in.Text, keyText, MaxFrame)
	}
	rich, err := readRich(f, d)
	if err != nil {
		return err
	}
	in.Later = rich
	switch {
	case !f.absent(keyText):
		return f.text(&in.Text, keyText, MaxFrame)
	case rich != nil:
		rich.NoText = true
		return nil
	case !f.absent(keyParts) && !d.Caps.Has(CapParts):
		return errorf(CodeNotSupported, "parts: in place of text needs parts, which this session has not negotiated")
	case !f.absent(keyAttachments) && d.Caps&(CapParts|CapAudio) == 0:
		return errorf(CodeNotSupported, "attachments: in place of text needs parts or audio, which this session has not negotiated")
	}
	return f.missing(keyText, "a string, or parts or attachments")
}

// readRich reads what a message may have beside text; nil if it has none.
func readRich(f *fields, d Dialect) (*Later, *Error) {
	if f.absent(keyParts) && f.absent(keyAttachments) {
		return nil, nil
	}
	l := new(Later)
	if d.Caps.Has(CapParts) && !f.absent(keyParts) {
		if err := l.readParts(f[keyParts]); err != nil {
			return nil, err
		}
	}
	if d.Caps&(CapParts|CapAudio) != 0 && !f.absent(keyAttachments) {
		if err := l.readAttachments(f[keyAttachments]); err != nil {
			return nil, err
		}
	}
	if l.Parts == "" && l.Attachments == nil {
		return nil, nil
	}
	return l, nil
}

func (l *Later) readParts(raw string) *Error {
	if err := checkParts(raw); err != nil {
		return err
	}
	if !isEmpty(raw) {
		l.Parts = Raw(raw)
	}
	return nil
}

// checkParts checks no more than what every part must have: the message model
// keeps types that it does not know.
func checkParts(raw string) *Error {
	if raw[0] != '[' {
		return errorf(CodeWrongType, "parts: found %s, expected an array of objects", kindOf(raw))
	}
	for i, e := range elements(raw) {
		if e[0] != '{' {
			return errorf(CodeWrongType, "parts[%d]: found %s, expected an object", i, kindOf(e))
		}
		var kind [1]string
		pick(e, keyNames[keyType:keyType+1], kind[:])
		if kind[0] == "" || kind[0][0] != '"' {
			return errorf(CodeWrongType, "parts[%d].type: found %s, expected a string", i, kindOf(kind[0]))
		}
	}
	return nil
}

func (l *Later) readAttachments(raw string) *Error {
	if raw[0] != '[' {
		return errorf(CodeWrongType, "attachments: found %s, expected an array of objects", kindOf(raw))
	}
	for i, e := range elements(raw) {
		if e[0] != '{' {
			return errorf(CodeWrongType, "attachments[%d]: found %s, expected an object", i, kindOf(e))
		}
		a, err := readAttachment(e, i)
		if err != nil {
			return err
		}
		l.Attachments = append(l.Attachments, a)
	}
	return nil
}

var attachmentKeys = [...]string{"attachment_id", "url", "name", "mime_type", "caption", "size_bytes"}

func readAttachment(raw string, i int) (a Attachment, err *Error) {
	var v [len(attachmentKeys)]string
	pick(raw, attachmentKeys[:], v[:])
	prefix := fmt.Sprintf("attachments[%d].", i)
	for k, d := range [...]struct {
		dst   *string
		limit int
	}{{&a.AttachmentID, MaxField}, {&a.URL, MaxFrame}, {&a.Name, MaxField}, {&a.MimeType, MaxField}, {&a.Caption, MaxFrame}} {
		if err := readText(d.dst, prefix, attachmentKeys[k], v[k], d.limit); err != nil {
			return a, err
		}
	}
	if err := readInt(&a.SizeBytes, prefix, attachmentKeys[5], v[5], maxSize); err != nil {
		return a, err
	}
	if a.AttachmentID == "" && a.URL == "" {
		return a, errorf(CodeMissingField, "attachments[%d]: found neither attachment_id nor url, expected one of them", i)
	}
	return a, nil
}

func (a *Attachment) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = fieldIf(dst, "attachment_id", a.AttachmentID)
	dst = fieldIf(dst, "url", a.URL)
	dst = fieldIf(dst, "name", a.Name)
	dst = fieldIf(dst, "mime_type", a.MimeType)
	dst = intIf(dst, "size_bytes", a.SizeBytes)
	dst = fieldIf(dst, "caption", a.Caption)
	return append(dst, '}')
}
