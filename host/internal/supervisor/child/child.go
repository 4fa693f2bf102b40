// Package child runs one program with everything that it starts, such that none
// of it outlives the host: through a small parent of its own, the shim.
package child

import (
	"os"
)

// Spec is what to run.
type Spec struct {
	Path   string   // absolute
	Args   []string // argv, Args[0] included
	Env    []string // NAME=value, all of it
	Dir    string
	Memory int64 // bytes; 0 = no limit
	Name   string // of the plugin, for the process list and the cgroup
}

// Child is a started program.
type Child struct {
	Pid     int      // the program's own
	Stdout  *os.File // read ends of its pipes; the caller reads and closes them
	Stderr  *os.File
	LimitBy string // what enforces Spec.Memory: "cgroup", "rlimit" or "none"
}

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // its name, such as "killed"
	Err    error  // it could not be started, or nobody knows how it ended
}

// Start runs the program. Error: it could not be started.
func Start(s Spec) (*Child, error) { return nil, nil }

// Terminate asks the program to end (SIGTERM to the program alone).
func (c *Child) Terminate() {}

// Kill ends the program and everything that it started, at once.
func (c *Child) Kill() {}

// Done is closed when the program and everything that it started are gone.
func (c *Child) Done() <-chan struct{} { return nil }

// Exit is how it ended; only after Done.
func (c *Child) Exit() Exit { return Exit{} }

// IsShim reports whether this process was started as a shim; if so main must
// call Shim at once and exit with what it returns.
func IsShim() bool { return false }

// Shim is the whole life of the shim.
func Shim() int { return 0 }

// Limiter says what a memory limit would be enforced by on this machine, and
// why not by something better, for `doctor`.
func Limiter() (by, why string) { return "none", "" }
