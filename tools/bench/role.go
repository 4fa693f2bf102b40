package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pontoon-bridge/pontoon/sdk/plugin"
)

// What this program is in processes of its own: the far end of a measurement, or the
// one that misbehaves beside it.
const (
	roleArgument   = "role" // the first argument of such a process; its role is the second
	roleRawEcho    = "raw-echo"
	roleStreamEcho = "stream-echo"
	roleCulprit    = "culprit"
	roleAdapter    = "adapter"
	roleAgent      = "agent"
	roleSDK        = "sdk"
	rolePoster     = "poster"
	roleBareSend   = "bare-send"
)

// Role is the main function of a process that a measurement has started; ok = this is
// one. Every program that measures calls it first, with os.Args.
func Role(args []string, stdout, stderr io.Writer) (status int, ok bool) {
	if len(args) < 3 || args[1] != roleArgument {
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch rest := args[3:]; {
	case args[2] == roleRawEcho:
		err = serveRaw(ctx, stdout)
	case args[2] == roleAdapter:
		return plugin.Start(ctx, "bench", &adapter{}, args[2:], os.Getenv, stderr), true
	case args[2] == roleSDK:
		err = serveSDK(ctx, os.Stdin, stdout)
	case args[2] == roleStreamEcho && len(rest) == 1:
		err = serveStream(ctx, rest[0])
	case args[2] == roleAgent && len(rest) > 0:
		err = serveAgentRole(ctx, rest, stdout)
	case args[2] == rolePoster && len(rest) == 1:
		err = servePoster(ctx, rest[0], stdout)
	case args[2] == roleBareSend && len(rest) == 1:
		err = serveBareSend(ctx, rest[0], stdout)
	case args[2] == roleCulprit && len(rest) == 1:
		err = serveCulprit(ctx, rest[0], stdout, stderr)
	default:
		err = fmt.Errorf("role: found %q, expected one of a measurement", args[2:])
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1, true
	}
	return 0, true
}

// roleCommand is this program in another role; it ends with this process.
func roleCommand(role string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.Command(self, append([]string{roleArgument, role}, args...)...)
	bindToParent(cmd)
	return cmd, nil
}

// spawnRole starts one that prints where it listens.
func spawnRole(role string, args ...string) (*child, error) {
	cmd, err := roleCommand(role, args...)
	if err != nil {
		return nil, err
	}
	return start(cmd)
}
