// Package plugin runs an adapter that a host may start as a plugin
// (docs/plugins.md), and that opens a WebSocket when somebody else starts it. It
// brings gRPC along, which package sdk leaves out.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/internal/program"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/grpcconn"
)

// Main is sdk.Main for a program that a host may start as a plugin. Started so it
// takes neither url nor token nor configuration of its own: the host connects to
// it, configures it, and it ends with the host. Its exit status is then 78 if
// Adapter.Run returned Refused: it is not started again. Started by anybody else it
// is what it would be with sdk.Main.
func Main(platform string, a sdk.Adapter) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	os.Exit(Start(ctx, platform, a, os.Args, os.Getenv, os.Stderr))
}

// Start is Main for a program that runs several adapters: args[0] names it, and
// the exit status is returned. How the process was started shows in its
// environment; it changes nothing in an adapter.
func Start(ctx context.Context, platform string, a sdk.Adapter, args []string, getenv func(string) string, stderr io.Writer) int {
	if !transport.Started(getenv) {
		return sdk.Start(ctx, platform, a, args, getenv, stderr)
	}
	err := start(ctx, platform, a, args[1:], stderr)
	status := program.Status(filepath.Base(args[0]), err, stderr)
	var refused *sdk.RefusedError
	if errors.As(err, &refused) {
		return transport.ExitConfig
	}
	return status
}

const (
	// hostPatience is how long a plugin waits for its host's next call.
	hostPatience = 30 * time.Second
	// parentInterval is how often a plugin looks whether its parent lives, and
	// parentGrace what it then gets to end: together less than a second.
	parentInterval = 250 * time.Millisecond
	parentGrace    = 500 * time.Millisecond
)

var (
	errNoHost     = errors.New("the host did not come")
	errParentGone = errors.New("the host is gone")
)

// start runs the adapter of a process that a host has started.
func start(ctx context.Context, platform string, a sdk.Adapter, args []string, stderr io.Writer) error {
	given, err := parse(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orphaned := watchParent(cancel)
	server := grpcconn.NewServer()
	go func() { // ends when the host says so, or with the process
		cancel(cmp.Or(server.Serve(), grpcconn.ErrHostGone))
	}()
	done := make(chan error, 1)
	go func() {
		done <- serve(ctx, platform, a, server, sdk.Options{Protocol: given.protocol, Log: program.Log(stderr, given.verbose)})
	}()
	select {
	case err := <-done:
		return err
	case <-orphaned:
		return errParentGone
	}
}

// flags are those that count for a plugin.
type flags struct {
	verbose  bool
	protocol string
}

// parse reads them, and ignores the others that sdk.Main has.
func parse(args []string) (given flags, err error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.BoolVar(&given.verbose, "verbose", false, "")
	set.StringVar(&given.protocol, "protocol", "", "")
	for _, ignored := range []string{"url", "token", "config"} {
		set.String(ignored, "", "")
	}
	if err := set.Parse(args); err != nil {
		return given, program.UsageError(err.Error())
	}
	return given, program.NoArguments(set)
}

func serve(ctx context.Context, platform string, a sdk.Adapter, server *grpcconn.Server, o sdk.Options) error {
	wait, cancel := context.WithTimeoutCause(ctx, hostPatience, errNoHost)
	setup, err := server.Setup(wait)
	cancel()
	if err != nil {
		return failure(err)
	}
	o.Log, o.Config, o.Accept = o.Log.With("channel", setup.Channel), setup.Config, accept(server)
	err = sdk.Run(ctx, platform, a, o)
	if errors.Is(err, sdk.ErrDetached) {
		select {
		case <-server.Gone(): // the whole service ended, and the stream with it
			err = grpcconn.ErrHostGone
		case <-time.After(parentGrace):
		}
	}
	return failure(err)
}

// failure leaves out what is no failure: to be told to end.
func failure(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, grpcconn.ErrHostGone) {
		return nil
	}
	return err
}

// accept waits for the host, which is the one that connects.
func accept(server *grpcconn.Server) func(context.Context) (transport.Conn, error) {
	return func(ctx context.Context) (transport.Conn, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, hostPatience, errNoHost)
		defer cancel()
		stream, err := server.Accept(ctx)
		if err != nil {
			return nil, err
		}
		return stream, nil
	}
}

// watchParent tells when the parent has died, on systems that show it by
// another parent's number. It cancels with errParentGone, and closes the channel
// parentGrace later. It ends with the process.
func watchParent(cancel context.CancelCauseFunc) <-chan struct{} {
	parent := os.Getppid()
	late := make(chan struct{})
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentInterval)
		}
		cancel(errParentGone)
		time.Sleep(parentGrace)
		close(late)
	}()
	return late
}
