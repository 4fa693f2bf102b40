package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func adaptersCommand(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "adapters", Short: "Show who is attached now", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.all(cmd.Context(), "/adapters", "adapters")
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Adapters []struct {
					Channel, Platform, Protocol, Transport string
					Declared, Effective                    []string
					Since                                  *time.Time
					LastFrame                              *time.Time `json:"last_frame_at"`
					Queue                                  int        `json:"queue_length"`
				}
			}) {
				fmt.Fprintln(w, "CHANNEL\tPLATFORM\tTRANSPORT\tPROTOCOL\tDECLARED\tEFFECTIVE\tSINCE\tLAST FRAME\tQUEUE")
				for _, a := range v.Adapters {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", a.Channel, clean(a.Platform), a.Transport, a.Protocol, clean(strings.Join(a.Declared, ",")),
						strings.Join(a.Effective, ","), ago(a.Since), ago(a.LastFrame), a.Queue)
				}
			})
		},
	}
}

func capabilitiesCommand(o *clientOptions) *cobra.Command {
	return &cobra.Command{
		Use: "capabilities", Short: "Show the capability catalogue", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			raw, err := c.call(cmd.Context(), http.MethodGet, "/capabilities", nil)
			if err != nil {
				return err
			}
			return show(cmd, o, raw, func(w io.Writer, v struct {
				Capabilities []struct {
					Name, Protocol, About string
					DegradesTo            []string `json:"degrades_to"`
				}
			}) {
				fmt.Fprintln(w, "NAME\tSINCE\tWITHOUT IT\tABOUT")
				for _, c := range v.Capabilities {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Protocol, strings.Join(c.DegradesTo, ", "), c.About)
				}
			})
		},
	}
}

// manCommand writes man pages, for packagers.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write man pages into a directory", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "PONTOON", Section: "1"}, args[0])
		},
	}
}
