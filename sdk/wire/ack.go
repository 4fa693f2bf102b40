package wire

import "strconv"

// RegisterAck answers register. What follows Error is protocol 1.1: written only
// if Protocol is set and OK.
type RegisterAck struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`

	Protocol     string     `json:"protocol,omitempty"` // V11.String(); "" = 1.0
	Channel      ChannelRef `json:"channel,omitzero"`
	Capabilities []string   `json:"capabilities,omitempty"` // effective
	Limits       Limits     `json:"limits,omitzero"`
	Cursor       string     `json:"cursor,omitempty"`   // the last one committed; "" = none yet
	Warnings     []string   `json:"warnings,omitempty"` // about the register frame, for its author
}

// ChannelRef names the channel whose slot the adapter holds.
type ChannelRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Limits are what the host asks of an adapter.
type Limits struct {
	MaxFrameBytes  int `json:"max_frame_bytes"`     // largest frame, either way
	PingIntervalMS int `json:"ping_interval_ms"`    // of the host's WebSocket pings
	Window         int `json:"window"`              // frames of the adapter that the host reads ahead of its commits
	InFlight       int `json:"in_flight,omitempty"` // messages of one conversation that the host sends ahead of their acknowledgements; 0 = one

	// Of adapters; 0 = not said.
	MaxUploadBytes   int64 `json:"max_upload_bytes,omitempty"`   // of one file
	AckTimeoutMS     int   `json:"ack_timeout_ms,omitempty"`     // without acknowledgement the host sends a frame once more, and after as much again closes the connection
	SilenceTimeoutMS int   `json:"silence_timeout_ms,omitempty"` // without a sign of the adapter the host closes the connection
}

// Append appends the acknowledgement as one JSON object.
func (a RegisterAck) Append(dst []byte) []byte {
	dst = open(dst, TypeRegisterAck)
	if !a.OK {
		dst = append(dst, `,"ok":false`...)
		return append(field(dst, "error", a.Error), '}')
	}
	dst = append(dst, `,"ok":true`...)
	if a.Protocol == "" {
		return append(dst, '}')
	}
	dst = field(dst, "protocol", a.Protocol)
	dst = append(key(dst, "channel"), '{')
	dst = field(dst, "id", a.Channel.ID)
	dst = field(dst, "name", a.Channel.Name)
	dst = append(dst, '}')
	dst = stringsField(dst, "capabilities", a.Capabilities)
	dst = append(key(dst, "limits"), '{')
	dst = strconv.AppendInt(key(dst, "max_frame_bytes"), int64(a.Limits.MaxFrameBytes), 10)
	dst = strconv.AppendInt(key(dst, "ping_interval_ms"), int64(a.Limits.PingIntervalMS), 10)
	dst = strconv.AppendInt(key(dst, "window"), int64(a.Limits.Window), 10)
	dst = intIf(dst, "in_flight", int64(a.Limits.InFlight))
	dst = intIf(dst, "max_upload_bytes", a.Limits.MaxUploadBytes)
	dst = intIf(dst, "ack_timeout_ms", int64(a.Limits.AckTimeoutMS))
	dst = intIf(dst, "silence_timeout_ms", int64(a.Limits.SilenceTimeoutMS))
	dst = append(dst, '}')
	dst = fieldIf(dst, "cursor", a.Cursor)
	if len(a.Warnings) > 0 {
		dst = stringsField(dst, "warnings", a.Warnings)
	}
	return append(dst, '}')
}

// MessageAck is the host's answer to a frame with a message_id: OK after the
// commit, else why not. The adapter's own message_ack is an Inbound.
type MessageAck struct {
	MessageID string `json:"message_id"`
	OK        bool   `json:"ok"`
	Error     string `json:"error,omitempty"`     // not OK
	Retryable bool   `json:"retryable,omitempty"` // not OK: worth sending again
}

// Append appends the acknowledgement as one JSON object.
func (a MessageAck) Append(dst []byte) []byte {
	dst = open(dst, TypeMessageAck)
	dst = field(dst, "message_id", a.MessageID)
	dst = boolField(dst, "ok", a.OK)
	dst = fieldIf(dst, "error", a.Error)
	dst = boolIf(dst, "retryable", a.Retryable)
	return append(dst, '}')
}

// UploadAck answers upload: where to PUT the file, or why not. Answers come in
// the order of the uploads; who wants to tell them apart gives each a message_id.
type UploadAck struct {
	MessageID    string `json:"message_id,omitempty"` // that of upload
	AttachmentID string `json:"attachment_id,omitempty"`
	URL          string `json:"url,omitempty"`
	ExpiresAt    string `json:"expires_at,omitempty"` // of URL; RFC 3339, UTC
	Error        string `json:"error,omitempty"`      // "" = granted
	Retryable    bool   `json:"retryable,omitempty"`  // with Error: worth asking again later
}

// Append appends the acknowledgement as one JSON object.
func (a UploadAck) Append(dst []byte) []byte {
	dst = open(dst, TypeUploadAck)
	dst = fieldIf(dst, "message_id", a.MessageID)
	dst = fieldIf(dst, "attachment_id", a.AttachmentID)
	dst = fieldIf(dst, "url", a.URL)
	dst = fieldIf(dst, "expires_at", a.ExpiresAt)
	dst = fieldIf(dst, "error", a.Error)
	dst = boolIf(dst, "retryable", a.Retryable)
	return append(dst, '}')
}
