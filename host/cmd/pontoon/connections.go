package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func connectionsCommand(o *clientOptions) *cobra.Command {
	var channel, agent, what string
	var limit int
	cmd := &cobra.Command{
		Use: "connections", Short: "Show who came to a channel or an agent, why it went, and who was refused", Args: cobra.NoArgs,
		Long: "Show who came to a channel or an agent, why it went, and who was refused, newest first. Refusals that are alike\n" +
			"within an hour are one line. The host keeps 30 days, and 1,000 lines for each channel and agent.",
		Example: "  pontoon connections --channel shop\n" +
			"  pontoon connections --what refused",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFlags(between("limit", limit, 1, 500)); err != nil {
				return err
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, v := range map[string]string{"channel": channel, "agent": agent, "what": what} {
				if v != "" {
					q.Set(name, v)
				}
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/connections?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, showConnections)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&channel, "channel", "", "only of this channel")
	fs.StringVar(&agent, "agent", "", "only of this agent")
	fs.StringVar(&what, "what", "", "only these: attached, left or refused")
	fs.IntVar(&limit, "limit", 50, "most lines to show")
	return cmd
}

func showConnections(w io.Writer, v struct {
	Connections []struct {
		At, Latest           *time.Time
		Count, Code          int
		What, Channel, Agent string
		Remote, Why          string
		Hint                 string `json:"token_hint"`
	}
}) {
	fmt.Fprintln(w, "AT\tWHAT\tOF\tFROM\tTOKEN\tCODE\tWHY")
	for _, c := range v.Connections {
		of, token, code, at := "-", "-", "-", ago(c.Latest)
		switch {
		case c.Channel != "":
			of = "channel " + c.Channel
		case c.Agent != "":
			of = "agent " + c.Agent
		}
		if c.Hint != "" {
			token = "…" + c.Hint
		}
		if c.Code != 0 {
			code = strconv.Itoa(c.Code)
		}
		if c.Count > 1 {
			at += fmt.Sprintf(" (%d times since %s)", c.Count, ago(c.At))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", at, clean(c.What), clean(of), clean(cmp.Or(c.Remote, "-")), clean(token), code, clean(c.Why))
	}
}
