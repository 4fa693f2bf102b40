package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Setuper is implemented by an adapter that gets ready before it takes its channel: it
// reads its configuration, proves its credentials, opens what Run and Send share. Neither
// of them is called before Setup has returned nil, nor is the host told that the adapter
// is there: what waits for it stays in the host's queue, and an adapter that can't work
// does not replace one that does.
//
// Refused ends the adapter. Any other error, and a panic, repeats Setup after a growing
// pause, or the one that Retry names; where the host starts the adapter, the error ends
// it, and the host starts it again.
type Setuper interface {
	Setup(ctx context.Context, cfg Config) error
}

// Config is the adapter's configuration, a JSON object.
type Config struct{ raw json.RawMessage }

// Decode decodes the configuration into v. A key that v does not have is an error; every
// error names the key and none shows a value, which may be a secret. Without
// configuration v stays as it is. The error is Refused: returned from Setup or Run, it
// ends the adapter.
func (c Config) Decode(v any) error { return decodeConfig(c.raw, v) }

// setUp runs the adapter's Setup, if it has one, until it succeeds or ctx ends. once
// lets its first error end it.
func setUp(ctx context.Context, a Adapter, cfg Config, t *timing, once bool, log *slog.Logger) error {
	s, ok := a.(Setuper)
	if !ok {
		return nil
	}
	wait := t.backoff()
	for {
		err := safely(log, "Setup", func() error { return s.Setup(ctx, cfg) })
		var refused *RefusedError
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case errors.As(err, &refused):
			return &hopelessError{refused}
		case once:
			return fmt.Errorf("set up the adapter: %w", err)
		}
		pause := pauseAfter(err, wait.NextBackOff())
		fault, _ := blame(err)
		log.Warn("adapter is not ready, will try again", "fault", fault, "err", err, "in", pause.Round(time.Millisecond))
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// pauseAfter is the pause after an error, or the longer one that it asks for.
func pauseAfter(err error, pause time.Duration) time.Duration {
	var retry *RetryError
	if errors.As(err, &retry) {
		return max(pause, retry.After)
	}
	return pause
}
