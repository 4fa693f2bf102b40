package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/period"
)

func auditCommand(o *clientOptions) *cobra.Command {
	var f auditFilter
	var limit int
	var export string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who changed what", Args: cobra.NoArgs,
		Long: "Show who changed what, newest first, or write all of it to a file, oldest first, one JSON object a line.",
		Example: "  pontoon audit --action channel --since 24h\n" +
			"  pontoon audit --export audit.ndjson",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFlags(between("limit", limit, 1, 500)); err != nil {
				return err
			}
			q, err := f.query(time.Now())
			if err != nil {
				return usageError{err}
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			if export != "" {
				return c.exportAudit(cmd, q, export)
			}
			q.Set("limit", strconv.Itoa(limit))
			raw, err := c.call(cmd.Context(), http.MethodGet, "/audit?"+q.Encode(), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, showAudit)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.actor, "actor", "", "only what this one did: the operator's name, that of a key, or admin")
	fs.StringVar(&f.action, "action", "", "only this, such as channel.delete, or all that begins so, such as channel")
	fs.StringVar(&f.target, "target", "", "only what was done to this")
	fs.StringVar(&f.since, "since", "", "not what is older: a time such as 2026-01-31T00:00:00Z, or how long ago, such as 24h or 7d")
	fs.StringVar(&f.until, "until", "", "only what is older")
	fs.IntVar(&limit, "limit", 50, "most lines to show")
	fs.StringVar(&export, "export", "", "write all to this file, - for stdout")
	return cmd
}

type auditFilter struct{ actor, action, target, since, until string }

func (f auditFilter) query(now time.Time) (url.Values, error) {
	q := url.Values{}
	for name, v := range map[string]string{"actor": f.actor, "action": f.action, "target": f.target} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for name, v := range map[string]string{"since": f.since, "until": f.until} {
		if v == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, v)
		if d, derr := period.Parse(v); err != nil && derr == nil {
			at, err = now.Add(-d), nil
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: found %.40q, expected a time such as 2026-01-31T00:00:00Z, or how long ago, such as 24h or 7d", name, v)
		}
		q.Set(name, at.UTC().Format(time.RFC3339))
	}
	return q, nil
}

func showAudit(w io.Writer, v struct {
	Audit []struct {
		At                                 *time.Time
		Actor, Via, Remote, Action, Target string
		Detail, Before, After              json.RawMessage
	}
}) {
	fmt.Fprintln(w, "AT\tACTOR\tVIA\tFROM\tACTION\tTARGET\tDETAIL")
	for _, e := range v.Audit {
		detail := string(e.Detail)
		if detail == "{}" {
			detail = ""
		}
		if len(e.After) > 0 && string(e.After) != "null" {
			detail = strings.TrimSpace(detail + " " + string(e.Before) + " → " + string(e.After))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", ago(e.At), clean(e.Actor), clean(e.Via), clean(e.Remote), clean(e.Action), clean(e.Target), clean(detail))
	}
}

// exportAudit writes the whole log as it comes. A file that is there stays as it
// is until the new one is whole.
func (c *client) exportAudit(cmd *cobra.Command, q url.Values, file string) (err error) {
	q.Set("format", "ndjson")
	resp, err := c.do(cmd.Context(), http.MethodGet, "/audit?"+q.Encode(), nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if file == "-" {
		return copyAudit(cmd.OutOrStdout(), resp.Body)
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}()
	if err := errors.Join(copyAudit(part, resp.Body), part.Sync(), part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func copyAudit(to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("audit log not exported to its end: %w", err)
	}
	return nil
}
