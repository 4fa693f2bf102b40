package wire

import (
	"strings"
	"testing"
)

// everything is a session of 1.1 with all capabilities: that of the golden
// frames whose names begin with v11_.
var everything = Dialect{V11, CapsV11}

func dialectByName(name string) Dialect {
	if strings.HasPrefix(name, "v11_") {
		return everything
	}
	return Dialect{}
}

// as is Alice's frame of a type that needs no more than change says.
func as(typ Type, change func(*Inbound)) *Inbound {
	return from(alice, func(m *Inbound) {
		m.Type = typ
		change(m)
	})
}

const someParts = `[{"type":"text","id":"p1","text":"Hello"},{"type":"hologram","id":"p2","n":12345678901234567890, "é":"\u00e9"}]`

// toHostV11 are the golden frames of an adapter of protocol 1.1.
var toHostV11 = map[string]*Inbound{
	"v11_register": {Type: TypeRegister, Register: &Register{Token: "abc", Platform: "telegram", Capabilities: []string{"text", "ack", "parts"}, Metadata: `{"version":"1.0.0"}`,
		Protocol: "1.1", Profile: &Profile{MaxText: 4096, Markdown: "basic", MaxButtons: 8, EditIntervalMS: 1000, Parallel: 16, InFlight: 16}}},
	"v11_register_min":           {Type: TypeRegister, Register: &Register{Platform: "irc", Capabilities: []string{}, Protocol: "1.1"}},
	"v11_register_caps":          {Type: TypeRegister, Register: &Register{Platform: "matrix", Capabilities: CapNamesFor("1.1"), Protocol: "1.1"}},
	"v11_register_newer":         {Type: TypeRegister, Register: &Register{Platform: "irc", Capabilities: []string{"text"}, Protocol: "2.0", Profile: &Profile{}}},
	"v11_register_profile_least": {Type: TypeRegister, Register: &Register{Platform: "irc", Capabilities: []string{}, Protocol: "1.1", Profile: &Profile{MaxText: 400, Markdown: "none"}}},
	"v11_register_profile_most": {Type: TypeRegister, Register: &Register{Platform: "irc", Capabilities: []string{}, Protocol: "1.1",
		Profile: &Profile{MaxText: 1_000_000, Markdown: "full", MaxButtons: 10_000, EditIntervalMS: 3_600_000, Parallel: 100_000, InFlight: 64}}},

	"v11_message": as(TypeMessage, func(m *Inbound) {
		m.Text, m.MessageID, m.Cursor = "Hello", "tg-1", "offset=17"
		m.Later = &Later{Parts: someParts, Attachments: []Attachment{
			{AttachmentID: "att_1", URL: "https://example.org/a.png?x=1&y=<2>", Name: "a.png", MimeType: "image/png", SizeBytes: 9007199254740991, Caption: "A \"picture\""},
			{URL: "https://example.org/b"},
		}}
	}),
	"v11_message_min":         {Type: TypeMessage},
	"v11_message_parts":       {Type: TypeMessage, Later: &Later{NoText: true, Parts: `[{"type":"text","text":"Hi"}]`}},
	"v11_message_empty_text":  {Type: TypeMessage, Later: &Later{Parts: `[{"type":"text","text":"Hi"}]`}}, // there, unlike an absent one
	"v11_message_attachments": {Type: TypeMessage, Later: &Later{NoText: true, Attachments: []Attachment{{AttachmentID: "att_1"}}}},
	"v11_card_action":         as(TypeCardAction, func(m *Inbound) { m.Action, m.MessageID, m.Cursor = "cmd:/cancel s1", "tg-2", "18" }),

	"v11_message_edit": as(TypeMessageEdit, func(m *Inbound) {
		m.Text, m.MessageID, m.Cursor, m.Later = "Hello!", "tg-1", "19", &Later{}
	}),
	"v11_message_edit_min":   {Type: TypeMessageEdit, MessageID: "tg-1", Later: &Later{}},
	"v11_message_delete":     as(TypeMessageDelete, func(m *Inbound) { m.MessageID, m.Cursor, m.Later = "tg-1", "20", &Later{} }),
	"v11_message_delete_min": {Type: TypeMessageDelete, MessageID: "tg-1", Later: &Later{}},
	"v11_reaction": as(TypeReaction, func(m *Inbound) {
		m.MessageID, m.Cursor, m.Later = "tg-1", "21", &Later{Emoji: "👩‍👩‍👧", Remove: true}
	}),
	"v11_reaction_min": {Type: TypeReaction, MessageID: "tg-1", Later: &Later{Emoji: ":+1:"}},
	"v11_form_submit": as(TypeFormSubmit, func(m *Inbound) {
		m.MessageID, m.Cursor = "tg-3", "22"
		m.Later = &Later{UIID: "ui_1", Values: `{ "name":"Zażółć", "agree":true, "colours":["red","blue"] }`}
	}),
	"v11_form_submit_min": {Type: TypeFormSubmit, Later: &Later{UIID: "ui_1", Values: `{}`}},
	"v11_upload":          {Type: TypeUpload, MessageID: "up-1", Cursor: "23", Later: &Later{Name: "a.png", MimeType: "image/png", SizeBytes: 1234}},
	"v11_upload_min":      {Type: TypeUpload, Later: &Later{Name: "a", MimeType: "text/plain"}},

	"v11_message_ack": {Type: TypeMessageAck, MessageID: "01h/2", Cursor: "24", Later: &Later{OK: true, PreviewHandle: "h1"}},
	"v11_message_ack_min": {
		Type: TypeMessageAck, MessageID: "01h", Later: &Later{OK: true}},
	"v11_message_ack_failed":      {Type: TypeMessageAck, MessageID: "01h", Later: &Later{Error: "chat not found"}},
	"v11_message_ack_retryable":   {Type: TypeMessageAck, MessageID: "01h", Later: &Later{Error: "flood wait", Retryable: true}},
	"v11_message_ack_note":        {Type: TypeMessageAck, MessageID: "01h", Later: &Later{OK: true, Note: "2 of 5 lines were cut"}},
	"v11_message_ack_retry_after": {Type: TypeMessageAck, MessageID: "01h", Later: &Later{Error: "flood wait", Retryable: true, RetryAfterMS: 90_000}},
	"v11_message_ack_ambiguous":   {Type: TypeMessageAck, MessageID: "01h", Later: &Later{Error: "connection lost", Ambiguous: true}},
	"v11_platform_status": {Type: TypePlatformStatus, Later: &Later{Status: &PlatformStatus{
		State: PlatformLimited, Reason: "flood wait", Since: "2026-11-20T10:00:00Z", UntilMS: 90_000}}},
	"v11_platform_status_min": {Type: TypePlatformStatus, Later: &Later{Status: &PlatformStatus{State: PlatformConnected}}},
	"v11_ping":                {Type: TypePing, Cursor: "25"},
}

