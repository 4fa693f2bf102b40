package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// lifeView is a message with what happened to it, as the commands print it.
type lifeView struct {
	Channel string
	Message messageView
	Life    []struct {
		At     time.Time
		What   string
		Detail string
	}
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
}

func whyCommand(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "why MESSAGE", Short: "Tell one message's whole life: states, attempts, errors, with times", Args: cobra.ExactArgs(1),
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
	cmd.AddCommand(deadListCommand(o), deadReplayCommand(o), &cobra.Command{
		Use: "show MESSAGE", Short: "Tell a dead letter's life", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return showLife(cmd, o, args[0]) },
	})
	return cmd
}

func deadListCommand(o *clientOptions) *cobra.Command {
	var channel string
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/dead-letters"+query("channel", channel), "dead_letters")
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
						m.TS.Local().Format(time.DateTime), shorten(clean(m.Text)))
				}
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only of this channel")
	return cmd
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
			raw, err := c.call(cmd.Context(), http.MethodPost, "/dead-letters/replay"+query("channel", channel), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Replayed, Left int }) {
				fmt.Fprintf(w, "%d sent again, %d could not be\n", v.Replayed, v.Left)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	cmd.Flags().StringVar(&channel, "channel", "", "with --all: only of this channel")
	return cmd
}
