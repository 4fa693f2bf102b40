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

func keyCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Manage the keys of clients", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(keyCreate(o), keyList(o), &cobra.Command{
		Use: "delete KEY-ID|NAME", Short: "End a key, and what it has under way, at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if _, err := c.call(cmd.Context(), http.MethodDelete, "/keys/"+url.PathEscape(args[0]), nil); err != nil || o.json {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Deleted key %s.\n", clean(args[0]))
			return err
		},
	})
	return cmd
}

func keyCreate(o *clientOptions) *cobra.Command {
	var scopes []string
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME --scope agent:run", Short: "Make a key, shown once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{"name": args[0], "scopes": append([]string{}, scopes...)}
			if expires != "" {
				b["expires"] = expires
			}
			raw, err := c.call(cmd.Context(), http.MethodPost, "/keys", b)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct{ ID, Key string }) {
				fmt.Fprintf(w, "id\t%s\nkey\t%s\n\nThe key is shown only now.\n", v.ID, v.Key)
			})
		},
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "what the key opens: agent:run; may be repeated")
	cmd.Flags().StringVar(&expires, "expires", "", "how long the key lives, such as 720h (default for ever)")
	return cmd
}

func keyList(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/keys", "keys")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Keys []struct {
					ID, Name, Hint string
					Scopes         []string
					Live           bool
					Created        *time.Time `json:"created_at"`
					Expires        *time.Time `json:"expires_at"`
					Revoked        *time.Time `json:"revoked_at"`
					Used           *time.Time `json:"last_used_at"`
				}
			}) {
				fmt.Fprintln(w, "ID\tNAME\tSCOPES\tENDS IN\tLIVE\tCREATED\tEXPIRES\tDELETED\tLAST USED")
				for _, k := range v.Keys {
					fmt.Fprintf(w, "%s\t%s\t%s\t…%s\t%v\t%s\t%s\t%s\t%s\n", k.ID, clean(k.Name), clean(strings.Join(k.Scopes, ",")), clean(k.Hint), k.Live,
						ago(k.Created), ago(k.Expires), ago(k.Revoked), ago(k.Used))
				}
			})
		},
	}
}
