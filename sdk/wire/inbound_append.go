package wire

import "strconv"

// Append appends the frame as one JSON object: what an adapter writes. Empty
// optional fields are left out. What the session has not negotiated is the
// caller's to leave empty.
func (in *Inbound) Append(dst []byte) []byte {
	dst = open(dst, in.Type)
	switch in.Type {
	case TypeRegister:
		dst = in.appendRegister(dst)
	case TypeMessage, TypeCardAction, TypeMessageEdit, TypeMessageDelete, TypeReaction, TypeFormSubmit:
		dst = fieldIf(dst, "session_key", in.SessionKey)
		dst = fieldIf(dst, "conversation_id", in.ConversationID)
		dst = fieldIf(dst, "user_id", in.UserID)
		dst = fieldIf(dst, "user_name", in.UserName)
		dst = in.appendContent(dst)
		if in.ReplyCtx != "" {
			dst = rawField(dst, "reply_ctx", in.ReplyCtx)
		}
		dst = fieldIf(dst, "message_id", in.MessageID)
	case TypeUpload:
		dst = field(dst, "name", in.Name)
		dst = field(dst, "mime_type", in.MimeType)
		dst = strconv.AppendInt(key(dst, "size_bytes"), in.SizeBytes, 10)
		dst = fieldIf(dst, "message_id", in.MessageID)
	case TypeMessageAck:
		dst = field(dst, "message_id", in.MessageID)
		dst = boolField(dst, "ok", in.OK)
		dst = fieldIf(dst, "error", in.Error)
		dst = boolIf(dst, "retryable", in.Retryable)
		dst = boolIf(dst, "ambiguous", in.Ambiguous)
		dst = fieldIf(dst, "preview_handle", in.PreviewHandle)
	}
	dst = fieldIf(dst, "cursor", in.Cursor)
	return append(dst, '}')
}

func (in *Inbound) appendRegister(dst []byte) []byte {
	dst = fieldIf(dst, "token", in.Token)
	dst = field(dst, "platform", in.Platform)
	dst = stringsField(dst, "capabilities", in.Capabilities)
	if in.Metadata != "" {
		dst = rawField(dst, "metadata", in.Metadata)
	}
	dst = fieldIf(dst, "protocol", in.Protocol)
	if in.Profile != nil {
		dst = in.Profile.append(key(dst, "profile"))
	}
	return dst
}

// appendContent appends what stands between the author and reply_ctx.
func (in *Inbound) appendContent(dst []byte) []byte {
	switch in.Type {
	case TypeMessage:
		if !in.NoText {
			dst = field(dst, "text", in.Text)
		}
		if in.Parts != "" {
			dst = rawField(dst, "parts", in.Parts)
		}
		if len(in.Attachments) > 0 {
			dst = append(key(dst, "attachments"), '[')
			for i := range in.Attachments {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = in.Attachments[i].append(dst)
			}
			dst = append(dst, ']')
		}
	case TypeMessageEdit:
		dst = field(dst, "text", in.Text)
	case TypeCardAction:
		dst = field(dst, "action", in.Action)
	case TypeReaction:
		dst = field(dst, "emoji", in.Emoji)
		dst = boolIf(dst, "remove", in.Remove)
	case TypeFormSubmit:
		dst = field(dst, "ui_id", in.UIID)
		dst = rawField(dst, "values", in.Values)
	}
	return dst
}
