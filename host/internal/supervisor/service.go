package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/thejerf/suture/v4"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
)

// service is one plugin of the file, from when it was read to when its entry
// changes or goes. Its Serve is the only goroutine that starts and stops the
// process; everybody else changes what is wanted.
type service struct {
	sup   *Supervisor
	logs  *logs
	token suture.ServiceToken

	mu       sync.Mutex // guards what follows
	plugin   config.Plugin
	status   plugin.Status
	channel  ledger.Channel // as it was last told; its zero value = there is none
	unfit    error          // why the entry can't work; nil = it may
	wish     int            // counts what was asked for: restart, enable, disable
	wished   chan struct{}  // closed and replaced when wish changes
	heeded   int            // the wish that status came of
	moved    chan struct{}  // closed and replaced when status changes
	attempts int            // starts so far
	failures []time.Time    // within the window
}

var _ suture.Service = (*service)(nil)

func newService(s *Supervisor, p config.Plugin, l *logs) *service {
	return &service{
		sup: s, logs: l, plugin: p, wished: make(chan struct{}), moved: make(chan struct{}),
		status: plugin.Status{State: plugin.Starting, Since: time.Now()},
	}
}

// String is what suture calls the service. Without it suture prints the whole
// of it, environment and configuration included, and under no lock.
func (v *service) String() string { return "plugin " + v.entry().Name }

// adopt takes an entry whose process is the same as before.
func (v *service) adopt(ctx context.Context, p config.Plugin) {
	row, err := v.sup.own(ctx, p)
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := err != nil || v.unfit != nil
	v.plugin, v.unfit = p, err
	if v.take(row) || changed {
		v.ask()
	}
}

// ask makes Serve look again. The mutex must be held.
func (v *service) ask() {
	v.wish++
	close(v.wished)
	v.wished = make(chan struct{})
}

// take notes the channel's row, unless it is older than what is known of it. It
// reports whether that starts or stops the plugin. The mutex must be held.
func (v *service) take(row ledger.Channel) bool {
	if row.Key == v.channel.Key && row.Version < v.channel.Version {
		return false
	}
	was := v.channel.Enabled
	v.channel = row
	return was != row.Enabled
}

// enable starts or stops the plugin if the channel's row says so.
func (v *service) enable(row ledger.Channel) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.take(row) {
		v.failures = nil
		v.ask()
	}
}

func (v *service) restart() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case !v.plugin.Enabled:
		return fmt.Errorf("%w: %s says enabled: false", plugin.ErrByFile, v.plugin.Source)
	case !v.channel.Enabled:
		return plugin.ErrDisabled
	}
	v.failures = nil
	v.ask()
	return nil
}

// entry is the plugin as the file has it.
func (v *service) entry() config.Plugin {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.plugin
}

func (v *service) show() plugin.Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.filled()
}

// filled is the status with what the entry says. The mutex must be held.
func (v *service) filled() plugin.Status {
	st, p := v.status, v.plugin
	st.Name, st.Command, st.Source = p.Name, p.Written, p.Source
	st.Pinned, st.Memory, st.Processes = p.SHA256 != "", p.Limits.Memory, p.Limits.Processes
	st.Wanted, st.User = string(p.Sandbox.Mode), p.Sandbox.User
	return st
}

func (v *service) settled() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.status.State != plugin.Starting || v.attempts > 1
}

// set notes a new state and tells of it.
func (v *service) set(change func(*plugin.Status)) {
	v.mu.Lock()
	before := v.status.State
	change(&v.status)
	v.status.Reason = clipTo(v.status.Reason, maxReason)
	if v.status.State != before {
		v.status.Since = time.Now()
	}
	now := v.filled()
	close(v.moved)
	v.moved = make(chan struct{})
	v.mu.Unlock()
	if v.sup.OnState != nil && now.State != before {
		v.sup.OnState(now.Name, string(now.State), now.Reason)
	}
}