// toAdapterV11 are the golden frames of the host to an adapter of protocol 1.1.
var toAdapterV11 = map[string]*Outbound{
	"v11_register_ack": {Frame: Frame{Type: TypeRegisterAck}, Ack: &RegisterAck{
		OK: true, Protocol: "1.1", Channel: ChannelRef{ID: "ch_1", Name: "support"}, Capabilities: CapNamesFor("1.1"),
		Limits: Limits{MaxFrameBytes: MaxFrame, PingIntervalMS: 54_000, Window: 64, InFlight: 16, MaxUploadBytes: 25 << 20, AckTimeoutMS: 60_000, SilenceTimeoutMS: 60_000},
		Cursor: "offset=17",
	}},
	"v11_register_ack_warnings": {Frame: Frame{Type: TypeRegisterAck}, Ack: &RegisterAck{OK: true, Protocol: "1.1", Capabilities: []string{"text"}, Warnings: []string{
		Typo{"capabilitie", "capabilities"}.String()}}},
	"v11_register_ack_min": {Frame: Frame{Type: TypeRegisterAck}, Ack: &RegisterAck{OK: true, Protocol: "1.1", Capabilities: []string{"text"}}},
	"v11_message_ack":      {Frame: Frame{Type: TypeMessageAck}, MessageAck: &MessageAck{MessageID: "tg-1", OK: true}},
	"v11_message_ack_failed": {Frame: Frame{Type: TypeMessageAck},
		MessageAck: &MessageAck{MessageID: "tg-1", Error: "rejected: user is not on the list"}},
	"v11_message_ack_retryable": {Frame: Frame{Type: TypeMessageAck},
		MessageAck: &MessageAck{MessageID: "tg-1", Error: "the message was not stored: send it again later", Retryable: true}},
	"v11_upload_ack": {Frame: Frame{Type: TypeUploadAck}, UploadAck: &UploadAck{
		MessageID: "up-1", AttachmentID: "att_1", URL: "https://host.example/upload/att_1?token=x&y=<z>", ExpiresAt: "2026-11-20T10:00:00.000Z"}},
	"v11_upload_ack_min": {Frame: Frame{Type: TypeUploadAck},
		UploadAck: &UploadAck{AttachmentID: "att_1", URL: "https://host.example/u", ExpiresAt: "2026-11-20T10:00:00.000Z"}},
	"v11_upload_ack_busy":   {Frame: Frame{Type: TypeUploadAck}, UploadAck: &UploadAck{MessageID: "up-1", Error: "more than 2 uploads a second: ask again later", Retryable: true}},
	"v11_upload_ack_failed": {Frame: Frame{Type: TypeUploadAck}, UploadAck: &UploadAck{MessageID: "up-1", Error: "too large: at most 26214400 bytes are allowed"}},

	"v11_send":             identified(Frame{Type: TypeSend, Text: "Acknowledged."}),
	"v11_send_resumed":     identified(Frame{Type: TypeSend, Text: "Acknowledged.", Resumed: true}),
	"v11_send_unsolicited": identified(Frame{Type: TypeSend, Text: "Dinner is ready.", Unsolicited: true}),
	"v11_send_unrouted":    {Frame: Frame{Type: TypeSend, MessageID: "01h/2", Text: "Acknowledged."}},
	"v11_send_card":        identified(Frame{Type: TypeSendCard, Card: toAdapter["send_card"].Card, Plain: true}),
	"v11_send_card_min":    content(Frame{Type: TypeSendCard, Card: &Card{Elements: []Element{}}, Plain: true}),
	"v11_send_buttons":     identified(Frame{Type: TypeSendButtons, Text: "Pick one:", Buttons: [][]Button{{{"Yes", "cmd:/confirm", ""}}}}),
	"v11_update_message":   identified(Frame{Type: TypeUpdateMessage, PreviewHandle: "h1", Text: "Updated"}),
	"v11_send_image":       identified(Frame{Type: TypeSendImage, Image: &Image{URL: "https://example.org/a.png"}}),
	"v11_send_file":        identified(Frame{Type: TypeSendFile, File: &File{URL: "https://example.org/x.pdf", Filename: "x.pdf"}}),

	"v11_send_parts":     identified(Frame{Type: TypeSendParts, Text: "Hello", Parts: []byte(someParts)}),
	"v11_send_parts_min": content(Frame{Type: TypeSendParts, Parts: []byte(`[]`)}),
	"v11_stream":         identified(Frame{Type: TypeStream, Draft: 3, Text: "Hel", Parts: []byte(`[{"type":"text","id":"p1","text":"Hel"}]`)}),
	"v11_stream_min":     identified(Frame{Type: TypeStream, Parts: []byte(`[]`)}),
	"v11_stream_end":     identified(Frame{Type: TypeStreamEnd, Text: "Hello", Parts: []byte(someParts)}),
	"v11_stream_end_min": identified(Frame{Type: TypeStreamEnd, Text: "Hello", Parts: []byte(`[]`)}),

	"v11_delete_message":     identified(Frame{Type: TypeDeleteMessage, PreviewHandle: "h1"}),
	"v11_delete_message_min": identified(Frame{Type: TypeDeleteMessage}),
	"v11_send_reaction":      content(Frame{Type: TypeSendReaction, MessageID: "tg-1", Emoji: "👍", Remove: true}),
	"v11_send_reaction_min":  content(Frame{Type: TypeSendReaction, MessageID: "tg-1", Emoji: "👍"}),
	"v11_send_audio": identified(Frame{Type: TypeSendAudio,
		Audio: &Audio{URL: "https://example.org/a.ogg?x=1&y=<2>", MimeType: "audio/ogg", DurationMS: 1500, Caption: "optional"}}),
	"v11_send_audio_min": content(Frame{Type: TypeSendAudio, Audio: &Audio{URL: "https://example.org/a.ogg", MimeType: "audio/ogg"}}),
	"v11_send_form": identified(Frame{Type: TypeSendForm,
		UI: []byte(`{"type":"ui","id":"p1","uiId":"ui_1","components":[{"type":"input","name":"name","label":"Name"}], "submit":{"label":"Wyślij"}}`)}),
	"v11_send_form_min": content(Frame{Type: TypeSendForm, UI: []byte(`{"type":"ui","id":"p1","uiId":"ui_1","components":[]}`)}),
}

