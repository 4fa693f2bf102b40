package api_test

import (
	"fmt"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// An adapter that gives all of its messages one id loses all but the first. They are
// acknowledged, so frames, counters and the log say it.
func TestRepeatsAreSeen(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	row := h.Channel("c", hosttest.WithAgent("none"))
	c := h.Attach11(t, row, "text ack")
	const n = 20
	for i := range n {
		c.Send(fmt.Sprintf(`{"type":"message","conversation_id":"q","message_id":"same","text":"text %d"}`, i))
		var ack struct {
			OK bool `json:"ok"`
		}
		if c.Read(&ack); !ack.OK {
			t.Fatalf("frame %d was not acknowledged", i)
		}
	}
	var shown struct{ Health struct{ Repeated int } }
	if h.Must(&shown, "GET", "/channels/c", ""); shown.Health.Repeated != n-1 {
		t.Errorf("%d repeats are counted, expected %d", shown.Health.Repeated, n-1)
	}
	verdicts := map[string]int{}
	var list struct {
		Frames []struct{ Type, Verdict string }
	}
	h.Must(&list, "GET", "/channels/c/frames", "")
	for _, f := range list.Frames {
		if f.Type == "message" {
			verdicts[f.Verdict]++
		}
	}
	if verdicts["repeated"] != n-1 || verdicts["accepted"] != 1 {
		t.Errorf("frames say %v", verdicts)
	}
	const said = "adapter gave two messages one message_id"
	await.Until(t, "the log warns", func() bool { return h.Log.Count(said) > 0 })
	if got := h.Log.Count(said); got != 1 {
		t.Errorf("it warns %d times", got)
	}
}