// come waits until what was last wanted has come about, or has failed, or ctx ends.
func (v *service) come(ctx context.Context) {
	for {
		v.mu.Lock()
		there := v.heeded == v.wish && v.status.State != plugin.Starting && v.status.State != plugin.Stopping
		moved := v.moved
		v.mu.Unlock()
		if there {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// order is what is wanted now.
type order struct {
	plugin config.Plugin
	run    bool
	unfit  error
	wish   int
	next   <-chan struct{} // closed when something else is wanted
}

func (v *service) order() order {
	v.mu.Lock()
	defer v.mu.Unlock()
	return order{v.plugin, v.plugin.Enabled && v.channel.Enabled, v.unfit, v.wish, v.wished}
}

// Serve implements suture.Service: it keeps the plugin as it is wanted until
// ctx ends.
func (v *service) Serve(ctx context.Context) error {
	wait := newBackoff(v.entry().Restart)
	for ctx.Err() == nil {
		o := v.order()
		switch {
		case o.unfit != nil:
			v.rest(ctx, o, plugin.Quarantined, o.unfit.Error())
			continue
		case !o.run:
			v.rest(ctx, o, plugin.Disabled, v.whyDisabled(o))
			continue
		}
		began := time.Now()
		err := v.live(ctx, o)
		if time.Since(began) >= v.sup.Timing.Settled {
			wait.Reset()
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errWished):
			wait.Reset()
		case hopeless(err) || v.failed():
			wait.Reset()
			v.rest(ctx, o, plugin.Quarantined, v.quarantineReason(err))
		default:
			v.pause(ctx, o, wait.NextBackOff(), err)
		}
	}
	v.set(func(st *plugin.Status) { st.State, st.Pid = plugin.Stopping, 0 })
	return ctx.Err()
}

// maxReason bounds what is said of a plugin's failure, in bytes.
const maxReason = 500

// errWished ends a life because something else is wanted.
var errWished = errors.New("stopped by the operator")

// rest waits in a state until something else is wanted.
func (v *service) rest(ctx context.Context, o order, s plugin.State, reason string) {
	reason = v.logs.clean(reason)
	if s == plugin.Quarantined {
		v.sup.Log.Error("plugin quarantined", "plugin", o.plugin.Name, "reason", reason)
		v.logs.note("quarantined: " + reason)
	}
	v.set(func(st *plugin.Status) {
		st.State, st.Reason, st.Pid, st.NextStart = s, reason, 0, time.Time{}
		v.heeded = o.wish
	})
	select {
	case <-ctx.Done():
	case <-o.next:
	}
}

// pause waits for the next start after a failure.
func (v *service) pause(ctx context.Context, o order, d time.Duration, why error) {
	at, said := time.Now().Add(d), v.logs.clean(why.Error())
	v.sup.Log.Warn("plugin failed, will start again", "plugin", o.plugin.Name, "reason", said, "in", d.Round(time.Millisecond))
	v.logs.note(fmt.Sprintf("failed: %s; starts again in %s", said, d.Round(10*time.Millisecond)))
	v.set(func(st *plugin.Status) { st.State, st.Reason, st.Pid, st.NextStart = plugin.Backoff, said, 0, at })
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-o.next:
	case <-t.C:
	}
}

func (v *service) whyDisabled(o order) string {
	if !o.plugin.Enabled {
		return o.plugin.Source + " says enabled: false"
	}
	return "by the operator"
}

// failed counts a failure and reports whether there were too many.
func (v *service) failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	kept := v.failures[:0]
	for _, at := range v.failures {
		if now.Sub(at) < v.sup.Timing.Window {
			kept = append(kept, at)
		}
	}
	v.failures = append(kept, now)
	return len(v.failures) >= v.plugin.Restart.QuarantineAfter
}

func (v *service) quarantineReason(err error) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.failures)
	v.failures = nil
	if hopeless(err) {
		return err.Error()
	}
	if n == 1 {
		return err.Error()
	}
	return fmt.Sprintf("failed %d times within %s, last: %v", n, v.sup.Timing.Window, err)
}

// programError is a program that may not run: another start would not help.
type programError struct{ err error }

func (e *programError) Error() string { return e.err.Error() }
func (e *programError) Unwrap() error { return e.err }

// hopeless reports whether a restart can't help as long as nobody changes
// something.
func hopeless(err error) bool {
	var version *versionError
	var cfg *grpcconn.ConfigError
	var prog *programError
	if errors.As(err, &prog) { // but for what passes by itself
		for _, e := range []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.EIO, syscall.ENOMEM} {
			if errors.Is(err, e) {
				return false
			}
		}
		return true
	}
	return errors.As(err, &version) || errors.As(err, &cfg)
}

func newBackoff(r config.Restart) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = r.Backoff
	b.MaxInterval = r.MaxBackoff
	b.Multiplier = 2
	b.RandomizationFactor = 0.25 // plugins that failed together must not come back together
	b.Reset()
	return b
}
