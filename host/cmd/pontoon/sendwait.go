package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// waitPause is between two looks at a message that is under way.
const waitPause = 100 * time.Millisecond

// waitSent waits until it is known what became of a message, which answer says was
// taken, and shows that: exit status 1 if the platform did not take it.
func waitSent(cmd *cobra.Command, o *clientOptions, c *client, answer json.RawMessage, most time.Duration) error {
	var sent struct{ ID string }
	if err := json.Unmarshal(answer, &sent); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), most)
	defer cancel()
	raw, v, err := c.life(cmd.Context(), sent.ID)
	settled := false
	for err == nil && ctx.Err() == nil {
		if settled, err = isSettled(cmd.Context(), c, v); settled || err != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(waitPause):
		}
		raw, v, err = c.life(cmd.Context(), sent.ID)
	}
	if err == nil && settled { // the host reads what happened before it reads where the message stands
		raw, v, err = c.life(cmd.Context(), sent.ID)
	}
	if err != nil {
		return err
	}
	if err := show(cmd, o, raw, func(w io.Writer, v lifeView) { v.outcome(w) }); err != nil {
		return err
	}
	switch {
	case !settled:
		return fmt.Errorf("nobody has said within %s whether the platform took it: pontoon why %s", most, sent.ID)
	case v.Message.State == "delivered", v.Message.State == "sent":
		return nil
	}
	return exitError(1)
}

// life asks for all that happened to a message.
func (c *client) life(ctx context.Context, id string) (raw json.RawMessage, v lifeView, err error) {
	if raw, err = c.call(ctx, http.MethodGet, "/messages/"+url.PathEscape(id), nil); err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return raw, v, err
}

// isSettled reports whether no more will be known of a message: also of one that was
// sent to an adapter which confirms nothing.
func isSettled(ctx context.Context, c *client, v lifeView) (bool, error) {
	switch v.Message.State {
	case "delivered", "failed", "expired":
		return true, nil
	case "sent":
	default:
		return false, nil
	}
	raw, err := c.all(ctx, "/adapters", "adapters")
	if err != nil {
		return false, err
	}
	var list struct {
		Adapters []struct {
			Channel   string
			Effective []string
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return false, fmt.Errorf("read answer: %w", err)
	}
	for _, a := range list.Adapters {
		if a.Channel == v.Channel {
			return !slices.Contains(a.Effective, "ack"), nil
		}
	}
	return false, nil
}

// outcome prints what became of the message.
func (v lifeView) outcome(w io.Writer) {
	fmt.Fprintf(w, "%s %s", v.Message.ID, v.Message.State)
	if v.Message.Reason != "" {
		fmt.Fprintf(w, "/%s", v.Message.Reason)
	}
	for _, l := range v.Life {
		if l.Detail != "" && l.What != "sent" && l.What != v.Message.State {
			fmt.Fprintf(w, "; %s: %s", l.What, clean(l.Detail))
		}
	}
	fmt.Fprintln(w)
}
