package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// reopen reads a stream until ctx ends, and opens it again when it breaks. read
// calls opened once it is there; an error before it was ever there ends it, if
// needed says that it must be.
func reopen(ctx context.Context, needed bool, read func(ctx context.Context, opened func()) error) error {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 10 * time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := read(ctx, func() { needed = false; wait.Reset() })
		switch {
		case ctx.Err() != nil:
			return struct{}{}, backoff.Permanent(ctx.Err())
		case needed:
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// events reads an event stream of the host behind the event last, "" = from
// now on, and passes each event on until the stream breaks.
func (c *client) events(ctx context.Context, path, last string, opened func() error, each func(event, data string) error) error {
	header := http.Header{}
	if last != "" {
		header.Set("Last-Event-ID", last)
	}
	resp, err := c.do(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := opened(); err != nil {
		return err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	event := ""
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "":
			event = "" // the end of one
		case "event":
			event = value
		case "data":
			if err := each(event, value); err != nil {
				return fmt.Errorf("read event: %w", err)
			}
		}
	}
	return errors.Join(lines.Err(), errors.New("event stream ended"))
}
