package child

import (
	"errors"
	"os"
	"os/exec"
	"sync"
)

// plain is a program without a shim: a group of its own, killed at its end.
type plain struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	ended bool // it may be reaped by now: its pid is no longer ours
}

// startPlain runs the program as a direct child of the host.
func startPlain(s Spec) (*Child, error) {
	if err := s.Sandbox.check(0); err != nil {
		return nil, err
	}
	if s.Sandbox.User != nil {
		return nil, errors.New("user: only the shim can become another, and there is none here")
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outRead.Close(), outWrite.Close())
	}
	p := &plain{cmd: &exec.Cmd{
		Path: s.Path, Args: s.Args, Env: s.Env, Dir: s.Dir,
		Stdout: outWrite, Stderr: errWrite, SysProcAttr: ownGroup(),
	}}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would be the host's own
	}
	err = p.cmd.Start()
	err = errors.Join(err, outWrite.Close(), errWrite.Close())
	if err != nil {
		return nil, errors.Join(err, outRead.Close(), errRead.Close())
	}
	c := &Child{
		Pid: p.cmd.Process.Pid, Stdout: outRead, Stderr: errRead, Held: Held{LimitBy: "none", Sandbox: s.Sandbox.strength(0), Open: s.Sandbox.open(0)},
		proc: p, done: make(chan struct{}),
	}
	go p.wait(c)
	return c, nil
}

// wait owns the program's end.
func (p *plain) wait(c *Child) {
	defer close(c.done)
	err := p.reap()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		c.exit = Exit{Code: -1, Err: err}
		return
	}
	c.exit = exitOf(p.cmd.ProcessState)
}

// end kills what is left of the group, and lets nobody else do so after it.
func (p *plain) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p.cmd.Process)
	p.ended = true
}

func (p *plain) terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		askToEnd(p.cmd.Process)
	}
}

func (p *plain) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		killGroup(p.cmd.Process)
	}
}
