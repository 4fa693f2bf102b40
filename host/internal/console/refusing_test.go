package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// TestRefusingAdapter: a channel whose adapter refuses everything is not green, a refusal
// confirms nothing, and it is counted as a failure at once.
func TestRefusingAdapter(t *testing.T) {
	v := visit(t)
	row := v.Channel("red", hosttest.WithAgent("none"))
	a := v.Attach11(t, row, "ack")
	const sent = 6
	for i := range sent {
		v.MustSend(row, "room", fmt.Sprint(i))
		a.OK(a.NextSent("send").MessageID, `"error":"the room is closed"`)
	}
	type health struct {
		Confirmed, Refused int
		LastAckAt          *string `json:"last_ack_at"`
		LastRefusal        string  `json:"last_refusal"`
	}
	var shown struct{ Health health }
	await.Until(t, "all are refused", func() bool {
		v.Must(&shown, "GET", "/channels/red", "")
		return shown.Health.Refused == sent
	})
	if h := shown.Health; h.Confirmed != 0 || h.LastAckAt != nil || h.LastRefusal != "the room is closed" {
		t.Errorf("health %+v", h)
	}
	var stats struct{ Total struct{ Sent, Failed int } }
	await.Until(t, "their failures are counted", func() bool {
		v.Must(&stats, "GET", "/statistics?channel=red", "")
		return stats.Total.Failed == sent
	})
	if stats.Total.Sent != sent {
		t.Errorf("%d were sent", stats.Total.Sent)
	}
	for path, want := range map[string]string{
		"":             "Channel red It refused 6 of the last 6 messages.",
		"channels":     "refusing It refused 6 of the last 6 messages.",
		"channels/red": "6 refused and 0 confirmed since the host began",
	} {
		v.open(path)
		if text := v.words(); !strings.Contains(text, want) || !strings.Contains(text, "refusing") {
			t.Errorf("%q says\n%s\nwant %s", path, text, want)
		}
	}

	// It takes messages again: as they go on, it is green.
	for i := range 20 {
		v.MustSend(row, "room", fmt.Sprint(i))
		a.OK(a.NextSent("send").MessageID)
	}
	await.Until(t, "it is attached and nothing else", func() bool {
		v.open("channels")
		return !strings.Contains(v.words(), "refus") && strings.Contains(v.words(), "attached Heard")
	})
}