// identified is a content frame as a session with ack gets it.
func identified(f Frame) *Outbound {
	f.MessageID = "01jd2y9k4q8t3"
	return content(f)
}

func TestGoldenTypes(t *testing.T) {
	check := func(direction string, seen map[Type]bool, want []Type) {
		for _, typ := range want {
			if !seen[typ] {
				t.Errorf("no golden frame of type %s %s", typ, direction)
			}
			delete(seen, typ)
		}
		for typ := range seen {
			t.Errorf("golden frames of type %s %s, which this test does not know", typ, direction)
		}
	}
	seen := map[Type]bool{}
	for _, frames := range []map[string]*Inbound{toHost, toHostV11} {
		for _, f := range frames {
			seen[f.Type] = true
		}
	}
	check("to the host", seen, []Type{
		TypeRegister, TypeMessage, TypeCardAction, TypePing,
		TypeMessageAck, TypeMessageEdit, TypeMessageDelete, TypeReaction, TypeFormSubmit, TypeUpload, TypePlatformStatus,
	})
	seen = map[Type]bool{}
	for _, frames := range []map[string]*Outbound{toAdapter, toAdapterV11} {
		for _, f := range frames {
			seen[f.Type] = true
		}
	}
	check("to the adapter", seen, []Type{
		TypeRegisterAck, TypeSend, TypeSendCard, TypeSendButtons, TypeUpdateMessage, TypeSendImage, TypeSendFile,
		TypeStartTyping, TypeStopTyping, TypePong, TypeError,
		TypeSendParts, TypeStream, TypeStreamEnd, TypeDeleteMessage, TypeSendReaction, TypeSendAudio, TypeSendForm,
		TypeMessageAck, TypeUploadAck,
	})
}
