package hosttest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Sent is a content frame of the host under 1.1.
type Sent struct {
	Type           string
	MessageID      string `json:"message_id"`
	ConversationID string `json:"conversation_id"`
	ReplyCtx       string `json:"reply_ctx"`
	PreviewHandle  string `json:"preview_handle"`
	Text           string
	Resumed        bool
	Parts          json.RawMessage
	UI             json.RawMessage
	Emoji          string
	Remove         bool
	Image          wire.Image
	File           wire.File
	Audio          wire.Audio
}

// Attach11 registers under protocol 1.1, with further fields of the frame.
func (h *Host) Attach11(t *testing.T, row ledger.Channel, caps string, more ...string) *Client {
	t.Helper()
	return h.Dial(t, Credentials{}).Register11(row, caps, more...)
}

// Register11 is Register under protocol 1.1.
func (c *Client) Register11(row ledger.Channel, caps string, more ...string) *Client {
	t := c.T
	t.Helper()
	c.Send(RegisterFrame11(row, caps, more...))
	var ack struct {
		OK           bool
		Protocol     string
		Capabilities []string
	}
	c.Read(&ack)
	want := "text"
	if caps != "" {
		set, _ := wire.ParseCapsFor("1.1", strings.Fields(caps))
		want = (set | wire.CapText).String()
	}
	if got := strings.Join(ack.Capabilities, ","); !ack.OK || ack.Protocol != "1.1" || got != want {
		t.Fatalf("acknowledged with %+v, want %s", ack, want)
	}
	return c
}

// NextSent reads a content frame of this type.
func (c *Client) NextSent(kind string) Sent {
	c.T.Helper()
	var f Sent
	c.Read(&f)
	if f.Type != kind {
		c.T.Fatalf("read %+v, want a %s", f, kind)
	}
	return f
}

// OK acknowledges a frame, as AckFrame says.
func (c *Client) OK(id string, more ...string) {
	c.T.Helper()
	c.Send(AckFrame(id, more...))
}
