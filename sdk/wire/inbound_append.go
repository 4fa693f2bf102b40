package wire

import "strconv"

// Append appends the frame as one JSON object: what an adapter writes. Empty
// optional fields are left out. What the session has not negotiated is the
// caller's to leave empty.
func (in *Inbound) Append(dst []byte) []byte {
	dst = open(dst, in.Type)
	var l Later
	if in.Later != nil {
		l = *in.Later
	}
	switch in.Type {
	case TypeRegister:
		dst = in.Register.append(dst)
	case TypeMessage, TypeCardAction, TypeMessageEdit, TypeMessageDelete, TypeReaction, TypeFormSubmit:
		dst = fieldIf(dst, "session_key", in.SessionKey)
		dst = fieldIf(dst, "conversation_id", in.ConversationID)
		dst = fieldIf(dst, "user_id", in.UserID)
		dst = fieldIf(dst, "user_name", in.UserName)
		dst = in.appendContent(dst, &l)
		if in.ReplyCtx != "" {
			dst = rawField(dst, "reply_ctx", in.ReplyCtx)
		}
		dst = fieldIf(dst, "message_id", in.MessageID)
	case TypeUpload:
		dst = field(dst, "name", l.Name)
		dst = field(dst, "mime_type", l.MimeType)
		dst = strconv.AppendInt(key(dst, "size_bytes"), l.SizeBytes, 10)
		dst = fieldIf(dst, "message_id", in.MessageID)
	case TypePlatformStatus:
		dst = l.Status.append(dst)
	case TypeMessageAck:
		dst = field(dst, "message_id", in.MessageID)
		dst = boolField(dst, "ok", l.OK)
		dst = fieldIf(dst, "error", l.Error)
		dst = boolIf(dst, "retryable", l.Retryable)
		dst = intIf(dst, "retry_after_ms", l.RetryAfterMS)
		dst = boolIf(dst, "ambiguous", l.Ambiguous)
		dst = fieldIf(dst, "preview_handle", l.PreviewHandle)
		dst = fieldIf(dst, "note", l.Note)
	}
	dst = fieldIf(dst, "cursor", in.Cursor)
	return append(dst, '}')
}

func (r *Register) append(dst []byte) []byte {
	dst = fieldIf(dst, "token", r.Token)
	dst = field(dst, "platform", r.Platform)
	dst = stringsField(dst, "capabilities", r.Capabilities)
	if r.Metadata != "" {
		dst = rawField(dst, "metadata", r.Metadata)
	}
	dst = fieldIf(dst, "protocol", r.Protocol)
	if r.Profile != nil {
		dst = r.Profile.append(key(dst, "profile"))
	}
	return dst
}

// appendContent appends what stands between the author and reply_ctx.
func (in *Inbound) appendContent(dst []byte, l *Later) []byte {
	switch in.Type {
	case TypeMessage:
		if !l.NoText {
			dst = field(dst, "text", in.Text)
		}
		if l.Parts != "" {
			dst = rawField(dst, "parts", l.Parts)
		}
		if len(l.Attachments) > 0 {
			dst = append(key(dst, "attachments"), '[')
			for i := range l.Attachments {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = l.Attachments[i].append(dst)
			}
			dst = append(dst, ']')
		}
	case TypeMessageEdit:
		dst = field(dst, "text", in.Text)
	case TypeCardAction:
		dst = field(dst, "action", in.Action)
	case TypeReaction:
		dst = field(dst, "emoji", l.Emoji)
		dst = boolIf(dst, "remove", l.Remove)
	case TypeFormSubmit:
		dst = field(dst, "ui_id", l.UIID)
		dst = rawField(dst, "values", l.Values)
	}
	return dst
}
