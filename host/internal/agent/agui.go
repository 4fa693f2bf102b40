package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
)

// Limits of runs of AG-UI agents.
const (
	maxEvent      = 1 << 20 // bytes of an event
	runTimeout    = 10 * time.Minute
	runIdle       = 2 * time.Minute
	runTries      = 3 // to begin it: one that has begun is never begun again
	runHistory    = 50
	maxRunHistory = 500
)

// AGUIConfig is the config of an agent of kind agui.
type AGUIConfig struct {
	Remote
	Timeout     Period `json:"timeout,omitempty"`      // of a run
	IdleTimeout Period `json:"idle_timeout,omitempty"` // between two signs of life
	History     int    `json:"history,omitempty"`      // most messages of the conversation that a run is given

	// ForwardedProps are those of a run whose message has none of its own; absent
	// = none. Agents of AG-UI before 1.0 mostly want some: {} will do.
	ForwardedProps json.RawMessage `json:"forwarded_props,omitempty"`
}

// AGUIFields describe AGUIConfig.
var AGUIFields = []Field{
	urlField,
	headersField,
	{"timeout", "duration", false, "Of a run, 1s to 1h; 10m unless said otherwise"},
	{"idle_timeout", "duration", false, "How long it may be silent; 2m unless said otherwise"},
	turnsField,
	{"history", "number", false, "Most messages that a run is given, 1 to 500; 50 unless said otherwise"},
	{"forwarded_props", "json", false, "forwardedProps of runs whose message has none; agents of AG-UI before 1.0 mostly want {}"},
	privateField,
}

// CheckAGUI is Kind.Check of AG-UI agents.
func CheckAGUI(config json.RawMessage) error {
	_, err := readAGUI(config)
	return err
}

func readAGUI(config json.RawMessage) (AGUIConfig, error) {
	var c AGUIConfig
	if err := Decode(config, &c); err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if c.History < 0 || c.History > maxRunHistory {
		return c, fmt.Errorf("history: found %d, expected 1 to %d", c.History, maxRunHistory)
	}
	if p := bytes.TrimSpace(c.ForwardedProps); len(p) > 0 && p[0] != '{' {
		return c, errors.New("forwarded_props: expected an object")
	}
	if err := c.Timeout.within("timeout", time.Second, time.Hour); err != nil {
		return c, err
	}
	return c, c.IdleTimeout.within("idle_timeout", time.Second, time.Hour)
}

// AGUI is an agent that speaks AG-UI: each turn is a run, whose events become
// messages.
type AGUI struct {
	*remote
	config AGUIConfig
	log    *slog.Logger
}

var (
	_ hub.Agent         = (*AGUI)(nil)
	_ hub.Interruptible = (*AGUI)(nil)
	_ io.Closer         = (*AGUI)(nil)
)

// NewAGUI makes the agent of a config. Close must be called.
func NewAGUI(config json.RawMessage, o safehttp.Options, log *slog.Logger) (*AGUI, error) {
	c, err := readAGUI(config)
	if err != nil {
		return nil, err
	}
	o.Header = c.IdleTimeout.or(runIdle)
	return &AGUI{remote: newRemote(c.Remote, o, runTries), config: c, log: log}, nil
}

// Interrupted implements hub.Interruptible: a run is about all that was said, so a
// new message makes another one.
func (a *AGUI) Interrupted() bool { return true }

// Handle implements hub.Agent.
func (a *AGUI) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	limit, cancel := context.WithTimeoutCause(ctx, a.config.Timeout.or(runTimeout), fmt.Errorf("%w: the run took too long", hub.ErrLate))
	defer cancel()
	alive, stop := context.WithCancelCause(limit)
	defer stop(nil)
	idle := a.config.IdleTimeout.or(runIdle)
	silence := time.AfterFunc(idle, func() { stop(fmt.Errorf("%w: it was silent for %s", hub.ErrLate, idle)) })
	defer silence.Stop()
	beat := func() { silence.Reset(idle) }
	run := ""
	resp, err := try(alive, a.remote, &t, func() (*http.Response, error) {
		silence.Stop() // until it is asked
		body, err := a.ask(alive, &t, beat)
		if err != nil {
			return nil, &ownError{err}
		}
		run = body.run
		beat()
		return a.begin(alive, body)
	})
	if err != nil {
		return a.secrets.of(fmt.Errorf("agui: %w", err))
	}
	defer func() { _ = resp.Body.Close() }()
	err = newRun(ctx, run, r).read(&beating{resp.Body, beat})
	switch cause := context.Cause(alive); {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case cause != nil:
		err = cause
	}
	return a.secrets.of(fmt.Errorf("agui: %w", err))
}

// beating calls beat whenever something was read.
type beating struct {
	io.Reader
	beat func()
}

// Read implements io.Reader.
func (b *beating) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.beat()
	}
	return n, err
}

// begin makes one attempt to start the run.
func (a *AGUI) begin(ctx context.Context, body *ask) (*http.Response, error) {
	defer func() { _ = body.Close() }() // who was answered before it took all does not want the rest
	resp, err := a.post(ctx, body, http.Header{"Accept": {"text/event-stream"}})
	var answered *statusError
	switch {
	case err == nil:
	case errors.As(err, &answered), !mayBeGiven(err):
		return nil, err
	default:
		return nil, &begunError{err}
	}
	if typ, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || typ != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, &answerError{fmt.Errorf("content-type: found %.60q, expected text/event-stream", resp.Header.Get("Content-Type"))}
	}
	return resp, nil
}

// read reads the run's events to its end.
func (r *run) read(body io.Reader) error {
	n := 0
	for e, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return r.broken(fmt.Errorf("after %d events: %w", n, err))
		}
		n++
		if e.Data == "" { // such as one that only has an id
			continue
		}
		if err := r.take([]byte(e.Data)); err != nil {
			return r.broken(fmt.Errorf("event %d: %w", n, hub.Quote(err)))
		}
		if r.over {
			return nil
		}
	}
	return r.broken(fmt.Errorf("the stream ended after %d events, expected RUN_FINISHED", n))
}
