// Package program is what all ways to run an adapter as a program share.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
)

// UsageError is a mistake in how the program was called.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// ProtocolUsage is what --help says of --protocol.
const ProtocolUsage = "the newest `version` of the bridge protocol to speak, 1.0 or 1.1"

// NoArguments refuses what is left behind the flags.
func NoArguments(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return UsageError(fmt.Sprintf("found argument %q, expected only flags", flags.Arg(0)))
	}
	return nil
}

// Log is the log of a program, on standard error.
func Log(stderr io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

// Status prints why the program called name ends, if that is a failure, and
// returns its exit status: 0 for nil and --help, 2 for wrong usage, else 1.
func Status(name string, err error, stderr io.Writer) int {
	var usage UsageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "%s: %v (see --help)\n", name, err)
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return 1
}
