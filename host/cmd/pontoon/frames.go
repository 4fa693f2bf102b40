package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// frameView is a frame as the commands print it.
type frameView struct {
	Seq       int64
	At        time.Time
	Direction string
	Size      int
	Verdict   string
	Code      string
	Frame     json.RawMessage
	Text      string
	Cut       bool
}

func (v frameView) print(w io.Writer) {
	arrow := map[string]string{"in": "→", "out": "←"}[v.Direction]
	said := string(v.Frame)
	if said == "null" {
		said = strconv.Quote(v.Text)
	}
	if v.Cut {
		said += " …"
	}
	verdict := v.Verdict
	if v.Code != "" {
		verdict += "/" + v.Code
	}
	fmt.Fprintf(w, "%s  %s %s  %d bytes  %s\n", v.At.Local().Format("2006-01-02 15:04:05.000"), arrow, verdict, v.Size, clean(said))
}

func framesCommand(o *clientOptions) *cobra.Command {
	var limit int
	var follow, agent bool
	cmd := &cobra.Command{
		Use: "frames CHANNEL", Short: "Show the last frames of a channel's adapter, oldest first", Args: cobra.ExactArgs(1),
		Long: "Show the last frames that a channel's adapter sent (→) and was sent (←), as they crossed the wire, and what was said to\n" +
			"them; with --agent those of an agent that dials in. They are shown without tokens, secrets, inputs of tools and bytes. The host keeps 64 in memory. With --follow --json, one frame a line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(between("limit", limit, 1, 100)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			of := "/channels/"
			if agent {
				of = "/agents/"
			}
			path := of + url.PathEscape(args[0]) + "/frames?limit=" + strconv.Itoa(limit)
			if follow {
				return followFrames(cmd.Context(), c, cmd.OutOrStdout(), path+"&follow=true", o.json)
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Frames    []frameView
				Recording bool
			}) {
				for _, f := range v.Frames {
					f.print(w)
				}
				if !v.Recording {
					fmt.Fprintln(w, "no frames are kept: the host runs with --no-frames")
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 64, "how many, at most 100")
	cmd.Flags().BoolVar(&agent, "agent", false, "those of the agent of this name")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}

// followFrames prints frames as they come until ctx ends.
func followFrames(ctx context.Context, c *client, w io.Writer, path string, asJSON bool) error {
	last := "" // after a restart of the host the count begins anew
	return reopen(ctx, true, func(ctx context.Context, opened func()) error {
		return c.events(ctx, path, last, func() error { opened(); return nil }, func(_, data string) error {
			var v frameView
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				return err
			}
			last = strconv.FormatInt(v.Seq, 10)
			if asJSON {
				_, err := fmt.Fprintln(w, data)
				return err
			}
			v.print(w)
			return nil
		})
	})
}
