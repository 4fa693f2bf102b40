package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawn starts the program with out and err as its output: it starts a box, which
// becomes the program. The calling goroutine must be locked to a thread that lives as
// long as the program: the kernel kills the program when that thread ends.
func spawn(l launch, name string, out, err uintptr) (started, error) {
	null, e := os.Open(os.DevNull)
	if e != nil {
		return started{}, e
	}
	defer func() { _ = null.Close() }()
	pair, e := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if e != nil {
		return started{}, fmt.Errorf("control socket: %w", e)
	}
	control := os.NewFile(uintptr(pair[0]), "control")
	defer func() { _ = control.Close() }()
	_, e = syscall.ForkExec("/proc/self/exe", []string{boxTitle + name}, &syscall.ProcAttr{ //nolint:gosec // G702: the name is one word, for the process list
		Dir: "/", Env: shimEnv(), Files: []uintptr{null.Fd(), out, err, uintptr(pair[1])},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = unix.Close(pair[1])
	if e != nil {
		return started{}, e
	}
	l.Shim = os.Getpid()
	if e := send(control, l); e != nil {
		return started{}, fmt.Errorf("hand over: %w", e)
	}
	// Its end of the socket is closed by exec: until then it may still fail.
	var began started
	for from := json.NewDecoder(control); ; {
		var r report
		switch e := from.Decode(&r); {
		case e == nil && r.Refused != nil:
			return started{}, r.Refused
		case e == nil && r.Started != nil:
			began = *r.Started
		case errors.Is(e, io.EOF) && began.Pid != 0:
			return began, nil
		default:
			return started{}, errors.New("ended while it was started")
		}
	}
}
