package child

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// askToEnd does nothing: there is no signal that a program could heed.
func askToEnd(*os.Process) {}

// killGroup ends the program alone, and ignores the error: it is gone then.
func killGroup(p *os.Process) { _ = p.Kill() }

func exitOf(s *os.ProcessState) Exit { return Exit{Code: s.ExitCode()} }
