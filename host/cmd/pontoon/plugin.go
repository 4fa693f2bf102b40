package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// pluginView is a plugin as the commands print it.
type pluginView struct {
	Name     string     `json:"name"`
	State    string     `json:"state"`
	Reason   string     `json:"reason"`
	Since    *time.Time `json:"since"`
	PID      int        `json:"pid"`
	Restarts int        `json:"restarts"`
	Pinned   bool       `json:"pinned"`
	LimitBy  string     `json:"limit_by"`
	Sandbox  string     `json:"sandbox"`
	Open     []string   `json:"sandbox_open"`
	User     string     `json:"user"`
	Health   struct {
		Attached bool          `json:"attached"`
		Platform *platformView `json:"platform"`
		LastIn   *time.Time    `json:"last_inbound_at"`
		LastSent *time.Time    `json:"last_sent_at"`
	} `json:"health"`
}

func pluginCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Manage the adapters that the host runs", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(pluginList(o), pluginLogs(o), pluginReload(o), pluginHash(o), pluginVerify(o),
		pluginOperate(o, "restart", "Stop and start a plugin, also out of quarantine"),
		pluginOperate(o, "enable", "Start a plugin, also after restarts"),
		pluginOperate(o, "disable", "Stop a plugin, also after restarts"))
	return cmd
}

func pluginList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the plugins, and what is known of each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/plugins", "plugins")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Plugins []pluginView }) {
				fmt.Fprintln(w, "NAME\tPROCESS\tPID\tSINCE\tRESTARTS\tATTACHED\tPLATFORM\tLAST INBOUND\tLAST SENT\tPINNED\tSANDBOX\tREASON")
				for _, p := range v.Plugins {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%v\t%s\t%s\t%s\t%v\t%s\t%s\n", p.Name, p.State, pidText(p.PID), ago(p.Since), p.Restarts, p.Health.Attached,
						p.Health.Platform.word(), ago(p.Health.LastIn), ago(p.Health.LastSent), p.Pinned, cmp.Or(p.Sandbox, "–"), clean(p.Reason))
				}
			})
		},
	}
}

func pidText(pid int) string {
	if pid == 0 {
		return "–"
	}
	return strconv.Itoa(pid)
}

func pluginOperate(o *clientOptions, verb, about string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: about, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/plugins/"+url.PathEscape(args[0])+"/"+verb, nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, p pluginView) {
				fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.State, clean(p.Reason))
			})
		},
	}
}

func pluginReload(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Read plugins.yaml again; an invalid file changes nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/plugins/_reload", nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Added, Removed, Changed, Unchanged []string }) {
				for _, part := range []struct {
					what  string
					names []string
				}{{"added", v.Added}, {"removed", v.Removed}, {"changed", v.Changed}, {"unchanged", v.Unchanged}} {
					fmt.Fprintf(w, "%s\t%s\n", part.what, strings.Join(part.names, ", "))
				}
			})
		},
	}
}

// lineView is a plugin's line as the commands print it.
type lineView struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Stream string    `json:"stream"`
	Text   string    `json:"text"`
}

func (l lineView) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %-6s  %s\n", l.At.Local().Format(time.DateTime), l.Stream, clean(l.Text))
}

func pluginLogs(o *clientOptions) *cobra.Command {
	var limit int
	var follow bool
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show what a plugin wrote, oldest first", Args: cobra.ExactArgs(1),
		Long: "Show the newest lines that a plugin wrote, and what the host noted of it. The host keeps 1,000.\nWith --follow --json, one line's JSON a line.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(between("limit", limit, 1, 1000)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			path := "/plugins/" + url.PathEscape(args[0]) + "/logs?limit=" + strconv.Itoa(limit)
			if follow {
				f := lineFollower{c: c, w: cmd.OutOrStdout(), json: o.json, path: path + "&follow=true"}
				return f.follow(cmd.Context())
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			if o.json {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), string(raw))
				return err
			}
			var v struct{ Lines []lineView }
			if err := json.Unmarshal(raw, &v); err != nil {
				return fmt.Errorf("read answer: %w", err)
			}
			for _, l := range v.Lines {
				l.print(cmd.OutOrStdout())
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 200, "how many, at most 1000")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what comes")
	return cmd
}

// lineFollower prints a plugin's lines as they come.
type lineFollower struct {
	c    *client
	w    io.Writer
	json bool
	path string
	last int64
}

// follow reads the stream until ctx ends, and opens it again when it breaks. A
// plugin that does not exist is an error at once.
func (f *lineFollower) follow(ctx context.Context) error {
	return reopen(ctx, true, func(ctx context.Context, opened func()) error {
		last := ""
		if f.last != 0 {
			last = strconv.FormatInt(f.last, 10)
		}
		return f.c.events(ctx, f.path, last, func() error { opened(); return nil }, f.line)
	})
}

func (f *lineFollower) line(_, data string) error {
	var l lineView
	if err := json.Unmarshal([]byte(data), &l); err != nil {
		return err
	}
	f.last = l.Seq
	if f.json {
		_, err := fmt.Fprintln(f.w, data)
		return err
	}
	l.print(f.w)
	return nil
}
