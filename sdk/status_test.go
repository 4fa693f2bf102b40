package sdk

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// status reads the next frame, which is a platform_status.
func (p *peer) status(t *testing.T) wire.PlatformStatus {
	t.Helper()
	in := p.next(t)
	if in.Type != wire.TypePlatformStatus {
		t.Fatalf("found %+v, want the platform's status", in)
	}
	return *in.Later.Status
}

// What an adapter says of its platform the host is told at once, and after each
// reconnection once more, since when it is so included.
func TestPlatformStatus(t *testing.T) {
	h := newHost11(t)
	a, hosts := handed()
	run(t, h, a, Options{})
	p, host := receive(t, "connection", h.peers), receive(t, "Host", hosts)
	host.Status(t.Context(), Status{State: wire.PlatformConnecting})
	host.Status(t.Context(), Status{State: wire.PlatformLimited, Reason: "flood wait", Until: time.Now().Add(time.Hour)})
	if got := p.status(t); got.State != wire.PlatformConnecting || got.UntilMS != 0 {
		t.Errorf("told %+v", got)
	}
	got := p.status(t)
	if got.State != wire.PlatformLimited || got.Reason != "flood wait" || got.UntilMS <= 0 || got.UntilMS > time.Hour.Milliseconds() {
		t.Errorf("told %+v", got)
	}
	host.Status(t.Context(), StatusOf(errors.Join(Refused(errors.New("wrong password")))))
	refused := p.status(t)
	if refused.State != wire.PlatformRefused || refused.Reason != "wrong password" {
		t.Errorf("told %+v", refused)
	}
	_ = p.conn.Close(wire.CloseDraining, "")
	p = receive(t, "new connection", h.peers)
	if got := p.status(t); got != refused {
		t.Errorf("told %+v, want %+v again", got, refused)
	}
}

// An adapter whose Run fails is not connected, whatever it said before.
func TestStatusOfFailedRun(t *testing.T) {
	h := newHost11(t)
	failed := make(chan token)
	run(t, h, &plain{run: func(ctx context.Context, h *Host) error {
		select {
		case <-failed:
		case <-ctx.Done():
			return nil
		}
		h.Status(ctx, Status{State: wire.PlatformConnected})
		return errors.New("the socket broke")
	}}, Options{})
	p := receive(t, "connection", h.peers)
	failed <- token{}
	for _, want := range []wire.PlatformState{wire.PlatformConnected, wire.PlatformReconnecting} {
		if got := p.status(t); got.State != want {
			t.Errorf("told %+v, want %s", got, want)
		}
	}
}

// A host of 1.0 has no such frame.
func TestNoStatusUnder10(t *testing.T) {
	h := newHost(t)
	a, hosts := handed()
	run(t, h, a, Options{})
	p, host := receive(t, "connection", h.peers), receive(t, "Host", hosts)
	host.Status(t.Context(), Status{State: wire.PlatformConnected})
	if err := host.Deliver(t.Context(), Event{ConversationID: "c", Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	if in := p.next(t); in.Type != wire.TypeMessage {
		t.Errorf("found %+v, want the message alone", in)
	}
}
