package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Run lets the adapter get ready (Setuper), connects it to its host and serves it until
// ctx ends (nil), its own Run returns nil (nil) or Refused (the error wraps that
// *RefusedError, as it does for Setup), or the host ends it for good: then the error is a
// *RegisterError or wraps ErrReplaced or ErrRevoked. All else is repeated with a growing,
// jittered delay, for ever.
//
// Before it returns, Run has waited for the adapter: for Adapter.Run to end and
// for sends to finish, at most 5 s, then it cuts them off.
func Run(ctx context.Context, platform string, a Adapter, o Options) error {
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	log = log.With("platform", platform)
	t := o.timing
	if t == nil {
		t = &defaultTiming
	}
	dial, err := o.dialer(log)
	if err != nil {
		return err
	}
	if err := setUp(ctx, a, Config{o.Config}, t, o.Accept != nil, log); err != nil || ctx.Err() != nil {
		return err
	}
	hello, caps, err := introduce(platform, a, o)
	if err != nil {
		return err
	}
	links, memory := newLinks(), newMemory()
	send := &sender{adapter: a, log: log, insist: t.insist, links: links, memory: memory}
	send.lanes = newLanes(maxPending, send.serve)
	host := &Host{Log: log, config: o.Config, links: links, ids: newIDs(), timing: t}
	r := &runner{
		adapter: a,
		send:    send,
		host:    host,
		log:     log,
		timing:  t,
		connector: &connector{
			dial: dial, dialed: o.Accept != nil, hello: hello, caps: caps,
			links: links, memory: memory, lanes: send.lanes, status: &host.status,
			log: log, timing: t, ready: make(chan struct{}),
		},
	}
	return r.serve(ctx)
}

// introduce makes the register frame, and says what it declares.
func introduce(platform string, a Adapter, o Options) ([]byte, wire.Caps, error) {
	caps, profile := capabilities(a)
	if o.NoAck {
		caps &^= wire.CapAck
	}
	if caps.Has(wire.CapAck) && profile.InFlight == 0 {
		profile.InFlight = usualInFlight
	}
	switch o.Protocol {
	case "", wire.V11.String():
		return registerFrame(platform, caps, &profile), caps, nil
	case wire.V10.String():
		caps &= wire.CapsV10
		return registerFrame(platform, caps, nil), caps, nil
	}
	return nil, 0, fmt.Errorf("protocol: found %q, expected 1.0 or 1.1", o.Protocol)
}

// usualInFlight is how many messages of a conversation the host may send ahead of their
// acknowledgements: enough for what a user gets between two commits of the host.
const usualInFlight = 16

// runner joins the two halves of an adapter's life: its own Run and the
// connection. Either may end the other.
type runner struct {
	adapter   Adapter
	send      *sender
	host      *Host
	log       *slog.Logger
	timing    *timing
	connector *connector
}

func (r *runner) serve(ctx context.Context) error {
	life, stop := context.WithCancel(ctx)
	defer stop()
	work, cutOff := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by the grace
	defer cutOff()

	platform, connection := make(chan error, 1), make(chan error, 1)
	go func() { platform <- r.keepRunning(life) }()
	go func() { connection <- r.connector.serve(life, work) }()

	var err error
	var platformEnded, connectionEnded bool
	select {
	case <-ctx.Done():
	case err = <-platform:
		platformEnded = true
	case err = <-connection:
		connectionEnded = true
	}
	stop()
	r.windDown(work, cutOff, ended(platform, platformEnded), ended(connection, connectionEnded))
	return err
}

// ended is closed once the half has returned.
func ended(half <-chan error, already bool) <-chan struct{} {
	done := make(chan struct{})
	if already {
		close(done)
		return done
	}
	go func() {
		<-half //nolint:errcheck // it ends because it was told to: its result says nothing
		close(done)
	}()
	return done
}

// windDown lets the adapter stop, then what the host has sent be shown, then
// closes the connection; whatever is not ready after the grace is cut off.
func (r *runner) windDown(work context.Context, cutOff func(), platform, connection <-chan struct{}) {
	grace, cancel := context.WithTimeout(work, r.timing.grace)
	defer cancel()
	await(grace, platform)
	r.connector.lanes.drained(grace)
	r.connector.links.end()
	await(grace, connection)
	r.connector.lanes.drained(grace) // what was read while the connection closed
	cutOff()

	last, cancel := context.WithTimeout(context.WithoutCancel(work), r.timing.abandon)
	defer cancel()
	if !await(last, platform) {
		r.log.Error("adapter's Run ignores that its context ended: left behind", "fault", "adapter")
	}
	if !r.connector.lanes.drained(last) {
		r.log.Error("adapter's sends ignore that their context ended: left behind", "fault", "adapter")
	}
	await(last, connection)
	r.connector.lanes.crew.Close()
}

// await reports whether done was closed before ctx ended.
func await(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// keepRunning runs the adapter's Run from the first register on, and again
// after an error, until ctx ends.
func (r *runner) keepRunning(ctx context.Context) error {
	select {
	case <-r.connector.ready:
	case <-ctx.Done():
		return nil
	}
	wait := r.timing.backoff()
	for {
		began := time.Now()
		err := safely(r.log, "Run", func() error { return r.adapter.Run(ctx, r.host) })
		var refused *RefusedError
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case errors.As(err, &refused):
			return &hopelessError{refused}
		}
		if time.Since(began) >= r.timing.settled {
			wait.Reset()
		}
		pause := pauseAfter(err, wait.NextBackOff())
		r.host.status.failed(ctx, r.host.links.present(), err)
		fault, _ := blame(err)
		r.log.Warn("platform side failed, will start again", "fault", fault, "err", err, "in", pause.Round(time.Millisecond))
		if !sleep(ctx, pause) {
			return nil
		}
	}
}
