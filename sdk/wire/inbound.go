package wire

import "encoding/json"

// Inbound is one frame of an adapter. Which fields count follows from Type.
// Its strings are of their own: the frame's buffer may be reused. What only
// register and only protocol 1.1 know is apart, since every message pays for
// the size of this struct.
type Inbound struct {
	Type Type

	// message, card_action; the others of 1.1 that come from somebody
	Routing
	UserID   string
	UserName string
	Text     string // message, message_edit
	Action   string // card_action

	// MessageID is the platform's own id of what the frame carries; "" = none.
	// In message_edit, message_delete and reaction it is that of the message
	// concerned; message_ack has the host's id; upload_ack repeats that of upload.
	MessageID string
	Cursor    string // 1.1, any frame: committed with it, given back in register_ack

	Lenient Lenient // 1.0: fields that were wrong, and were read all the same

	Register *Register // register; else nil
	Later    *Later    // what 1.1 added to the frame's type; nil = none of it
}

// Register is what an adapter says of itself.
type Register struct {
	Token        string
	Platform     string
	Capabilities []string
	Metadata     Raw
	Protocol     string   // what the adapter asks for; Negotiate says what it gets
	Profile      *Profile // 1.1; nil = not said
}

// Later is what frames of protocol 1.1 carry beside the fields of 1.0.
type Later struct {
	// message
	NoText      bool         // text was absent (not empty): parts or attachments stand for it
	Parts       Raw          // array of objects that have a type, at least one; "" = none
	Attachments []Attachment // nil = none

	Emoji  string // reaction
	Remove bool   // reaction: taken back
	UIID   string // form_submit: ui_id of the form
	Values Raw    // form_submit: object

	// upload
	Name      string
	MimeType  string
	SizeBytes int64

	// message_ack
	OK            bool
	Retryable     bool   // not OK: may be sent again
	RetryAfterMS  int64  // Retryable: not before so many milliseconds, at most MostRetryAfter; 0 = when the host likes
	Ambiguous     bool   // not OK: the adapter cannot know
	Error         string // not OK: why
	PreviewHandle string // OK: what a later edit refers to
	Note          string // OK: what the user was not shown as it was meant; "" = nothing

	Status *PlatformStatus // platform_status; else nil
}

// DecodeInbound reads one frame of an adapter of protocol 1.0: DecodeInboundAs
// with the zero Dialect. The first frame of any adapter is read with it.
func DecodeInbound(frame []byte) (*Inbound, *Error) { return DecodeInboundAs(frame, Dialect{}) }

// DecodeInboundAs reads one frame of an adapter that has negotiated d. The frame
// must be valid UTF-8. A refusal is always an *Error whose Code is one of
// bad_json, not_object, too_deep, unknown_type, missing_field, wrong_type,
// too_large, not_supported; it carries the frame's message_id as Ref where that
// could be read. Frames of protocol 1.0 are read alike in every dialect, but for
// what 1.0 ignores: message_id that is none, cursor, parts, attachments.
func DecodeInboundAs(frame []byte, d Dialect) (*Inbound, *Error) {
	in := new(Inbound)
	if err := in.Decode(frame, d); err != nil {
		return nil, err
	}
	return in, nil
}

// Decode is DecodeInboundAs for who reads frame after frame: it makes in what the
// frame says, whatever it was. After an error it is of no use, but that Register, if it is
// there, has what the adapter asks for as Protocol.
func (in *Inbound) Decode(frame []byte, d Dialect) *Error {
	s := string(frame) // one allocation; every field is a part of it
	var f fields
	if !scan(s, &f) {
		f = fields{}
		if err := decodeSlowly(frame, &f); err != nil {
			return err
		}
	}
	*in = Inbound{}
	if err := in.interpret(&f, d); err != nil {
		err.Ref = in.MessageID
		return err
	}
	return nil
}

