// Command pontoon is the bridge-adapter host and its operator's tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
)

// version is set by the build.
var version = "dev"

func main() {
	if child.IsShim() { // before anything else: it lives beside each plugin
		os.Exit(child.Shim())
	}
	log.SetOutput(io.Discard) // net/http's client writes there what it says again in its error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// exitLost is the exit status if what is stored is gone, like EX_NOINPUT of
// sysexits.h: a service manager must not start an empty host in its place.
const exitLost = 66

// usageError is a call with the wrong words: exit code 2.
type usageError struct{ error }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var status exitError
	if errors.As(err, &status) {
		return int(status)
	}
	// One line, whatever the error holds.
	line := "pontoon: " + clean(err.Error())
	var usage usageError
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") {
		fmt.Fprintf(errs, "%s (see '%s --help')\n", line, cmd.CommandPath())
		return 2
	}
	fmt.Fprintln(errs, line)
	if errors.Is(err, ledger.ErrLost) {
		return exitLost
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "pontoon",
		Short:         "Let chat platforms and AI agents talk to each other",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{flagError(err)} })
	o := &clientOptions{}
	flags := root.PersistentFlags()
	flags.StringVar(&o.data, "data", envOr("PONTOON_DATA", "./data"), "data directory (PONTOON_DATA)")
	flags.StringVar(&o.url, "url", envOr("PONTOON_URL", "http://127.0.0.1:8080"), "url of a running host (PONTOON_URL)")
	flags.StringVar(&o.key, "key", "", "key for it (PONTOON_KEY, which keeps it out of the process list; else that of the data directory)")
	flags.BoolVar(&o.json, "json", false, "print one JSON value and nothing else")
	root.AddCommand(serveCommand(o), channelCommand(o), tokenCommand(o), agentCommand(o), keyCommand(o), operatorCommand(o), auditCommand(o), connectionsCommand(o), secretCommand(o), sendCommand(o), messagesCommand(o), searchCommand(o), framesCommand(o), whyCommand(o), deadCommand(o), renderCommand(o), adaptersCommand(o),
		capabilitiesCommand(o), adapterCommand(), pluginCommand(o), statsCommand(o), doctorCommand(o), backupCommand(o), restoreCommand(o), versionCommand(), manCommand())
	wrapArgs(root)
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version, as --version does", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "pontoon version %s\n", version)
			return err
		},
	}
}

// wrapArgs makes a wrong number of arguments a usage error.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && len(args) == 0 {
				_, wanted, _ := strings.Cut(cmd.Use, " ")
				err = fmt.Errorf("found no argument, expected %s", wanted)
			}
			if err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
