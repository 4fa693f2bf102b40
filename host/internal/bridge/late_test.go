package bridge_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// busyGate lets the first one wait.
type busyGate struct {
	bridge.Gate
	asked atomic.Int32
	first chan struct{}
}

func (g *busyGate) Admit(ctx context.Context, token string) (auth.Grant, error) {
	if g.asked.Add(1) == 1 {
		<-g.first
	}
	return g.Gate.Admit(context.WithoutCancel(ctx), token)
}

// A register that the host was slow to answer does not replace one that came
// after it: its adapter has given it up, and the newer one is told for good.
func TestLateRegisterReplacesNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout time.Duration
		code    int
		reason  string
	}{
		"in time": {0, 4001, replaced},
		"late":    {10 * time.Second, 1008, "no register in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := &busyGate{first: make(chan struct{})}
			free := sync.OnceFunc(func() { close(gate.first) })
			h := hosttest.Start(t, func(s *hosttest.Setup) {
				s.Bridge.RegisterTimeout = c.timeout
				s.Gate = func(g bridge.Gate) bridge.Gate { gate.Gate = g; return gate }
			})
			t.Cleanup(free) // before the host waits for it
			row := h.Channel("late")
			old := h.Dial(t, hosttest.Credentials{})
			old.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name)))
			await.Until(t, "the first waits", func() bool { return gate.asked.Load() == 1 })
			if c.code == 1008 {
				old.WantClose(c.code, c.reason)
			}
			current := h.Attach(t, row)
			free()
			if c.code == 4001 {
				old.WantClose(c.code, c.reason)
			}
			_ = old.WS.Close()
			current.Works()
			if n := h.Log.Count("adapter attached"); n != 1 {
				t.Errorf("%d were attached", n)
			}
		})
	}
}
