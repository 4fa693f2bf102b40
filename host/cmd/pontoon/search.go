package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func searchCommand(o *clientOptions) *cobra.Command {
	var channel, cursor string
	var limit int
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "Find messages by their words, newest first", Args: cobra.MinimumNArgs(1),
		Long: "Find messages that have all the words, newest first; the last word may be a beginning.\n" +
			"\"a phrase\"  -not  from:NAME  channel:NAME  state:STATE  before:2026-01-31  after:2026-01-01\n" +
			"(days begin at midnight UTC). Put -- before a QUERY that begins with -.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(between("limit", limit, 1, 500)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return usageError{errors.New("found an empty query, expected words")}
			}
			q := url.Values{"q": {strings.Join(args, " ")}, "limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"channel": channel, "cursor": cursor} {
				if value != "" {
					q.Set(name, value)
				}
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/search?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v foundView) { v.print(w) })
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only in this channel")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where an earlier answer ended")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many, at most 500")
	return cmd
}

// foundView is what was found, as the command prints it.
type foundView struct {
	Results []struct {
		Channel string
		Snippet []struct {
			Text  string
			Match bool
		}
		Message messageView
	}
	NextCursor string `json:"next_cursor"`
	Behind     int64
	Partial    bool
}

func (v foundView) print(w io.Writer) {
	for _, r := range v.Results {
		m := r.Message
		m.Text = ""
		for _, p := range r.Snippet {
			m.Text += p.Text
		}
		fmt.Fprintf(w, "%s  ", r.Channel)
		m.print(w)
	}
	if v.NextCursor != "" {
		fmt.Fprintln(os.Stderr, "there may be more: --cursor "+v.NextCursor)
	} else if len(v.Results) == 0 {
		fmt.Fprintln(os.Stderr, "nothing found")
	}
	if v.Behind > 0 {
		fmt.Fprintf(os.Stderr, "the search index is behind by %d older messages: they are not found yet\n", v.Behind)
	}
}
