package bench

import (
	"bytes"
	"context"
	"encoding/json"
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
		err = serveSample(ctx, os.Stdin, stdout, (*sdkLoad).measure)
	case args[2] == roleStreamEcho && len(rest) == 1:
		err = serveStream(ctx, rest[0])
	case args[2] == roleAgent && len(rest) > 0:
		err = serveAgentRole(ctx, rest, stdout)
	case args[2] == rolePoster:
		err = serveSample(ctx, os.Stdin, stdout, (*posting).measure)
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

// sampleOfRole lets a process in a role measure once, which is told its work.
func sampleOfRole(ctx context.Context, role string, work any) (s Sample, err error) {
	cmd, err := roleCommand(role)
	if err != nil {
		return s, err
	}
	in, err := json.Marshal(work)
	if err != nil {
		return s, fmt.Errorf("encode work: %w", err)
	}
	var out bytes.Buffer
	var said tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	if err := cmd.Start(); err != nil {
		return s, fmt.Errorf("start %s: %w", role, err)
	}
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer kill()
	if err := cmd.Wait(); err != nil {
		return s, fmt.Errorf("%s: %w: %s", role, err, said.String())
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("read what %s measured: %w", role, err)
	}
	return s, nil
}

// serveSample is such a process.
func serveSample[W any](ctx context.Context, in io.Reader, out io.Writer, measure func(*W, context.Context) (Sample, error)) error {
	var work W
	if err := json.NewDecoder(in).Decode(&work); err != nil {
		return fmt.Errorf("read work: %w", err)
	}
	s, err := measure(&work, ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(s)
}
