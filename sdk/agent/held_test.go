package agent

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// A host gives new turns while it stores answers, however long that takes: each is
// answered, few at once.
func TestManyTurns(t *testing.T) {
	f := newFake(t)
	release := make(chan struct{})
	var at, most atomic.Int64
	run(t, f, func(ctx context.Context, turn *Turn) error {
		for n := at.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		defer at.Add(-1)
		<-release
		_, err := turn.Reply(ctx, "re")
		return err
	})
	c := f.accept()
	f.write(c, welcome)
	const all = maxRunning + maxHeld
	id := func(n int) string { return fmt.Sprintf("t%05d", n) }
	give := func(n int) { f.write(c, strings.Replace(turn1, "t1", id(n), 1)) }
	for n := range all {
		give(n)
	}
	for range all {
		f.read(c, `"message_ack"`)
	}
	close(release)
	left := make([]bool, all)
	for range all {
		frame := f.read(c, `"message"`)
		m, err := agentwire.DecodeFromAgent([]byte(frame))
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscanf(m.TurnID, "t%d", &n); err != nil || left[n] {
			t.Fatalf("answered: %s", frame)
		}
		left[n] = true
		f.write(c, fmt.Sprintf(`{"type":"message_ack","message_id":%q,"ok":true,"id":"x"}`, m.MessageID))
	}
	if most.Load() > maxRunning {
		t.Errorf("%d ran at once", most.Load())
	}
}

// What is more than any host gives ends the connection, and comes again.
func TestTooManyTurns(t *testing.T) {
	f := newFake(t)
	run(t, f, func(ctx context.Context, _ *Turn) error {
		<-ctx.Done()
		return nil
	})
	c := f.accept()
	f.write(c, welcome)
	const all = maxRunning + maxHeld
	for n := range all + 1 {
		f.write(c, strings.Replace(turn1, "t1", fmt.Sprintf("t%05d", n), 1))
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for err := error(nil); err == nil; {
		_, err = c.Read()
	}
	f.accept()
}
