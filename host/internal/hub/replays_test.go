package hub_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// counts asks for the dead letters of a channel, or of all for "", counted.
func counts(h *hosttest.Host, channel string) api.DeadCounts {
	h.T.Helper()
	return hosttest.Call[api.DeadCounts](h, "GET", "/dead-letters/counts?channel="+channel, "", http.StatusOK)
}

func replayOf(h *hosttest.Host, id string) api.Replay {
	h.T.Helper()
	return hosttest.Call[api.Replay](h, "GET", "/dead-letters/replays/"+id, "", http.StatusOK)
}

// begin begins to replay all of a channel.
func begin(h *hosttest.Host, channel string) api.Replay {
	h.T.Helper()
	return hosttest.Call[api.Replay](h, "POST", "/dead-letters/replays?channel="+channel, "", http.StatusAccepted)
}

// died makes a host whose channel, made by name, has n dead letters: one that was
// sent, and was copied while the host stood still.
func died(t *testing.T, name string, n int) (*hosttest.Host, ledger.Channel) {
	t.Helper()
	h := hosttest.Start(t)
	row := h.Channel(name, hosttest.WithQueue)
	h.MustSend(row, "c", "hello")
	h.Stop()
	d, err := sql.Open("sqlite", filepath.Join(h.Dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"DELETE FROM pending",
		"UPDATE message SET state = 6, reason = 'ttl'",
		fmt.Sprintf(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n + 1 < %d)
			INSERT INTO message (id, channel, conversation, prev, prev_channel, direction, state, turn, reply_to, text, reason)
			SELECT m.id + n, channel, conversation, m.id + n - 1, m.id + n - 1, direction, state, turn, reply_to, 'copy ' || n, reason FROM message m, i`, n),
		"UPDATE conversation SET head = (SELECT max(id) FROM message)",
	} {
		if _, err := d.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return h.Again(), row
}

// Hundreds of dead letters are counted, all of them, and replayed behind the
// operator's back, who sees how far it is, may stop it, and begins again: each
// arrives once, in its order.
func TestReplays(t *testing.T) {
	t.Parallel()
	const n = 600 // each is a commit of its own
	h, row := died(t, "many", n)
	h.MustSend(h.Channel("other", hosttest.WithQueue, func(c *ledger.Channel) { c.Limits.TTLSeconds = 1 }), "c", "of another")
	await.Until(t, "all are dead", func() bool { return counts(h, "").Total == n+1 })
	want := api.DeadCount{ChannelID: row.ID, Channel: "many", Reason: "ttl", Count: n}
	if got := counts(h, "many"); len(got.Counts) != 1 || got.Counts[0] != want || got.Total != n || !got.Complete {
		t.Fatalf("counted %+v, want %+v", got, want)
	}
	h.Operator("GET", "/dead-letters/counts?channel=nobody", "", http.StatusNotFound)
	h.Operator("GET", "/dead-letters/replays/nonsense", "", http.StatusNotFound)
	h.Operator("DELETE", "/dead-letters/replays/nonsense", "", http.StatusNotFound)
	h.Operator("POST", "/dead-letters/replays?channel=nobody", "", http.StatusNotFound)

	first := begin(h, "many")
	if first.State != "running" || first.Total != n || first.Ended != nil {
		t.Errorf("begun: %+v", first)
	}
	if again := begin(h, row.ID); again.ID != first.ID {
		t.Errorf("two go on at once: %+v, %+v", first, again)
	}
	await.Until(t, "some are replayed", func() bool { return replayOf(h, first.ID).Replayed > 0 })
	h.Operator("DELETE", "/dead-letters/replays/"+first.ID, "", http.StatusNoContent)
	await.Until(t, "it has stopped", func() bool { return replayOf(h, first.ID).State != "running" })
	stopped := replayOf(h, first.ID)
	if stopped.State != "stopped" || stopped.Replayed >= n || stopped.Left != 0 || stopped.Ended == nil {
		t.Errorf("stopped: %+v", stopped)
	}
	await.Until(t, "what it did not come to is dead still", func() bool { return counts(h, "many").Total == int64(n-stopped.Replayed) })

	second := begin(h, "many")
	for last, over := 0, false; !over; { // however slow the disk is, it gets on
		await.Until(t, fmt.Sprint("more are replayed than ", last), func() bool {
			r := replayOf(h, second.ID)
			if r.Replayed < last {
				t.Errorf("it goes back from %d to %d", last, r.Replayed)
			}
			more := r.Replayed > last
			last, over = r.Replayed, r.State == "done"
			return more || over
		})
	}
	if r := replayOf(h, second.ID); r.Total != n-stopped.Replayed || r.Replayed != r.Total || r.Left != 0 {
		t.Errorf("done: %+v", r)
	}
	c := h.Attach(t, row)
	sent := h.History(row)
	for i := range n {
		if f := c.NextSent("send"); f.Text != sent[i].Text {
			t.Fatalf("message %d is %q, want %q", i, f.Text, sent[i].Text)
		}
	}
	list := hosttest.Call[struct{ Replays []api.Replay }](h, "GET", "/dead-letters/replays", "", http.StatusOK).Replays
	if len(list) != 2 || list[0].ID != second.ID || list[1].ID != first.ID {
		t.Errorf("listed %+v", list)
	}
	await.Until(t, "only the other's is dead", func() bool { return counts(h, "").Total == 1 })
	_, audit := h.Ask("GET", "/audit?action=dead.replay", "")
	if strings.Count(audit, `"dead.replay"`) != 2 || !strings.Contains(audit, strconv.Itoa(stopped.Replayed)) {
		t.Errorf("audit log: %s", audit)
	}
}

// What can't be replayed stays, and it is said why. A host that stops in the middle
// of it loses nothing.
func TestReplaysLeft(t *testing.T) {
	t.Parallel()
	const n = 200
	h, row := died(t, "gone", n)
	h.Operator("PATCH", "/channels/gone", `{"queue":false}`, http.StatusOK)
	r := begin(h, "")
	await.Until(t, "it is over", func() bool { return replayOf(h, r.ID).State == "done" })
	if r = replayOf(h, r.ID); r.Left != n || r.Replayed != 0 || r.Why != "no adapter is attached and the channel has no queue" {
		t.Errorf("left: %+v", r)
	}
	h.Operator("PATCH", "/channels/gone", `{"queue":true,"queue_limits":{"ttl_seconds":600}}`, http.StatusOK)
	r = begin(h, "gone")
	await.Until(t, "some are replayed", func() bool { return replayOf(h, r.ID).Replayed > 0 })
	h = h.Again()
	h.Operator("GET", "/dead-letters/replays/"+r.ID, "", http.StatusNotFound)
	waiting := 0
	for _, e := range h.History(row) {
		if e.State == ledger.Queued {
			waiting++
		}
	}
	if dead := counts(h, "gone").Total; waiting == 0 || int(dead)+waiting != n {
		t.Errorf("%d dead, %d waiting, of %d", dead, waiting, n)
	}
}
