package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// talker is an adapter of the SDK in this process: many conversations, each of
// which says one thing after the other and notes what is answered.
type talker struct {
	conversations, each int

	mu       sync.Mutex // guards what follows
	answered map[string][]string
	said     int
	over     chan struct{} // closed when everything is on the host's disk
}

func (a *talker) Run(ctx context.Context, h *sdk.Host) error {
	var group sync.WaitGroup
	for c := range a.conversations {
		group.Go(func() {
			for i := range a.each {
				e := sdk.Event{ID: fmt.Sprintf("%d-%d", c, i), ConversationID: fmt.Sprint(c), UserID: "u", Text: fmt.Sprint(i)}
				if h.Deliver(ctx, e) != nil {
					return // ctx ended, which the test sees
				}
				a.mu.Lock()
				a.said++
				a.mu.Unlock()
			}
		})
	}
	group.Wait()
	close(a.over)
	<-ctx.Done()
	return nil
}

func (a *talker) Send(_ context.Context, to sdk.Target, text string) (sdk.Receipt, error) {
	time.Sleep(time.Millisecond) // a platform takes its time, so that some is in flight at any moment
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered[to.ConversationID] = append(a.answered[to.ConversationID], strings.TrimPrefix(text, "echo: "))
	return sdk.Receipt{Handle: "h"}, nil
}

func (a *talker) progress() (said, answered int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, texts := range a.answered {
		answered += len(texts)
	}
	return a.said, answered
}

// A host that is killed again and again loses nothing of an adapter of the SDK
// that lives on, and does nothing twice: every event is on its disk once, every
// answer is shown once, in order.
func TestHostKilledUnderTheSDK(t *testing.T) {
	t.Parallel()
	a := &talker{conversations: 20, each: 40, answered: map[string][]string{}, over: make(chan struct{})}
	all := a.conversations * a.each
	h := startHost(t)
	o := sdk.Options{URL: h.url, Token: h.channel("talk", `,"queue":true`), Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sdk.Run(ctx, "talker", a, o) }()
	defer func() {
		stop()
		if err := await.Value(t, "Run ends", ended); err != nil {
			t.Errorf("Run = %v", err)
		}
	}()
	for kills := range 4 {
		eventually(t, "some of it is said", func() bool { said, _ := a.progress(); return said > all*(kills+1)/6 })
		h.kill()
		h.again()
	}
	eventually(t, "all is said and answered", func() bool { said, answered := a.progress(); return said == all && answered >= all })
	eventually(t, "all is delivered", func() bool { return !strings.Contains(h.cli("messages", "talk", "--limit", "500"), "(sent)") })
	a.mu.Lock()
	defer a.mu.Unlock()
	want := make([]string, a.each)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	for c, texts := range a.answered {
		if strings.Join(texts, " ") != strings.Join(want, " ") {
			t.Errorf("conversation %s was answered %q", c, texts)
		}
	}
}
