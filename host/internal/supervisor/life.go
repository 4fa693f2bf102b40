package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/program"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
)

const (
	// killTimeout bounds the wait for a killed process, whose end child
	// promises within 5 s.
	killTimeout = 6 * time.Second
	// exitGrace is how long a process that has ended its stream may take to exit.
	exitGrace = 2 * time.Second
)

var errSlow = errors.New("not serving in time")

// life is one process of a plugin, from start to end.
type life struct {
	*service
	order   order
	dir     string // of its own, removed with it
	process *process
	client  *launched
}

// live runs one process until it ends, is wanted otherwise (errWished), or ctx
// ends. It returns when the process and all that it started are gone.
func (v *service) live(ctx context.Context, o order) (err error) {
	l := &life{service: v, order: o}
	v.logs.begin()
	v.begin(o.wish)
	if l.dir, err = os.MkdirTemp(v.sup.run, "p"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if rerr := os.RemoveAll(l.dir); rerr != nil {
			v.sup.Log.Warn("plugin's directory not removed", "plugin", o.plugin.Name, "error", rerr)
		}
	}()
	defer l.bury() // also after a panic
	if err := l.start(ctx); err != nil {
		if l.unwanted() {
			return errWished
		}
		return l.explain(err)
	}
	v.set(func(st *plugin.Status) { st.State, st.Reason = plugin.Running, "" })
	v.sup.Log.Info("plugin runs", "plugin", o.plugin.Name, "pid", l.process.running().Pid)
	return l.explain(l.serve(ctx))
}

// begin counts an attempt, which a wish brought about.
func (v *service) begin(wish int) {
	v.mu.Lock()
	v.attempts++
	restarts := v.attempts - 1
	v.mu.Unlock()
	v.set(func(st *plugin.Status) {
		st.State, st.Restarts, st.NextStart = plugin.Starting, restarts, time.Time{}
		v.heeded = wish
	})
}

// start brings the process to where it serves and is configured.
func (l *life) start(ctx context.Context) error {
	s, p := l.sup, l.order.plugin
	at, err := s.makePlaces(l.dir, p.Name)
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	prog, err := program.Stage(p, s.Self, at.code, s.RequireSums)
	if err != nil {
		return &programError{err}
	}
	box, err := s.sandbox(p, prog, at)
	if err != nil {
		return &programError{err}
	}
	if err := s.give(at, box.User); err != nil {
		return &programError{fmt.Errorf("user: hand over to %s, for which the host must run as root: %w", box.User.Name, err)}
	}
	l.process = newProcess(l.logs, at.sockets, environment(p.Env, at), func(env []string) (*child.Child, error) {
		c, err := child.Start(child.Spec{
			Path: prog.Path, Args: prog.Args, Dir: prog.Dir, Env: env, Memory: p.Limits.Memory, Name: p.Name,
			Group: s.group, NoShim: s.NoShim, Sandbox: box,
		})
		if err != nil {
			return nil, err
		}
		l.logs.note(fmt.Sprintf("started as process %d", c.Pid))
		l.set(func(st *plugin.Status) {
			st.Pid, st.SHA256, st.LimitBy = c.Pid, prog.Sum, c.Held.LimitBy
			st.Sandbox, st.Landlock, st.Open = string(c.Held.Sandbox), c.Held.Landlock, c.Held.Open
		})
		return c, nil
	})
	l.process.owner = box.User
	ctx, cancel := within(ctx, s.Timing.Start)
	defer cancel()
	defer l.whenWished(func() { cancel() })()
	if l.client, err = launch(ctx, l.process, s.Timing.Start); err == nil {
		err = l.client.far.Configure(ctx, p.Name, p.Config, s.Version)
	}
	if err != nil && errors.Is(context.Cause(ctx), errSlow) && l.process.handshakeError() == nil {
		return fmt.Errorf("%w: %s after its start", errSlow, s.Timing.Start)
	}
	return err
}

// within ends the context after d with errSlow. It is no deadline: gRPC would
// tell the plugin of one, and a plugin that gives up a moment before us would
// hide why.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(d, func() { cancel(errSlow) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// unwanted reports whether something else is wanted by now.
func (l *life) unwanted() bool {
	select {
	case <-l.order.next:
		return true
	default:
		return false
	}
}

