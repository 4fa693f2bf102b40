package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irc"
	"github.com/pontoon-bridge/pontoon/adapters/webchat/webchat"
	"github.com/pontoon-bridge/pontoon/sdk"
	sdkplugin "github.com/pontoon-bridge/pontoon/sdk/plugin"
)

// builtIn are the adapters that this binary carries, by platform.
var builtIn = map[string]func() sdk.Adapter{
	"irc":     func() sdk.Adapter { return irc.New() },
	"webchat": func() sdk.Adapter { return webchat.New() },
}

func adapterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "adapter", Short: "Work with adapters", Args: cobra.NoArgs, RunE: helpOnly}
	var names []string
	for name := range builtIn {
		names = append(names, name)
	}
	slices.Sort(names)
	cmd.AddCommand(&cobra.Command{
		Use:                "run NAME [flags]",
		Short:              "Run a built-in adapter: " + strings.Join(names, ", "),
		Long:               "Run a built-in adapter: " + strings.Join(names, ", ") + ". Flags and environment are those of every adapter of the Go SDK: see 'run NAME --help'.",
		DisableFlagParsing: true, // they are the adapter's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || builtIn[args[0]] == nil {
				if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
					return cmd.Help()
				}
				return usageError{fmt.Errorf("expected the name of a built-in adapter: %s", strings.Join(names, ", "))}
			}
			name := args[0]
			args[0] = "pontoon adapter run " + name
			if code := sdkplugin.Start(cmd.Context(), name, builtIn[name](), args, os.Getenv, cmd.ErrOrStderr()); code != 0 {
				return exitError(code)
			}
			return nil
		},
	})
	return cmd
}

// exitError ends the program with a status; what went wrong has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
