//go:build unix

package child

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// askToEnd ignores the error: the program is gone then.
func askToEnd(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

// killGroup ignores the error: nothing is left then.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func exitOf(s *os.ProcessState) Exit {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok {
		return Exit{Code: s.ExitCode()}
	}
	return exitStatus(status)
}

func exitStatus(w syscall.WaitStatus) Exit {
	if w.Signaled() {
		return Exit{Code: -1, Signal: w.Signal().String()}
	}
	return Exit{Code: w.ExitStatus()}
}