// whenWished calls fn when something else is wanted, until its result is called.
func (l *life) whenWished(fn func()) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-l.order.next:
			fn()
		case <-done:
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// serve holds the plugin's stream and watches its health, until one of them
// fails or the process is to stop, which it then does in peace.
func (l *life) serve(ctx context.Context) error {
	hold, stop := context.WithCancel(context.WithoutCancel(ctx)) // the stream is needed while it winds down
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	sick, detached := make(chan error, 1), make(chan error, 1)
	wg.Go(func() { sick <- l.watch(hold) })
	wg.Go(func() { detached <- l.attach(hold) })
	gone := l.process.running().Done()
	select {
	case <-ctx.Done():
		l.windDown(gone)
		return ctx.Err()
	case <-l.order.next:
		l.windDown(gone)
		return errWished
	case <-gone:
		return errExited
	case err := <-sick:
		return err
	case err := <-detached:
		select { // who ends its stream is about to exit
		case <-gone:
			return errExited
		case <-time.After(exitGrace):
			return err
		}
	}
}

// windDown asks the process to end, and waits.
func (l *life) windDown(gone <-chan struct{}) {
	l.set(func(st *plugin.Status) { st.State = plugin.Stopping })
	l.process.running().Terminate()
	t := time.NewTimer(l.sup.Timing.Grace)
	defer t.Stop()
	select {
	case <-gone:
	case <-t.C:
		l.sup.Log.Warn("plugin killed: it did not end when asked", "plugin", l.order.plugin.Name, "after", l.sup.Timing.Grace)
		l.logs.note(fmt.Sprintf("killed: did not end within %s of SIGTERM", l.sup.Timing.Grace))
	}
}

// watch asks for signs of life until one fails to come.
func (l *life) watch(ctx context.Context) error {
	tick := time.NewTicker(l.sup.Timing.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		ask, cancel := within(ctx, l.sup.Timing.PingTimeout)
		err := l.client.far.Ping(ask)
		late := ask.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && late:
			return fmt.Errorf("hung: did not answer a ping within %s", l.sup.Timing.PingTimeout)
		case err != nil:
			select { // it may just be exiting
			case <-l.process.running().Done():
			case <-time.After(exitGrace):
			}
			return fmt.Errorf("health check: %w", err)
		}
	}
}

// bury ends whatever is left of the process, and frees all that it used.
func (l *life) bury() {
	if l.process == nil {
		return
	}
	_ = l.process.Kill(context.Background())
	l.process.gone()
	if l.client == nil {
		return
	}
	freed := make(chan struct{})
	go func() { // ends at once, the process being gone; but it has no deadline of its own
		l.client.client.Kill()
		close(freed)
	}()
	select {
	case <-freed:
	case <-time.After(killTimeout):
		l.sup.Log.Error("go-plugin did not free a plugin that is gone", "plugin", l.order.plugin.Name)
	}
}

// errExited stands for how the process ended, which explain finds out.
var errExited = errors.New("exited")

// explain makes of an error what an operator needs to know: how the process
// ended, if it did so by itself, and what it said last.
func (l *life) explain(err error) error {
	var told *programError
	if errors.Is(err, errWished) || errors.Is(err, context.Canceled) || errors.As(err, &told) || hopeless(err) || l.process == nil {
		return err
	}
	l.process.mayExit(pipeGrace) // a broken connection is often the first sign of it
	exit, itself := l.process.exit()
	if !itself {
		return err
	}
	l.process.gone() // its last words may still be in the pipe
	what, said := exitText(exit), l.logs.lastWords()
	if exit.Err == nil && exit.Signal == "" && exit.Code == transport.ExitConfig {
		return &grpcconn.ConfigError{Reason: clip(cmp.Or(said, what))}
	}
	return errors.New(endOf(what, clip(said), l.logs.tell()))
}

// endOf says how a process ended, with its last words. Unless they tell why it ended, they
// are no more than the last line.
func endOf(how, said string, tells bool) string {
	switch {
	case said == "":
		return how
	case tells:
		return how + ": " + said
	}
	return how + "; it did not say why, and its last line was: " + said
}

func exitText(e child.Exit) string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != "":
		return "ended by signal: " + e.Signal
	default:
		return fmt.Sprintf("exited with status %d", e.Code)
	}
}
