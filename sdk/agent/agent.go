// Package agent is for programs that answer what users say: it dials a host and
// calls a function for every turn. docs/agents.md describes the protocol.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/internal/crew"
	"github.com/pontoon-bridge/pontoon/sdk/internal/outbox"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// DefaultURL is where a host listens that was not told otherwise.
const DefaultURL = "http://127.0.0.1:8080"

// Errors that end Run: no new connection would help.
var (
	ErrReplaced = errors.New("replaced by a newer connection of the same agent")
	ErrRevoked  = errors.New("agent disabled or deleted, or key revoked")
)

// RefusedError ends Run: the host does not let this agent in. Reason is its word,
// such as "invalid key".
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "host refused this agent: " + e.Reason }

// RejectedError is the host's word that it does not take a message.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "the host does not take it: " + e.Reason }

// ErrStopped is what Send returns once Run has ended.
var ErrStopped = errors.New("agent has stopped")

// ErrCancelled is the cause of a turn's context whose answer nobody waits for any
// more; it says why.
var ErrCancelled = errors.New("turn cancelled by the host")

// Options say how an agent finds its host.
type Options struct {
	URL string // the host's base; "" = DefaultURL
	Key string // the agent's. It travels in a header and is never logged
	Log *slog.Logger

	timing *timing // nil = defaultTiming
}

// timing holds every duration that a test wants shorter.
type timing struct {
	hello     time.Duration // connection → hello_ack
	silence   time.Duration // nothing heard for this long: the host is dead
	firstWait time.Duration // before the first repetition, jittered
	lastWait  time.Duration // before any later one, jittered
	settled   time.Duration // what lived this long starts again at firstWait
}

var defaultTiming = timing{
	hello: agentwire.HelloTimeout, silence: 75 * time.Second, // the host pings every 54 s
	firstWait: 500 * time.Millisecond, lastWait: 30 * time.Second, settled: 5 * time.Second,
}

// Handler answers one turn. Its context ends when nobody waits for the answer any
// more, or Run ends. A returned error ends the turn with one that the user sees;
// nil ends it with what was said. It may be called for many turns at once, but
// only for one of a conversation.
type Handler func(ctx context.Context, t *Turn) error

// Agent is the connection of one agent to its host, and all that is under way on
// it. Over a new connection everything goes on: turns that are being answered,
// and messages that the host has not acknowledged.
type Agent struct {
	address string
	header  http.Header
	handler Handler
	log     *slog.Logger
	timing  *timing
	turns   *crew.Crew

	out *outbox.Outbox // its mutex may be taken with mu

	mu      sync.Mutex // guards what follows
	pending []*pending // frames that the host has not acknowledged, in order
	running map[string]*Turn
	held    []*Turn // of them, those that wait until others are over
	ended   memory  // turns that are over
	newest  string  // turn_id that the host has handed over
	stopped bool
	ids     ids
}

// New makes an agent that Run connects.
func New(o Options, h Handler) (*Agent, error) {
	address, err := transport.Endpoint(cmp.Or(o.URL, DefaultURL), agentwire.Path)
	if err != nil {
		return nil, err
	}
	if o.Key == "" {
		return nil, errors.New("key: found none, expected the agent's (pontoon agent create NAME --kind websocket)")
	}
	a := &Agent{
		address: address, header: http.Header{"Authorization": {"Bearer " + o.Key}}, handler: h, log: o.Log, timing: o.timing,
		running: map[string]*Turn{}, ended: memory{most: 1024}, ids: newIDs(), out: outbox.New(), turns: crew.New(),
	}
	if a.log == nil {
		a.log = slog.Default()
	}
	if a.timing == nil {
		a.timing = &defaultTiming
	}
	return a, nil
}

// Run connects to the host, again and again, until ctx ends (nil) or the host
// wants no new connection. It waits for the handlers, whose context it ends. An
// Agent runs once.
func (a *Agent) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(ctx)
	defer func() {
		a.mu.Lock()
		a.stopped = true
		for _, p := range a.pending {
			p.done <- answer{err: ErrStopped} // has room
		}
		a.pending = nil
		a.mu.Unlock()
		cancel()
		a.turns.Close()
		a.turns.Wait()
	}()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = a.timing.firstWait, a.timing.lastWait, 2
	wait.Reset()
	for {
		lived, err := a.session(ctx, work)
		if ctx.Err() != nil {
			return nil
		}
		if err := final(err); err != nil {
			return err
		}
		if lived >= a.timing.settled {
			wait.Reset()
		}
		pause := wait.NextBackOff()
		a.log.Warn("not connected to the host, will try again", "err", err, "in", pause.Round(time.Millisecond))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// final is what err means if no new connection would help, else nil.
func final(err error) error {
	var refused *RefusedError
	var closed *transport.CloseError
	switch {
	case errors.As(err, &refused):
		return refused
	case !errors.As(err, &closed) || closed.Code.Reconnect():
		return nil
	case closed.Code == wire.CloseReplaced:
		return fmt.Errorf("%w: %w", ErrReplaced, closed)
	case closed.Code == wire.CloseRevoked:
		return fmt.Errorf("%w: %w", ErrRevoked, closed)
	}
	return fmt.Errorf("host wants no new connection: %w", closed)
}
