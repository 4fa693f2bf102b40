package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	client "github.com/pontoon-bridge/pontoon/sdk/agent"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// program runs an agent of the Go SDK until the test ends.
func (b *bed) program(name, url string, h client.Handler) *client.Agent {
	b.t.Helper()
	a, err := client.New(client.Options{URL: url, Key: secret + name, Log: slog.New(slog.NewTextHandler(testLog{b.t}, nil))}, h)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			b.t.Errorf("the agent ends with %v", err)
		}
	}()
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
	b.eventually("the agent is connected", func() bool {
		found, _ := b.roster.Agent(name)
		return found.(*agent.Desk).Connected()
	})
	return a
}

func TestClient(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	said := make(chan string, 1)
	a := b.program("one", "http://"+b.addr, func(ctx context.Context, t *client.Turn) error {
		switch t.Text() {
		case "stream":
			t.Stream("a")
			_, err := t.Reply(ctx, "a b")
			return err
		case "more":
			id, err := t.Send(ctx, client.Content{Text: "one"})
			if err != nil {
				return err
			}
			if _, err = t.Send(ctx, client.Content{Text: "two", Update: id}); err != nil {
				return err
			}
			_, err = t.ReplyWith(ctx, client.Content{Text: "Which?", Buttons: [][]wire.Button{{{Text: "A", Value: "a"}}}})
			return err
		case "wrong":
			_, err := t.Reply(ctx, strings.Repeat("x", wire.MaxFrame))
			said <- fmt.Sprint(err)
			_, err = t.ReplyWith(ctx, client.Content{Text: "x", Update: "never"})
			said <- fmt.Sprint(err)
			return nil
		case "fail":
			return context.DeadlineExceeded
		}
		_, err := t.Reply(ctx, "you said "+t.Text())
		return err
	})
	user := b.adapter("irc", "text stream buttons")
	user.asks("hello")
	user.shows("send", "you said hello")
	user.asks("stream")
	user.shows("stream", `"a"`)
	user.shows("stream_end", `"a b"`)
	user.asks("more")
	user.shows("send", `"one"`)
	user.shows("send", `"two"`)
	user.shows("send_buttons", "Which?")
	user.asks("a")
	user.shows("send", "you said a")
	user.asks("fail")
	user.shows("send", "Sorry")
	user.asks("wrong")
	for _, want := range []string{"larger than a frame", "update.message_id"} {
		if got := <-said; !strings.Contains(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	id, err := a.Say(t.Context(), "irc", "c", client.Content{Text: "by the way"})
	if err != nil || id == "" {
		t.Errorf("%q, %v", id, err)
	}
	user.shows("send", "by the way")
	if _, err := a.Say(t.Context(), "other", "c", client.Content{Text: "x"}); err == nil {
		t.Error("it speaks in a channel that is not its own")
	}
	if got := b.history(row)[1]; got != "out sent you said hello" {
		t.Errorf("kept as %q", got)
	}
}

// A connection that breaks again and again, in the middle of turns, neither loses
// nor doubles an answer.
func TestClientReconnects(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	row := b.channel("irc", "one")
	proxy := toxic.New(t, b.addr)
	var answered atomic.Int64
	b.program("one", "http://"+proxy.Addr(), func(ctx context.Context, t *client.Turn) error {
		t.Stream("…")
		select {
		case <-time.After(20 * time.Millisecond): // so that breaks fall into turns
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		answered.Add(1)
		_, err := t.Reply(ctx, "re "+t.Text())
		return err
	})
	user := b.adapter("irc", "text")
	const n = 60
	cutting := make(chan struct{})
	defer func() { <-cutting }()
	go func() {
		defer close(cutting)
		for i := 0; answered.Load() < n && i < 3; i++ {
			time.Sleep(150 * time.Millisecond) // between two breaks
			if err := proxy.Cut(); err != nil {
				t.Error(err)
			}
		}
	}()
	var want []string
	for i := range n {
		user.asks(fmt.Sprint(i))
		user.shows("send", fmt.Sprintf(`"re %d"`, i))
		want = append(want, fmt.Sprintf("in handled %d", i), fmt.Sprintf("out sent re %d", i))
	}
	b.wantHistory(row, want...)
	if answered.Load() != n {
		t.Errorf("%d turns answered %d times", n, answered.Load())
	}
}
