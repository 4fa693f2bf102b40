package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

func keyCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "key", Short: "Manage the keys of clients", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(keyCreate(o), keyList(o), keyShow(o), &cobra.Command{
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
	var scopes, channels []string
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME --scope SCOPE", Short: "Make a key, shown once", Args: cobra.ExactArgs(1),
		Long: "Make a key, shown once. Its scopes say what it opens:\n\n" +
			"  read       all that an operator sees, but secrets, keys and sessions\n" +
			"  send       send, test, react, take back, replay dead letters\n" +
			"  manage     channels, tokens, plugins, agents\n" +
			"  admin      all, also keys, sessions and the audit log\n" +
			"  agent:run  run an agent by AG-UI\n\n" +
			"None but admin includes another. With --channel there are no other channels for the key.",
		Example: "  pontoon key create viewer --scope read --channel irc-home --expires 30d",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := auth.CheckScopes(scopes, len(channels) > 0); err != nil {
				return usageError{fmt.Errorf("--scope: %w", err)}
			}
			if err := checkFlags(duration("expires", expires)); err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			b := map[string]any{"name": args[0], "scopes": scopes}
			if len(channels) > 0 {
				b["channels"] = channels
			}
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
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "what the key opens: read, send, manage, admin, agent:run; may be repeated")
	cmd.Flags().StringArrayVar(&channels, "channel", nil, "channel, by id or name, that the key is limited to; may be repeated (default all)")
	cmd.Flags().StringVar(&expires, "expires", "", "how long the key lives, such as 30d or 12h (default for ever)")
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
			return show(cmd, o, raw, func(w io.Writer, v struct{ Keys []keyView }) {
				fmt.Fprintln(w, "ID\tNAME\tSCOPES\tCHANNELS\tENDS IN\tLIVE\tCREATED\tEXPIRES\tDELETED\tLAST USED")
				for _, k := range v.Keys {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t…%s\t%v\t%s\t%s\t%s\t%s\n", k.ID, clean(k.Name), clean(strings.Join(k.Scopes, ",")), k.channels(), clean(k.Hint), k.Live,
						ago(k.Created), ago(k.Expires), ago(k.Revoked), ago(k.Used))
				}
			})
		},
	}
}

// keyView is a key as the API shows it.
type keyView struct {
	ID, Name, Hint string
	Scopes         []string
	Channels       []struct{ ID, Name string }
	Live           bool
	Created        *time.Time `json:"created_at"`
	Expires        *time.Time `json:"expires_at"`
	Revoked        *time.Time `json:"revoked_at"`
	Used           *time.Time `json:"last_used_at"`
}

// channels are the names of what the key is limited to; of a deleted one its id.
func (k keyView) channels() string {
	if len(k.Channels) == 0 {
		return "all"
	}
	names := make([]string, len(k.Channels))
	for i, c := range k.Channels {
		if names[i] = clean(c.Name); c.Name == "" {
			names[i] = clean(c.ID) + " (deleted)"
		}
	}
	return strings.Join(names, ",")
}

func keyShow(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY-ID|NAME", Short: "Show what a key opens", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/keys/"+url.PathEscape(args[0]), nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, k keyView) {
				fmt.Fprintf(w, "id\t%s\nname\t%s\nends in\t…%s\nscopes\t%s\nchannels\t%s\nlive\t%v\ncreated\t%s\nexpires\t%s\ndeleted\t%s\nlast used\t%s\n",
					k.ID, clean(k.Name), clean(k.Hint), clean(strings.Join(k.Scopes, ",")), k.channels(), k.Live, ago(k.Created), ago(k.Expires), ago(k.Revoked), ago(k.Used))
			})
		},
	}
}
