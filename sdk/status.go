package sdk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Status is how the platform is, for Host.Status.
type Status struct {
	State  wire.PlatformState
	Reason string    // for the operator: what the platform said; "" where there is nothing to say
	Until  time.Time // of wire.PlatformLimited: when the limit ends; zero = not known
}

// Status tells the host how the platform is: its operator sees that, and is alarmed if
// the platform stays out of reach. Say connected only when you have heard from the
// platform. The newest status is told again after each reconnection. It is no error if
// nobody is there to be told, or a host of protocol 1.0, which has no such frame. ctx
// bounds the wait for room on the connection.
func (h *Host) Status(ctx context.Context, s Status) { h.status.say(ctx, h.links.present(), s) }

// status is what the adapter said last of its platform.
type status struct {
	mu    sync.Mutex // held while it is told, so that the newest comes last
	said  Status     // State "" = nothing yet
	since time.Time
}

func (t *status) say(ctx context.Context, l *link, s Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.State != t.said.State {
		t.since = time.Now()
	}
	t.said = s
	t.tell(ctx, l)
}

// again tells it to a connection that is new.
func (t *status) again(ctx context.Context, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(ctx, l)
}

// failed is for an adapter whose Run ended with an error, and that speaks of its platform:
// what it said before is not so any more.
func (t *status) failed(ctx context.Context, l *link, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said.State == "" || t.said.State == wire.PlatformRefused {
		return
	}
	if t.said.State != wire.PlatformReconnecting {
		t.since = time.Now()
	}
	t.said = Status{State: wire.PlatformReconnecting, Reason: err.Error()}
	t.tell(ctx, l)
}

// tell posts the frame, if there is somebody who understands it. The mutex must be held.
func (t *status) tell(ctx context.Context, l *link) {
	if l == nil || l.protocol == wire.V10 || t.said.State == "" {
		return
	}
	said := &wire.PlatformStatus{State: t.said.State, Reason: clip(t.said.Reason, mostReason), Since: t.since.UTC().Format(time.RFC3339)}
	if left := time.Until(t.said.Until); left > 0 {
		said.UntilMS = min(left, mostUntil).Milliseconds()
	}
	in := wire.Inbound{Type: wire.TypePlatformStatus, Later: &wire.Later{Status: said}}
	_ = l.post(ctx, in.Append(nil)) // a connection that is gone is followed by one that is told
}

// mostUntil bounds what the host is told of a limit's end.
const mostUntil = 30 * 24 * time.Hour

// StatusOf is the status of a platform to which a connection failed with err: refused if
// that wraps *RefusedError, else reconnecting.
func StatusOf(err error) Status {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return Status{State: wire.PlatformRefused, Reason: refused.Err.Error()}
	}
	return Status{State: wire.PlatformReconnecting, Reason: err.Error()}
}
