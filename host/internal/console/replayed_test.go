package console

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// TestReplayDeadAgain: a replay is done when what it sent has arrived, and not when that
// is dead again.
func TestReplayDeadAgain(t *testing.T) {
	v := visit(t)
	row := v.Channel("red", hosttest.WithAgent("none"), hosttest.WithQueue)
	a := v.Attach11(t, row, "ack")
	refuse := func() { a.OK(a.NextSent("send").MessageID, `"error":"closed"`) }
	for _, text := range []string{"one", "two"} {
		v.MustSend(row, "room", text)
		refuse()
	}
	v.WantHistory(row, "out failed/rejected one", "out failed/rejected two")
	heading := func() string { return v.byID("replay-h") }
	replayAll := func() {
		t.Helper()
		v.open("dead/replay?channel=red")
		v.send("/dead/replay?channel=red", nil)
		at := strings.TrimPrefix(v.path, Path)
		await.Until(t, "both are on their way", func() bool {
			v.open(at)
			return heading() == "2 messages have not arrived yet"
		})
	}
	comes := func(want string) {
		t.Helper()
		at := strings.TrimPrefix(v.path, Path)
		await.UntilElse(t, func() bool {
			v.open(at)
			return heading() == want
		}, func() string { return "the page says " + heading() + ", want " + want })
	}
	replayAll()
	refuse()
	comes("1 message is dead again")
	refuse()
	comes("2 messages are dead again")
	if text := v.words(); !strings.Contains(text, "0 arrived, 0 wait, 2 failed or expired again") || !strings.Contains(text, "2 dead again") {
		t.Errorf("it says %s", text)
	}
	replayAll()
	for range 2 {
		a.OK(a.NextSent("send").MessageID)
	}
	comes("Done")
}

// TestStoryAfterReplay: a message that is replayed waits from then on, and until when is a
// time that the browser shows as all others.
func TestStoryAfterReplay(t *testing.T) {
	v := visit(t)
	row := v.Channel("red", hosttest.WithAgent("none"), hosttest.WithQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 })
	v.MustSend(row, "room", "late")
	v.WantHistory(row, "out expired/ttl late")
	const ttl = time.Hour
	v.Operator("PATCH", "/channels/red", `{"queue_limits":{"ttl_seconds":3600}}`, 200)
	id := v.Last(row, ledger.Out).ID.String()
	before := time.Now().Truncate(time.Millisecond)
	v.Operator("POST", "/dead-letters/"+id+"/replay", "", 202)
	after := time.Now()
	v.open("messages/" + id)
	next := v.find(func(n *html.Node) bool { return attr(n, "class") == "next" })
	if next == nil || !strings.Contains(textOf(next), "No adapter is attached: it waits in the queue until one is") {
		t.Fatalf("the story says %s", v.words())
	}
	found := ""
	for n := range next.Descendants() {
		if n.Data == "time" {
			found = attr(n, "datetime")
		}
	}
	until, err := time.Parse(time.RFC3339Nano, found)
	if err != nil || until.Before(before.Add(ttl)) || until.After(after.Add(ttl)) {
		t.Errorf("it waits until %q, %v; it was replayed between %s and %s", found, err, before, after)
	}
}
