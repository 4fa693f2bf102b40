package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
)

// pipeGrace is how long the pipes of a dead process may still be read.
const pipeGrace = 200 * time.Millisecond

var errKilled = errors.New("killed before it was started")

// process is a started plugin as go-plugin sees it: of what it writes, only a
// checked handshake line gets through. The rest is ours: go-plugin's own
// readers stop at a long line, and panic at a crafted one.
type process struct {
	start    func(env []string) (*child.Child, error)
	env      []string
	dir      string      // of its socket
	owner    *child.User // of that; nil = the host's
	versions []int
	logs     *logs

	line   *io.PipeReader // the checked handshake line
	pass   *io.PipeWriter // its other end
	drains sync.WaitGroup // both pipes, until their ends
	starts sync.WaitGroup // Start, while it runs

	mu      sync.Mutex // guards what follows
	child   *child.Child
	killed  bool
	refused error // why the handshake did not get through
}

func newProcess(l *logs, dir string, env []string, start func(env []string) (*child.Child, error)) *process {
	p := &process{start: start, env: env, dir: dir, logs: l}
	p.line, p.pass = io.Pipe()
	return p
}

var _ runner.Runner = (*process)(nil)

// Start implements runner.Runner.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	if p.killed {
		p.mu.Unlock()
		return errKilled
	}
	p.starts.Add(1)
	p.mu.Unlock()
	defer p.starts.Done()
	c, err := p.start(p.env)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.child = c
	if p.killed {
		c.Kill()
	}
	p.drains.Go(func() { p.logs.drain(streamStderr, c.Stderr) })
	p.drains.Go(func() { p.shake(c.Stdout) })
	p.mu.Unlock()
	return nil
}

// running is the started child, nil before.
func (p *process) running() *child.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

func ended(c *child.Child) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// exit is how the process ended, and whether by itself.
func (p *process) exit() (e child.Exit, itself bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil || p.killed || !ended(p.child) {
		return child.Exit{}, false
	}
	return p.child.Exit(), true
}

// mayExit gives a process a moment to end by itself: then how it ended tells
// more than what was seen of it.
func (p *process) mayExit(patience time.Duration) {
	if c := p.running(); c != nil {
		select {
		case <-c.Done():
		case <-time.After(patience):
		}
	}
}

// gone waits until the process and its output have ended, one that is just
// being started included: it must have been told to die, or have ended.
func (p *process) gone() {
	p.starts.Wait()
	c := p.running()
	if c == nil {
		return
	}
	<-c.Done()
	_ = p.line.Close()
	// Whoever got away and still holds a pipe must not hold us.
	late := time.Now().Add(pipeGrace)
	_ = c.Stdout.SetReadDeadline(late)
	_ = c.Stderr.SetReadDeadline(late)
	p.drains.Wait()
	_ = c.Stdout.Close()
	_ = c.Stderr.Close()
}

// shake lets the handshake line through if it is as it must be, and drains what
// follows.
func (p *process) shake(out *os.File) {
	in := bufio.NewReaderSize(out, drainSize)
	line, err := readHandshake(in)
	if err == nil {
		err = checkHandshake(line, p.dir, p.versions)
	} else if _, end := in.Peek(1); end != nil {
		p.mayExit(exitGrace) // its output has ended, most likely with it
	}
	if err != nil {
		p.mu.Lock()
		p.refused = err
		p.mu.Unlock()
		_ = p.pass.Close()
		p.logs.drain(streamStdout, in)
		return
	}
	p.drains.Go(func() { // ends with gone at the latest, which closes the reader
		_, _ = io.WriteString(p.pass, line+"\n")
		_ = p.pass.Close()
	})
	p.logs.drain(streamStdout, in)
}

// handshakeError is why the handshake was refused, if it was.
func (p *process) handshakeError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return p.line }

// Stderr implements runner.Runner.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

// Name implements runner.Runner.
func (p *process) Name() string { return "plugin" }

// Diagnose implements runner.Runner.
func (p *process) Diagnose(context.Context) string { return "" }

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error {
	<-p.running().Done()
	return nil
}

// Kill implements runner.Runner.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	if p.child == nil || !ended(p.child) {
		p.killed = true
	}
	if p.child != nil {
		p.child.Kill()
	}
	p.mu.Unlock()
	return p.line.Close()
}

// ID implements runner.Runner.
func (p *process) ID() string {
	if c := p.running(); c != nil {
		return strconv.Itoa(c.Pid)
	}
	return ""
}

// PluginToHost implements runner.Runner.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin implements runner.Runner.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
