// Package child runs one program with everything that it starts, such that none
// of it outlives the host: through a small parent of its own, the shim.
//
// On Linux Start runs the host's own binary again as the shim. The shim starts
// the program, in a sandbox, adopts what the program leaves behind, and kills all of it
// when the program ends, when it is told to, or when the host is gone, which it sees
// by the end of its control socket. Elsewhere there is no shim: only the
// program's process group is killed, and the SDK watches its parent.
package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxSpec bounds arguments and environment together. Linux takes 2 MiB of
	// them from exec by default, and nobody needs a tenth of that.
	maxSpec = 1 << 20
	// maxName is what still reads well in a process list.
	maxName = 64
	// startTimeout is for a start that hangs, as an exec from a dead network
	// mount does; a slow disk is far quicker.
	startTimeout = 10 * time.Second
)

// ErrShimKilled is the Exit.Err of a program whose shim was killed: the program
// died with it, and how is not known.
var ErrShimKilled = errors.New("its shim was killed")

// Spec is what to run.
type Spec struct {
	Path   string   // absolute
	Args   []string // argv, Args[0] included
	Env    []string // NAME=value, all of it
	Dir    string   // working directory, absolute
	Memory int64    // bytes; 0 = no limit
	Name   string   // of the plugin, for the process list and the cgroup
	Group  string   // of the host's data directory: letters and digits, for Sweep; may be ""
	NoShim bool     // run it as on systems without a shim: its group dies at its end, nothing else is promised

	Sandbox Sandbox
}

// Child is a started program.
type Child struct {
	Pid    int      // the program's own
	Stdout *os.File // read ends of its pipes; the caller reads and closes them
	Stderr *os.File
	Held   Held // what keeps it from what

	proc process
	done chan struct{}
	exit Exit // written before done is closed
}

// process is what tells the program to end. Its methods never block and may be
// called at any time, by anyone, any number of times.
type process interface {
	terminate()
	kill()
}

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // its name, such as "killed"
	Err    error  // nobody knows how it ended, or something of it could not be killed
}

// Start runs the program. Its stdin is empty, its environment exactly Spec.Env,
// its session its own. Error: it could not be started, and nothing is left of
// it; errors.Is knows fs.ErrNotExist, fs.ErrPermission and syscall.ENOEXEC. It
// returns within 12 s.
func Start(s Spec) (*Child, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("start %q: %w", s.Name, err)
	}
	c, err := start(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	return c, nil
}

// Terminate asks the program to end (SIGTERM to the program alone). Windows
// knows no such thing: there it does nothing.
func (c *Child) Terminate() { c.proc.terminate() }

// Kill ends the program and everything that it started, at once. Done follows
// within 2 s; within 5 s, with an Exit.Err that names it, if a process can't be
// killed because it waits for a device.
func (c *Child) Kill() { c.proc.kill() }

// Done is closed when the program and everything that it started are gone.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit is how it ended; only after Done.
func (c *Child) Exit() Exit { return c.exit }

// check refuses what exec would misread or report without a reason.
func (s *Spec) check() error {
	size := 0
	for _, text := range append(append([]string{s.Path, s.Dir, s.Name, s.Group}, s.Args...), s.Env...) {
		if strings.IndexByte(text, 0) >= 0 {
			return errors.New("a NUL byte in path, directory, name, arguments or environment")
		}
		size += len(text)
	}
	for _, v := range s.Env {
		if strings.IndexByte(v, '=') < 1 {
			return errors.New("an entry of the environment is not NAME=value") // not shown: it may be a secret
		}
	}
	switch {
	case !filepath.IsAbs(s.Path):
		return fmt.Errorf("path %q is not absolute", s.Path)
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("working directory %q is not absolute", s.Dir)
	case len(s.Args) == 0:
		return errors.New("no arguments: the first is the program's name")
	case size > maxSpec:
		return fmt.Errorf("arguments and environment have %d bytes, at most %d are allowed", size, maxSpec)
	case s.Memory < 0:
		return fmt.Errorf("memory limit is %d bytes, must not be negative", s.Memory)
	}
	return nil
}

// label makes a name fit for a process list and for a file name.
func label(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), maxName)]
}
