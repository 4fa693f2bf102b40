package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func tokenCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Manage a channel's tokens", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(tokenRotate(o), tokenList(o), &cobra.Command{
		Use: "revoke CHANNEL TOKEN-ID", Short: "End a token, and the connection that uses it, at once", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			path := "/channels/" + url.PathEscape(args[0]) + "/tokens/" + url.PathEscape(args[1])
			if _, err := c.call(cmd.Context(), http.MethodDelete, path, nil); err != nil || o.json {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Revoked token %s of channel %s.\n", clean(args[1]), clean(args[0]))
			return err
		},
	})
	return cmd
}

func tokenRotate(o *clientOptions) *cobra.Command {
	var overlap, expires, own string
	cmd := &cobra.Command{
		Use: "rotate CHANNEL", Short: "Add a token, shown once; the older ones end after the overlap", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{"overlap": overlap}
			if expires != "" {
				b["expires"] = expires
			}
			if own != "" {
				b["token"] = own
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/channels/"+url.PathEscape(args[0])+"/tokens", b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ ID, Token string }) {
				fmt.Fprintf(w, "id\t%s\ntoken\t%s\n\nThe token is shown only now. The older ones end after %s.\n", v.ID, v.Token, overlap)
			})
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "24h", "how long older tokens live on")
	cmd.Flags().StringVar(&expires, "expires", "", "how long the new token lives (default for ever)")
	cmd.Flags().StringVar(&own, "token", "", "a token of your own, at least 16 characters (default: one is made)")
	return cmd
}

func tokenList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list CHANNEL", Short: "List a channel's tokens", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/channels/"+url.PathEscape(args[0])+"/tokens", "tokens")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Tokens []struct {
					ID, Hint string
					Live     bool
					Created  *time.Time `json:"created_at"`
					Expires  *time.Time `json:"expires_at"`
					Revoked  *time.Time `json:"revoked_at"`
					Used     *time.Time `json:"last_used_at"`
				}
			}) {
				fmt.Fprintln(w, "ID\tENDS IN\tLIVE\tCREATED\tEXPIRES\tREVOKED\tLAST USED")
				for _, t := range v.Tokens {
					fmt.Fprintf(w, "%s\t…%s\t%v\t%s\t%s\t%s\t%s\n", t.ID, clean(t.Hint), t.Live, ago(t.Created), ago(t.Expires), ago(t.Revoked), ago(t.Used))
				}
			})
		},
	}
}
