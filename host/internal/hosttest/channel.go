package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// TokenOf is the first token of a channel that Channel made.
func TokenOf(name string) string { return "a-token-of-the-operator-for-" + name }

// Channel makes a channel whose token is TokenOf(name), and whose agent is echo.
func (c *Core) Channel(name string, change ...func(*ledger.Channel)) ledger.Channel {
	c.T.Helper()
	row := ledger.Channel{ID: uuid.NewString(), Name: name, Kind: "bridge", Enabled: true, Agent: "echo"}
	for _, f := range change {
		f(&row)
	}
	secret := auth.NewCredential(TokenOf(name), time.Time{})
	made, err := c.Store.CreateChannel(c.T.Context(), row, &secret, ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		c.T.Fatal(err)
	}
	return made
}

// WithAgent lets the agent of this name answer.
func WithAgent(name string) func(*ledger.Channel) {
	return func(c *ledger.Channel) { c.Agent = name }
}

// WithQueue keeps what can't be sent now.
func WithQueue(c *ledger.Channel) { c.Queue = true }

// ByName finds a channel that an earlier host made.
func (c *Core) ByName(name string) ledger.Channel {
	c.T.Helper()
	row, err := c.Store.Channel(c.T.Context(), name)
	if err != nil {
		c.T.Fatal(err)
	}
	return row
}

// Attached reports whether somebody is attached to the channel.
func (c *Core) Attached(row ledger.Channel) bool {
	_, ok := c.Hub.Attached(row.Key)
	return ok
}

// History is the channel's messages, oldest first.
func (c *Core) History(row ledger.Channel) []ledger.Entry {
	c.T.Helper()
	const page = 10_000
	var entries []ledger.Entry
	for last, full := ledger.MessageID(0), true; full; {
		more, err := c.Store.Before(context.Background(), ledger.Scope{Channel: row.Key}, last, page)
		if err != nil {
			c.T.Fatal(err)
		}
		if full = ledger.PageFull(more, page); len(more) > 0 {
			last = more[len(more)-1].ID
		}
		entries = append(entries, more...)
	}
	slices.Reverse(entries)
	return entries
}

// Last is the channel's newest message of a direction.
func (c *Core) Last(row ledger.Channel, d ledger.Direction) ledger.Entry {
	c.T.Helper()
	entries := c.History(row)
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Direction == d {
			return entries[i]
		}
	}
	c.T.Fatalf("no message %s", d)
	panic("unreachable")
}

// Line is a message in short: "in handled hello", "out failed/rejected text".
func Line(e ledger.Entry) string {
	state := e.State.String()
	if e.Reason != "" {
		state += "/" + string(e.Reason)
	}
	return fmt.Sprintf("%s %s %s", e.Direction, state, e.Text)
}

// WantHistory waits until the channel's messages are these, as Line tells them.
func (c *Core) WantHistory(row ledger.Channel, want ...string) {
	c.T.Helper()
	var got []string
	await.UntilElse(c.T, func() bool {
		got = got[:0]
		for _, e := range c.History(row) {
			got = append(got, Line(e))
		}
		return slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("history:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	})
}

// Send is an operator's message to a conversation.
func (c *Core) Send(row ledger.Channel, conversation, text string) (hub.Sent, error) {
	return c.Hub.Send(context.Background(), row, hub.Outgoing{Conversation: conversation, Message: message.Text(text)})
}

// MustSend is Send for what has to be taken.
func (c *Core) MustSend(row ledger.Channel, conversation, text string) {
	c.T.Helper()
	if _, err := c.Send(row, conversation, text); err != nil {
		c.T.Fatalf("Send %.40q: %v", text, err)
	}
}

// Burst sends n messages of a size at the same time to conversation c, so that
// commits cost little; it returns how many were taken.
func (c *Core) Burst(row ledger.Channel, n, size int) int {
	c.T.Helper()
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch _, err := c.Send(row, "c", fmt.Sprint(i, " ", strings.Repeat("x", size))); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, hub.ErrNotAttached):
				c.T.Error(err)
			}
		})
	}
	wg.Wait()
	return int(taken.Load())
}
