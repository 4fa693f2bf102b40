package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pontoon-bridge/pontoon/sdk/internal/program"
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
// A flag wins over its variable. The exit status is 0 after SIGINT, SIGTERM or
// an early nil of Adapter.Run, 2 for wrong usage, 1 for everything else, with one
// line on standard error. Standard output belongs to the adapter.
//
// Such a program opens a WebSocket, and can't be a plugin: Main of package
// sdk/plugin takes its place where a host may start the program.
func Main(platform string, a Adapter) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(Start(ctx, platform, a, os.Args, os.Getenv, os.Stderr))
}

// Start is Main for a program that runs several adapters: args[0] names it, and
// the exit status is returned.
func Start(ctx context.Context, platform string, a Adapter, args []string, getenv func(string) string, stderr io.Writer) int {
	name := filepath.Base(args[0])
	if transport.Started(getenv) {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", name, noPlugin)
		return transport.ExitConfig
	}
	o, err := optionsOf(name, args[1:], getenv, stderr)
	if err == nil {
		err = Run(ctx, platform, a, o)
	}
	return program.Status(name, err, stderr)
}

// noPlugin tells who builds a program that it lacks the other way to the host,
// which is a package of its own, as it brings gRPC along.
const noPlugin = "call plugin.Main of github.com/pontoon-bridge/pontoon/sdk/plugin in its main: " +
	"it was started as a plugin, and sdk.Main only opens a WebSocket"

func optionsOf(name string, args []string, getenv func(string) string, stderr io.Writer) (Options, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	address := flags.String("url", "", "the host's `address` (PONTOON_URL, default "+DefaultURL+")")
	token := flags.String("token", "", "the channel's `token`; better in PONTOON_TOKEN, a flag shows in the process list")
	config := flags.String("config", "", "configuration: a JSON `file`, or JSON text that begins with { (PONTOON_CONFIG)")
	protocol := flags.String("protocol", "", program.ProtocolUsage)
	verbose := flags.Bool("verbose", false, "log debug lines")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintf(stderr, "Usage: %s [flags]\n", name)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return Options{}, err
	case err != nil:
		return Options{}, program.UsageError(err.Error())
	}
	if err := program.NoArguments(flags); err != nil {
		return Options{}, err
	}
	given := func(value, variable string) string {
		if value != "" {
			return value
		}
		return getenv(variable)
	}
	o := Options{Protocol: *protocol, URL: given(*address, "PONTOON_URL"), Token: strings.TrimSpace(given(*token, "PONTOON_TOKEN"))}
	if o.Token == "" {
		return Options{}, program.UsageError("no token: set PONTOON_TOKEN to the channel's token, or let a host run this as a plugin")
	}
	if _, err := endpoint(o.URL); err != nil {
		return Options{}, program.UsageError(err.Error())
	}
	o.Log = program.Log(stderr, *verbose)
	var err error
	o.Config, err = readConfig(given(*config, "PONTOON_CONFIG"))
	return o, err
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
