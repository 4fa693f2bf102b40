package irc

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// sink takes events, and how the network is; *sdk.Host is one.
type sink interface {
	Deliver(ctx context.Context, e sdk.Event) error
	Status(ctx context.Context, s sdk.Status)
}

// maxWaiting bounds the events that wait for the host. IRC has no replay, so
// what comes on top of it is lost, with a warning.
const maxWaiting = 1024

// client is one Run: a line of connections, one after the other.
type client struct {
	set    *settings
	tune   timing
	sink   sink
	log    *slog.Logger
	events chan sdk.Event

	mu   sync.Mutex
	live *link // the connection that is ready to send, if any
}

func newClient(set *settings, tune timing, to sink, log *slog.Logger) *client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &client{
		set:    set,
		tune:   tune,
		sink:   to,
		log:    log.With("server", set.Server),
		events: make(chan sdk.Event, maxWaiting),
	}
}

// serve connects, and connects again, until ctx ends; then it returns nil, with
// all that it started stopped.
func (c *client) serve(ctx context.Context) error {
	if c.set.SASLPassword != "" && c.set.tls == nil {
		c.log.Warn("the SASL password goes over the network in clear text: tls is off")
	}
	if c.set.TLSInsecure {
		c.log.Warn("the server's certificate is not verified: tls_insecure is on")
	}
	var deliverer sync.WaitGroup
	deliverer.Go(func() { c.deliver(ctx) })
	defer deliverer.Wait()

	c.sink.Status(ctx, sdk.Status{State: wire.PlatformConnecting})
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = c.tune.retryFirst, c.tune.retryMax
	for {
		start := time.Now()
		err := c.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(start) > c.tune.stable {
			wait.Reset()
		}
		c.sink.Status(ctx, sdk.StatusOf(err))
		delay := wait.NextBackOff()
		c.log.Warn("IRC connection lost", "err", err, "retry_in", delay.Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// connect is one connection from dial to loss.
func (c *client) connect(ctx context.Context) error {
	l, err := dial(ctx, c)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer l.close()
	if err := l.register(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	c.log.Info("connected to IRC", "nick", l.self(), "tls", c.set.tls != nil)
	c.setLive(l)
	defer c.setLive(nil)
	c.sink.Status(ctx, sdk.Status{State: wire.PlatformConnected})
	return l.serve(ctx)
}

func (c *client) setLive(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = l
}

func (c *client) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// enqueue passes e to the deliverer without waiting: the reader must go on, or
// the server's pings stay unanswered.
func (c *client) enqueue(e sdk.Event) {
	select {
	case c.events <- e:
	default:
		c.log.Warn("message lost: too many wait for the host", "conversation", e.ConversationID, "user", e.UserID, "waiting", maxWaiting)
	}
}

// deliver hands the events to the host one after the other, which keeps their order.
func (c *client) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			if n := len(c.events); n > 0 {
				c.log.Warn("stopped with messages undelivered", "count", n)
			}
			return
		case e := <-c.events:
			if err := c.sink.Deliver(ctx, e); err != nil {
				c.log.Warn("message lost: the host did not take it", "conversation", e.ConversationID, "user", e.UserID, "err", err)
			}
		}
	}
}
