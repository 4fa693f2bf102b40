package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func operatorCommand(o *clientOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "operator", Short: "Who operates the host", Args: cobra.NoArgs, RunE: helpOnly}
	cmd.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Show who operates the host", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := o.client()
				if err != nil {
					return err
				}
				raw, err := c.call(cmd.Context(), http.MethodGet, "/operator", nil)
				if err != nil {
					return err
				}
				return show(cmd, o, raw, func(w io.Writer, v struct {
					Name    string
					Changed *time.Time `json:"changed_at"`
				}) {
					fmt.Fprintf(w, "name\t%s\npassword set\t%s\n", clean(v.Name), ago(v.Changed))
				})
			},
		},
		&cobra.Command{
			Use: "link", Short: "Make a link at which name and password are set anew",
			Long: "Make a link at which the operator's name and password are set anew, for one who forgot them.\n" +
				"It opens once, within an hour; then all sessions end. Links made before open nothing any more.",
			Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := o.client()
				if err != nil {
					return err
				}
				raw, err := c.call(cmd.Context(), http.MethodPost, "/operator/link", nil)
				if err != nil {
					return err
				}
				return show(cmd, o, raw, func(w io.Writer, v struct{ URL string }) { fmt.Fprintln(w, v.URL) })
			},
		})
	return cmd
}
