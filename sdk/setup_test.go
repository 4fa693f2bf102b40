package sdk

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// readied is an adapter with a Setup. What that makes, Run and Send use without a lock.
type readied struct {
	plain
	setup func(context.Context, Config) error
}

func (a *readied) Setup(ctx context.Context, cfg Config) error { return a.setup(ctx, cfg) }

// Until Setup has returned nil the host sees nobody, so that it keeps what it has; Run and
// Send find what Setup has made.
func TestSetupComesFirst(t *testing.T) {
	h := newHost11(t)
	type session struct{ nick string }
	var login *session // written and read without a lock: the race detector looks
	tried, release := make(chan int, 10), make(chan error)
	tries := 0
	a := &readied{setup: func(_ context.Context, cfg Config) error {
		tries++
		tried <- tries
		if err := <-release; err != nil {
			return err
		}
		var c struct{ Nick string }
		if err := cfg.Decode(&c); err != nil {
			return err
		}
		login = &session{c.Nick}
		return nil
	}}
	ran := make(chan string, 1)
	a.run = func(ctx context.Context, _ *Host) error {
		ran <- login.nick
		<-ctx.Done()
		return nil
	}
	sent := make(chan string, 1)
	a.send = func(_ context.Context, _ Target, text string) error {
		sent <- login.nick + " says " + text
		return nil
	}
	r := run(t, h, a, Options{Config: []byte(`{"nick":"robo"}`)})
	receive(t, "first try", tried)
	release <- errors.New("the platform is down")
	receive(t, "second try", tried)
	if n := h.count(); n != 0 {
		t.Errorf("the host was dialed %d times before Setup has returned", n)
	}
	release <- nil
	p := receive(t, "connection", h.peers)
	p.write(t, send11("m1", "hi"))
	p.wantAck(t, "m1", "ok")
	if got := receive(t, "Send", sent); got != "robo says hi" {
		t.Errorf("Send: %q", got)
	}
	if got := receive(t, "Run", ran); got != "robo" {
		t.Errorf("Run found %q", got)
	}
	if !strings.Contains(r.logs.String(), "adapter is not ready, will try again") {
		t.Errorf("log: %s", r.logs)
	}
}

// What is wrong for good ends the adapter before the host has heard of it; where the host
// starts the adapter, so does any other error.
func TestSetupFails(t *testing.T) {
	down := errors.New("the platform is down")
	for name, c := range map[string]struct {
		setup    func(context.Context, Config) error
		accepted bool // the host connects
		want     string
	}{
		"refused":     {func(context.Context, Config) error { return Refused(errors.New("wrong token")) }, false, "wrong token"},
		"unknown key": {func(_ context.Context, cfg Config) error { return cfg.Decode(&struct{ Nick string }{}) }, false, `configuration: unknown key "nik"`},
		"of a plugin": {func(context.Context, Config) error { return down }, true, "set up the adapter: the platform is down"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost11(t)
			var dialed atomic.Int64
			o := Options{Config: []byte(`{"nik":"robo"}`)}
			if c.accepted {
				o.Accept = func(ctx context.Context) (transport.Conn, error) {
					dialed.Add(1)
					return nil, ctx.Err()
				}
			}
			r := run(t, h, &readied{setup: c.setup}, o)
			if err := r.wait(t); err == nil || err.Error() != c.want {
				t.Errorf("Run = %v, want %s", err, c.want)
			}
			if h.count() != 0 || dialed.Load() != 0 {
				t.Error("the host was looked for")
			}
		})
	}
	t.Run("told to stop", func(t *testing.T) {
		h := newHost11(t)
		r := run(t, h, &readied{setup: func(ctx context.Context, _ Config) error { <-ctx.Done(); return ctx.Err() }}, Options{})
		r.stop()
		if err := r.wait(t); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Run("retry names its time", func(t *testing.T) {
		if got := pauseAfter(Retry(time.Minute, down), time.Second); got != time.Minute {
			t.Errorf("the pause is %s", got)
		}
	})
}
