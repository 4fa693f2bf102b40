//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// sleeper is the mode of the processes that a hostile plugin leaves behind.
const sleeper = "sleeper"

// sleepTime bounds what a failed test leaves behind.
const sleepTime = 3 * time.Minute

// sleep does nothing for long, whatever it is asked.
func sleep() int {
	ignoreTerm()
	time.Sleep(sleepTime)
	return 0
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }

// startFamily starts what outlives a plugin and holds its output open: a plain
// child, one with a group, one with a session of its own, and daemons: children
// of a child that has ended, with a session of their own, one without our output.
func startFamily(o options) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		return
	}
	mark := "mark=" + o.mark
	begin := func(attr *syscall.SysProcAttr, output bool, args ...string) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.SysProcAttr = attr
		if output {
			cmd.Stdout, cmd.Stderr = os.NewFile(1, "stdout"), os.NewFile(2, "stderr")
		}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "hostile: start a child:", err)
		}
	}
	begin(nil, true, self, sleeper, mark)
	begin(&syscall.SysProcAttr{Setpgid: true}, true, self, sleeper, mark)
	begin(&syscall.SysProcAttr{Setsid: true}, true, self, sleeper, mark)
	daemon := `setsid "$0" ` + sleeper + ` "$1" & setsid "$0" ` + sleeper + ` "$1" >/dev/null 2>&1 </dev/null & exit 0`
	begin(&syscall.SysProcAttr{Setsid: true}, true, "/bin/sh", "-c", daemon, self, mark)
	time.Sleep(100 * time.Millisecond) // for the shell to have started both
}
