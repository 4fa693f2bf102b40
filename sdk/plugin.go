package sdk

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

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
	// errStreamEnded wraps why, if the host will not attach again.
	errStreamEnded = errors.New("the host ended the stream")
)

// startPlugin is Start for a process that a host has started. Configuration and
// connection come from it; flags for the other mode are ignored.
func startPlugin(ctx context.Context, platform string, a Adapter, args []string, stderr io.Writer) error {
	given, err := pluginFlags(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orphaned := watchParent(cancel)
	server := transport.NewPluginServer()
	go server.Serve() // ends when the host says so, or with the process
	go func() {
		select {
		case <-server.Gone():
			cancel(transport.ErrHostGone)
		case <-ctx.Done():
		}
	}()
	done := make(chan error, 1)
	go func() {
		done <- servePlugin(ctx, platform, a, server, Options{Protocol: given.protocol, Log: logTo(stderr, given.verbose)})
	}()
	select {
	case err := <-done:
		return err
	case <-orphaned:
		return errParentGone
	}
}

// givenFlags are what counts in plugin mode.
type givenFlags struct {
	verbose  bool
	protocol string
}

// pluginFlags reads them, from the same flags as in the other mode.
func pluginFlags(args []string) (given givenFlags, err error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&given.verbose, "verbose", false, "")
	flags.StringVar(&given.protocol, "protocol", "", "")
	for _, ignored := range []string{"url", "token", "config"} {
		flags.String(ignored, "", "")
	}
	if err := flags.Parse(args); err != nil {
		return given, usageError(err.Error())
	}
	if flags.NArg() > 0 {
		return given, usageError(fmt.Sprintf("found argument %q, expected only flags", flags.Arg(0)))
	}
	return given, nil
}

func servePlugin(ctx context.Context, platform string, a Adapter, server *transport.PluginServer, o Options) error {
	wait, cancel := context.WithTimeoutCause(ctx, hostPatience, errNoHost)
	setup, err := server.Setup(wait)
	cancel()
	if err != nil {
		return endOfPlugin(err)
	}
	o.Log, o.Config, o.dial, o.dialed = o.Log.With("channel", setup.Channel), setup.Config, accept(server), true
	err = Run(ctx, platform, a, o)
	if errors.Is(err, errStreamEnded) {
		select {
		case <-server.Gone(): // the whole service ended, and the stream with it
			err = transport.ErrHostGone
		case <-time.After(parentGrace):
		}
	}
	return endOfPlugin(err)
}

// endOfPlugin leaves out what is no failure: to be told to end.
func endOfPlugin(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, transport.ErrHostGone) {
		return nil
	}
	return err
}

// accept is the dial of plugin mode: it is the host that connects.
func accept(server *transport.PluginServer) dialFunc {
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
