package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func tokenCommand(o *clientOptions) *cobra.Command {
	k := credential{owner: "CHANNEL", noun: "token", flag: "token", path: func(channel string) string { return "/channels/" + url.PathEscape(channel) + "/tokens" }}
	return k.command(o, "Manage a channel's tokens")
}

func agentKeyCommand(o *clientOptions) *cobra.Command {
	k := credential{owner: "AGENT", noun: "key", flag: "agent-key", path: func(agent string) string { return "/agents/" + url.PathEscape(agent) + "/keys" }}
	return k.command(o, "Manage an agent's keys")
}

// credential is what a channel or an agent shows when it comes: a token, or a key.
type credential struct {
	owner string // CHANNEL or AGENT
	noun  string
	flag  string // that brings one of the operator's own
	path  func(owner string) string
}

func (k credential) command(o *clientOptions, about string) *cobra.Command {
	cmd := &cobra.Command{Use: k.noun, Short: about, Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(k.rotate(o), k.list(o), k.revoke(o))
	return cmd
}

func (k credential) revoke(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "revoke " + k.owner + " " + strings.ToUpper(k.noun) + "-ID", Short: "End a " + k.noun + ", and the connection that uses it, at once", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if _, err := c.call(cmd.Context(), http.MethodDelete, k.path(args[0])+"/"+url.PathEscape(args[1]), nil); err != nil || o.json {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Revoked %s %s of %s %s.\n", k.noun, clean(args[1]), strings.ToLower(k.owner), clean(args[0]))
			return err
		},
	}
}

func (k credential) rotate(o *clientOptions) *cobra.Command {
	var overlap, expires, own string
	cmd := &cobra.Command{
		Use: "rotate " + k.owner, Short: "Add a " + k.noun + ", shown once; the older ones end after the overlap", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFlags(duration("overlap", overlap), duration("expires", expires)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{"overlap": overlap}
			if expires != "" {
				b["expires"] = expires
			}
			if own != "" {
				b[k.noun] = own
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, k.path(args[0]), b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ ID, Token, Key string }) {
				fmt.Fprintf(w, "id\t%s\n%s\t%s%s\n\nThe %s is shown only now. The older ones end after %s.\n", v.ID, k.noun, v.Token, v.Key, k.noun, overlap)
			})
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long older ones live on, such as 90m or 7d; 0s ends them at once")
	cmd.Flags().StringVar(&expires, "expires", "", "how long the new one lives, such as 90d (default for ever)")
	cmd.Flags().StringVar(&own, k.flag, "", "a "+k.noun+" of your own, at least 16 characters (default: one is made)")
	return cmd
}

func (k credential) list(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list " + k.owner, Short: "List the " + k.noun + "s", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), k.path(args[0]), k.noun+"s")
			if err != nil {
				return err
			}
			type row struct {
				ID, Hint string
				Live     bool
				Created  *time.Time `json:"created_at"`
				Expires  *time.Time `json:"expires_at"`
				Revoked  *time.Time `json:"revoked_at"`
				Used     *time.Time `json:"last_used_at"`
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ Tokens, Keys []row }) {
				fmt.Fprintln(w, "ID\tENDS IN\tLIVE\tCREATED\tEXPIRES\tREVOKED\tLAST USED")
				for _, t := range append(v.Tokens, v.Keys...) {
					fmt.Fprintf(w, "%s\t…%s\t%v\t%s\t%s\t%s\t%s\n", t.ID, clean(t.Hint), t.Live, ago(t.Created), ago(t.Expires), ago(t.Revoked), ago(t.Used))
				}
			})
		},
	}
}
