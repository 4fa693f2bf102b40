//go:build !linux

package child

func start(s Spec) (*Child, error) { return startPlain(s) }

// reap waits for the program's end. The group is killed after it, by a number
// that only members of the group still hold.
func (p *plain) reap() error {
	err := p.cmd.Wait()
	p.end()
	return err
}

// IsShim reports whether this process was started as a shim; here none is.
func IsShim() bool { return false }

// Shim is the whole life of the shim; here there is none.
func Shim() int { return 0 }

// Limiter says what a memory limit would be enforced by on this machine, and
// why not by something better, for `doctor`.
func Limiter() (by, why string) { return "none", "memory limits need Linux" }

// Sweep removes what hosts of this group left behind; here nothing can be.
func Sweep(string) error { return nil }

// landlockABI is the version of the kernel's Landlock; here there is none.
func landlockABI() int { return 0 }

// filters reports whether system calls are filtered; here none are.
const filters = false

// Guard keeps other processes of this user from looking into this one; here it can't.
func Guard() {}
