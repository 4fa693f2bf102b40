package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// Main is the whole main function of an adapter: it reads flags and
// environment, runs the adapter and exits.
//
//	--url     PONTOON_URL      the host, default http://127.0.0.1:8080
//	--token   PONTOON_TOKEN    the channel's token; a flag shows in the process list
//	--config  PONTOON_CONFIG   configuration: JSON text that begins with {, or a file
//	--protocol                 the newest to speak, 1.0 or 1.1
//	--verbose                  log debug lines
//
// A program that a host has started as a plugin needs none of the first three: it is
// configured and connected by the host (docs/plugins.md), and ends with it.
//
// A flag wins over its variable. The exit status is 0 after SIGINT, SIGTERM or
// an early nil of Adapter.Run, 2 for wrong usage, 1 for everything else (as a
// plugin 78 if Run returned Refused: it is not started again), with one line on standard error. Standard output belongs to the adapter.
func Main(platform string, a Adapter) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(Start(ctx, platform, a, os.Args, os.Getenv, os.Stderr))
}

// Start is Main for a program that runs several adapters: args[0] names it, and
// the exit status is returned. How the process was started shows in its
// arguments and environment and ends in Options, whose dial says how the host is
// reached: it changes nothing in an adapter.
func Start(ctx context.Context, platform string, a Adapter, args []string, getenv func(string) string, stderr io.Writer) int {
	name := filepath.Base(args[0])
	var err error
	if transport.Started(getenv) {
		err = startPlugin(ctx, platform, a, args[1:], stderr)
	} else {
		var o Options
		if o, err = optionsOf(name, args[1:], getenv, stderr); err == nil {
			err = Run(ctx, platform, a, o)
		}
	}
	var usage usageError
	var hopeless *hopelessError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "%s: %v (see --help)\n", name, err)
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.As(err, &hopeless) && transport.Started(getenv) {
		return transport.ExitConfig
	}
	return 1
}

// usageError is a mistake in how the program was called.
type usageError string

func (e usageError) Error() string { return string(e) }

const protocolUsage = "the newest `version` of the bridge protocol to speak, 1.0 or 1.1"

func optionsOf(name string, args []string, getenv func(string) string, stderr io.Writer) (Options, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("url", "", "the host's `address` (PONTOON_URL, default "+DefaultURL+")")
	token := flags.String("token", "", "the channel's `token`; better in PONTOON_TOKEN, a flag shows in the process list")
	config := flags.String("config", "", "configuration: a JSON `file`, or JSON text that begins with { (PONTOON_CONFIG)")
	protocol := flags.String("protocol", "", protocolUsage)
	verbose := flags.Bool("verbose", false, "log debug lines")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintf(stderr, "Usage: %s [flags]\n", name)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return Options{}, err
	case err != nil:
		return Options{}, usageError(err.Error())
	case flags.NArg() > 0:
		return Options{}, usageError(fmt.Sprintf("found argument %q, expected only flags", flags.Arg(0)))
	}
	given := func(value, variable string) string {
		if value != "" {
			return value
		}
		return getenv(variable)
	}
	o := Options{Protocol: *protocol, URL: given(*address, "PONTOON_URL"), Token: strings.TrimSpace(given(*token, "PONTOON_TOKEN"))}
	if o.Token == "" {
		return Options{}, usageError("no token: set PONTOON_TOKEN to the channel's token, or let a host run this as a plugin")
	}
	if _, err := endpoint(o.URL); err != nil {
		return Options{}, usageError(err.Error())
	}
	o.Log = logTo(stderr, *verbose)
	var err error
	o.Config, err = readConfig(given(*config, "PONTOON_CONFIG"))
	return o, err
}

func logTo(stderr io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

// readConfig returns the JSON object that given is, or names the file of.
func readConfig(given string) (json.RawMessage, error) {
	given = strings.TrimSpace(given)
	if given == "" {
		return nil, nil
	}
	text, from := []byte(given), "configuration"
	if given[0] != '{' {
		from = given
		var err error
		if text, err = os.ReadFile(given); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	var broken *json.SyntaxError
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); errors.As(err, &broken) {
		line, column := position(text, broken.Offset)
		return nil, fmt.Errorf("%s:%d:%d: %w", from, line, column, err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if whole = bytes.TrimSpace(whole); whole[0] != '{' {
		return nil, fmt.Errorf("%s: found no JSON object", from)
	}
	return whole, nil
}