func (in *Inbound) interpret(f *fields, d Dialect) *Error {
	// The id first, so that every later refusal can refer to it. Protocol 1.0
	// does not know it: what can't be one is ignored, like any unknown field.
	idErr := f.text(&in.MessageID, keyMessageID, MaxField)
	if f.absent(keyType) {
		return errorf(CodeMissingField, "type: absent, expected %s", expectedTypes(d, "register, "))
	}
	if err := f.text((*string)(&in.Type), keyType, MaxFrame); err != nil {
		return err
	}
	switch in.Type {
	case TypeRegister:
		in.Register = new(Register)
		return in.Register.read(f)
	case TypePong, TypeRegisterAck: // ignored by whoever reads them
		return nil
	}
	if err := in.body(f, d); err != nil {
		return err
	}
	if d.Protocol == V10 {
		return nil
	}
	if idErr != nil && in.Type != TypePing {
		return idErr
	}
	return f.text(&in.Cursor, keyCursor, MaxField)
}

// body reads what belongs to the frame's type.
func (in *Inbound) body(f *fields, d Dialect) *Error {
	switch in.Type {
	case TypeMessage:
		if err := in.message(f, d); err != nil {
			return err
		}
		return in.author(f, d)
	case TypeCardAction:
		if err := f.required(&in.Action, keyAction); err != nil {
			return err
		}
		return in.author(f, d)
	case TypePing:
		return nil
	}
	needs, ok := later[in.Type]
	switch {
	case !ok:
		return errorf(CodeUnknownType, "type: found %.64q, expected %s", string(in.Type), expectedTypes(d, ""))
	case d.Protocol == V10, !d.Caps.Has(needs):
		return errorf(CodeNotSupported, "type: %q needs %s, which this session has not negotiated", string(in.Type), nameOf(needs))
	}
	return in.later(f)
}

func expectedTypes(d Dialect, first string) string {
	if d.Protocol == V10 {
		return first + "message, card_action or ping"
	}
	return first + "message, card_action, ping, message_ack, message_edit, message_delete, reaction, form_submit, upload or platform_status"
}

func (r *Register) read(f *fields) *Error {
	// An adapter of 1.0 may use this name and that of the profile for its own purposes:
	// what can't be a protocol is none, and only who asks for 1.1 has a profile.
	if _ = f.text(&r.Protocol, keyProtocol, MaxField); f[keyProtocol] == V11.String() {
		r.Protocol = V11.String() // written as a number
	}
	if err := f.text(&r.Token, keyToken, MaxFrame); err != nil { // a giant token is an invalid one
		return err
	}
	if err := f.text(&r.Platform, keyPlatform, MaxField); err != nil {
		return err
	}
	if raw := f[keyCapabilities]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &r.Capabilities); err != nil {
			return notStrings("capabilities", raw)
		}
	}
	if !f.absent(keyMetadata) {
		if raw := f[keyMetadata]; raw[0] != '{' {
			return errorf(CodeWrongType, "metadata: found %s, expected an object", kindOf(raw))
		}
		r.Metadata = Raw(f[keyMetadata])
	}
	if Negotiate(r.Protocol) == V10 || f.absent(keyProfile) {
		return nil
	}
	var err *Error
	r.Profile, err = readProfile(f[keyProfile])
	return err
}

// notStrings says what about raw is not an array of strings.
func notStrings(name, raw string) *Error {
	var elements []json.RawMessage
	if json.Unmarshal([]byte(raw), &elements) == nil {
		for i, e := range elements {
			if e[0] != '"' && e[0] != 'n' {
				return errorf(CodeWrongType, "%s[%d]: found %s, expected a string", name, i, kindOf(string(e)))
			}
		}
	}
	return errorf(CodeWrongType, "%s: found %s, expected an array of strings", name, kindOf(raw))
}

func (in *Inbound) author(f *fields, d Dialect) *Error {
	for i, dst := range [...]*string{&in.SessionKey, &in.ConversationID, &in.UserID, &in.UserName} {
		key := authorKeys[i]
		if d.Protocol == V10 && !f.absent(key) && f[key][0] != '"' {
			in.Lenient |= 1 << i
			if !f.scalar(key) {
				continue
			}
			f[key] = `"` + f[key] + `"` // its text, as it was written
		}
		if err := f.text(dst, key, MaxField); err != nil {
			return err
		}
	}
	in.ReplyCtx = Raw(f[keyReplyCtx])
	return nil
}
