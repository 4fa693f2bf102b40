package sdk

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func wantNormalClose(t *testing.T, p *peer) {
	t.Helper()
	var closed *transport.CloseError
	if err := receive(t, "end of the connection", p.ended); !errors.As(err, &closed) || closed.Code != wire.CloseNormal {
		t.Errorf("host saw %v, want close code 1000", err)
	}
}

func TestStopLetsSendsFinish(t *testing.T) {
	h := newHost(t)
	started, release, sent := make(chan struct{}, 10), make(chan struct{}), make(chan string, 10)
	r := run(t, h, &plain{send: func(ctx context.Context, _ Target, text string) error {
		started <- struct{}{}
		select {
		case <-release:
			sent <- text
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, Options{})
	p := receive(t, "connection", h.peers)
	p.write(t, send("c", "in flight"), send("c", "queued"))
	receive(t, "send", started)
	r.stop()
	select {
	case <-r.done:
		t.Fatal("Run returned while a send was in flight")
	case err := <-p.ended:
		t.Fatalf("connection closed while a send was in flight: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	for _, want := range []string{"in flight", "queued"} {
		if got := receive(t, "send", sent); got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	if err := r.wait(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	wantNormalClose(t, p)
}

func TestStopDeliversWhatRunStillHas(t *testing.T) {
	h := newHost(t)
	ready := make(chan struct{})
	r := run(t, h, &plain{run: func(ctx context.Context, h *Host) error {
		close(ready)
		<-ctx.Done()
		return h.Deliver(ctx, Event{Text: "last words"})
	}}, Options{})
	p := receive(t, "connection", h.peers)
	receive(t, "Run", ready)
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if got := receive(t, "frame", p.frames); !strings.Contains(got, "last words") {
		t.Errorf("frame = %s", got)
	}
	wantNormalClose(t, p)
}

func TestStopCutsOffASendThatDoesNotFinish(t *testing.T) {
	h := newHost(t)
	started, cut := make(chan struct{}), make(chan error, 10)
	quickly := quick()
	quickly.grace = 20 * time.Millisecond
	r := run(t, h, &plain{send: func(ctx context.Context, _ Target, _ string) error {
		close(started)
		<-ctx.Done()
		cut <- ctx.Err()
		return ctx.Err()
	}}, Options{timing: quickly})
	p := receive(t, "connection", h.peers)
	p.write(t, send("c", "stuck"), send("c", "never tried"))
	receive(t, "send", started)
	r.stop()
	if err := receive(t, "cut off", cut); !errors.Is(err, context.Canceled) {
		t.Errorf("send's context: %v", err)
	}
	if err := r.wait(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	wantNormalClose(t, p)
}

func TestStopLeavesBehindWhatIgnoresItsContext(t *testing.T) {
	h := newHost(t)
	release := make(chan struct{})
	stuck := make(chan struct{}, 2)
	quickly := quick()
	quickly.grace, quickly.abandon = 10*time.Millisecond, 10*time.Millisecond
	r := run(t, h, &plain{
		run: func(context.Context, *Host) error {
			<-release
			stuck <- struct{}{}
			return nil
		},
		send: func(context.Context, Target, string) error {
			stuck <- struct{}{}
			<-release
			stuck <- struct{}{}
			return nil
		},
	}, Options{timing: quickly})
	receive(t, "connection", h.peers).write(t, send("c", "x"))
	receive(t, "send", stuck)
	r.stop()
	if err := r.wait(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if n := strings.Count(r.logs.String(), "left behind"); n != 2 {
		t.Errorf("log names %d culprits, want Run and the sends:\n%s", n, r.logs)
	}
	close(release)
	receive(t, "end", stuck)
	receive(t, "end", stuck)
}

func TestStopBeforeTheFirstConnection(t *testing.T) {
	h := newHost(t)
	h.reject = func(int) int { return 503 }
	var runs atomic.Int32
	r := run(t, h, &plain{run: func(context.Context, *Host) error {
		runs.Add(1)
		return nil
	}}, Options{})
	eventually(t, "a few attempts", func() bool { return h.count() > 2 })
	r.stop()
	if err := r.wait(t); err != nil || runs.Load() != 0 {
		t.Errorf("Run = %v, the adapter's was called %d times", err, runs.Load())
	}
}

func TestEarlyEndsOfTheAdaptersRun(t *testing.T) {
	broken := errors.New("platform is down")
	for name, c := range map[string]struct {
		ends []func() error // one per call; after the last, Run waits for ctx
		want error
		runs int32
		stop bool
		logs []string
	}{
		"errors restart it": {
			ends: []func() error{func() error { return broken }, func() error { return Retry(time.Millisecond, broken) }},
			runs: 3, stop: true, logs: []string{"fault=platform", "platform is down"},
		},
		"a panic restarts it": {
			ends: []func() error{func() error { panic("oops") }},
			runs: 2, stop: true, logs: []string{"adapter panicked", "fault=adapter", "run_test.go"},
		},
		"nil ends it":     {ends: []func() error{func() error { return nil }}, runs: 1},
		"refused ends it": {ends: []func() error{func() error { return Refused(broken) }}, runs: 1, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			var runs atomic.Int32
			r := run(t, h, &plain{run: func(ctx context.Context, _ *Host) error {
				if n := int(runs.Add(1)); n <= len(c.ends) {
					return c.ends[n-1]()
				}
				<-ctx.Done()
				return nil
			}}, Options{})
			p := receive(t, "connection", h.peers)
			eventually(t, "calls of Run", func() bool { return runs.Load() == c.runs })
			if c.stop {
				r.stop()
			}
			if err := r.wait(t); !errors.Is(err, c.want) {
				t.Errorf("Run = %v, want %v", err, c.want)
			}
			wantNormalClose(t, p)
			for _, want := range c.logs {
				if !strings.Contains(r.logs.String(), want) {
					t.Errorf("log lacks %q:\n%s", want, r.logs)
				}
			}
		})
	}
}

func TestRunRefusesAnUnusableURL(t *testing.T) {
	if err := Run(t.Context(), "test", &plain{}, Options{URL: "ftp://x"}); err == nil {
		t.Error("Run = nil, want an error")
	}
}
