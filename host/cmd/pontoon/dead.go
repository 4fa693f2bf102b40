package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// lifeView is a message with what happened to it, as the commands print it.
type lifeView struct {
	Channel string
	DiedAt  *time.Time `json:"died_at"`
	Message messageView
	Life    []struct {
		At     time.Time
		What   string
		Detail string
	}
	Frames   []frameView
	NoFrames string `json:"no_frames"`
}

func (v lifeView) print(w io.Writer) {
	fmt.Fprintln(w, "channel "+v.Channel)
	v.Message.print(w)
	for _, d := range v.Message.Degraded {
		fmt.Fprintf(w, "  %s shown as %s: %s\n", d.From, d.To, d.Reason)
	}
	for _, l := range v.Life {
		fmt.Fprintf(w, "  %s  %s  %s\n", l.At.Local().Format("2006-01-02 15:04:05.000"), l.What, clean(l.Detail))
	}
	fmt.Fprintln(w, "frames: "+v.NoFrames)
	for _, f := range v.Frames {
		fmt.Fprint(w, "  ")
		f.print(w)
	}
}

func whyCommand(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "why MESSAGE", Short: "Tell one message's whole life: states, frames, attempts, errors, with times", Args: cobra.ExactArgs(1),
		Long: "Tell one message's whole life: its states and attempts with times, what was degraded, and the frames that carried it (←) and\n" +
			"the adapter's answers (→), as far as they are still kept: the host keeps the newest 64 of a channel, in memory.",
		RunE: func(cmd *cobra.Command, args []string) error { return showLife(cmd, o, args[0]) },
	}
}

func showLife(cmd *cobra.Command, o *clientOptions, id string) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	raw, err := c.call(cmd.Context(), http.MethodGet, "/messages/"+url.PathEscape(id), nil)
	if err != nil {
		return err
	}
	return show(cmd, o, raw, func(w io.Writer, v lifeView) { v.print(w) })
}

func deadCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "dead", Short: "Messages that failed or expired, on their way out or at the agent", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(deadListCommand(o), deadCountCommand(o), deadReplayCommand(o), &cobra.Command{
		Use: "show MESSAGE", Short: "Tell a dead letter's life", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return showLife(cmd, o, args[0]) },
	})
	return cmd
}

func deadListCommand(o *clientOptions) *cobra.Command {
	var channel, reason string
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, the last that died first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFlags(checkReason(reason)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/dead-letters?"+url.Values{"channel": {channel}, "reason": some(reason)}.Encode(), "dead_letters")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				DeadLetters []lifeView `json:"dead_letters"`
			}) {
				fmt.Fprintln(w, "MESSAGE\tWAY\tCHANNEL\tCONVERSATION\tSTATE\tREASON\tSINCE\tTEXT")
				for _, d := range v.DeadLetters {
					m := d.Message
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.Direction, d.Channel, clean(m.Conversation), m.State, m.Reason,
						ago(d.DiedAt), shorten(clean(unsigned(m.Text))))
				}
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only of this channel")
	cmd.Flags().StringVar(&reason, "reason", "", "only for this reason, such as ttl")
	return cmd
}

// checkReason says what is wrong with --reason; "" = it was not given.
func checkReason(reason string) error {
	if reason == "" {
		return nil
	}
	names := make([]string, len(ledger.Reasons))
	for i, r := range ledger.Reasons {
		names[i] = string(r)
	}
	return oneOf("reason", reason, names...)
}

// some is a value of a query that may be absent.
func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// shorten keeps a line of a list short.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func query(name, value string) string {
	if value == "" {
		return ""
	}
	return "?" + url.Values{name: {value}}.Encode()
}

func deadCountCommand(o *clientOptions) *cobra.Command {
	var channel string
	cmd := &cobra.Command{
		Use: "count", Short: "Count dead letters, by channel and reason", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/dead-letters/counts"+query("channel", channel), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Counts []struct {
					Channel, Reason string
					Count           int
				}
				Total    int
				Complete bool
			}) {
				fmt.Fprintln(w, "CHANNEL\tREASON\tCOUNT")
				for _, n := range v.Counts {
					fmt.Fprintf(w, "%s\t%s\t%d\n", n.Channel, cmp.Or(n.Reason, "–"), n.Count)
				}
				more := ""
				if !v.Complete {
					more = "at least "
				}
				fmt.Fprintf(w, "all\t\t%s%d\n", more, v.Total)
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only of this channel")
	return cmd
}

// replayView is a replay of many dead letters, as the commands print it.
type replayView struct {
	ID, State, Why        string
	Total, Replayed, Left int
	Waiting, Arrived      int
	DeadAgain             int `json:"dead_again"`
}

// How often a replay is asked how far it is, and how often that is said.
const (
	replayPoll = 200 * time.Millisecond
	replaySay  = 2 * time.Second
)

// replayAll replays all of a channel, or all for "", and says to progress how far it
// is, every now and then. If ctx ends meanwhile the replay is stopped.
func (c *client) replayAll(ctx context.Context, channel string, progress io.Writer) (json.RawMessage, error) {
	raw, err := c.call(ctx, http.MethodPost, "/dead-letters/replays"+query("channel", channel), nil)
	for said := time.Now(); err == nil; {
		var v replayView
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		switch {
		case v.State == "stopped":
			return nil, fmt.Errorf("it was stopped: %d of %d sent again, %d could not be", v.Replayed, v.Total, v.Left)
		case v.State != "running":
			return raw, nil
		}
		if time.Since(said) >= replaySay {
			said = time.Now()
			fmt.Fprintf(progress, "%d of %d sent again, %d could not be\n", v.Replayed, v.Total, v.Left)
		}
		path := "/dead-letters/replays/" + url.PathEscape(v.ID)
		select {
		case <-time.After(replayPoll):
		case <-ctx.Done():
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, err := c.call(stop, http.MethodDelete, path, nil)
			return nil, errors.Join(ctx.Err(), err)
		}
		raw, err = c.call(ctx, http.MethodGet, path, nil)
	}
	return nil, err
}

// noneReplayed is the error of a replay of which nothing came.
func noneReplayed(raw json.RawMessage) error {
	var v replayView
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if v.Replayed > 0 || v.Left == 0 {
		return nil
	}
	return fmt.Errorf("none was sent again, %d could not be; the last of them: %s", v.Left, v.Why)
}

func deadReplayCommand(o *clientOptions) *cobra.Command {
	var channel string
	var all bool
	cmd := &cobra.Command{
		Use: "replay [MESSAGE]", Short: "Send a dead letter again, under its id, or hand it to the agent again; or all of them", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usageError{errors.New("give one MESSAGE, or --all")}
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			if !all {
				raw, err := c.call(cmd.Context(), http.MethodPost, "/dead-letters/"+url.PathEscape(args[0])+"/replay", nil)
				if err != nil {
					return err
				}
				return show(cmd, o, raw, func(w io.Writer, v struct{ ID, State string }) { fmt.Fprintln(w, v.ID, v.State) })
			}
			raw, err := c.replayAll(cmd.Context(), channel, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := noneReplayed(raw); err != nil {
				if o.json {
					fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				}
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v replayView) {
				fmt.Fprintf(w, "%d sent again, %d could not be\n", v.Replayed, v.Left)
				fmt.Fprintf(w, "of those sent: %d arrived, %d wait, %d failed or expired again\n", v.Arrived, v.Waiting, v.DeadAgain)
				if v.Why != "" {
					fmt.Fprintln(w, "the last of them: "+v.Why)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	cmd.Flags().StringVar(&channel, "channel", "", "with --all: only of this channel")
	return cmd
}
