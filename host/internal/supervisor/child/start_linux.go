package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killAnswer is what the shim gets to begin a kill. It is killed itself
	// after that, for it was stopped or worse.
	killAnswer = 1500 * time.Millisecond
	// endAnswer is what it gets to finish: a little over its own sweepLimit.
	endAnswer = sweepLimit + 500*time.Millisecond
	// lastBreath is what it gets to exit after its last report.
	lastBreath = time.Second
)

func start(s Spec) (*Child, error) {
	if s.NoShim {
		return startPlain(s)
	}
	return startShim(s, startTimeout)
}

// shimmed is the host's end of a shim.
type shimmed struct {
	shim    *os.Process
	begun   uint64 // when the shim was started, in ticks since boot
	control *os.File
	from    *json.Decoder
	pid     int // the program's
	cgroup  string
	pipes   []string // the program's output, as /proc names it

	termOnce, killOnce sync.Once

	mu     sync.Mutex
	ending bool // the shim has said so
}

func startShim(s Spec, within time.Duration) (*Child, error) {
	deadline := time.Now().Add(within)
	f, err := openFiles()
	if err != nil {
		return nil, err
	}
	h := &shimmed{control: f.control, from: json.NewDecoder(f.control), cgroup: newCgroup(s), pipes: f.pipes()}
	// A group of its own: what a terminal sends to the host's reaches neither
	// shim nor program; the host does the stopping. A plugin may stop its shim:
	// SIGCONT wakes it when the host dies. That the kernel wakes what it orphans
	// is not enough: not all threads may have stopped by then. Its stderr is the host's, so that a crash of the shim is seen; it
	// writes nothing else there.
	h.shim, err = os.StartProcess("/proc/self/exe", []string{shimTitle + label(s.Name)}, &os.ProcAttr{
		Dir: "/", Env: shimEnv(), Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT},
		Files: []*os.File{f.null, f.null, os.Stderr, f.shimControl, f.outWrite, f.errWrite},
	})
	f.closeGiven()
	if err != nil {
		f.closeKept()
		removeCgroup(h.cgroup)
		return nil, fmt.Errorf("start its shim: %w", err)
	}
	if st, ok := readStat(h.shim.Pid); ok {
		h.begun = st.start
	}
	began, err := h.launch(s, deadline)
	if err != nil {
		h.abandon()
		f.closeKept()
		return nil, err
	}
	h.pid = began.Pid
	c := &Child{Pid: began.Pid, Stdout: f.outRead, Stderr: f.errRead, Held: began.Held, proc: h, done: make(chan struct{})}
	go h.watch(c)
	return c, nil
}

// shimEnv is all of a shim's environment. The race detector, in a build that has
// it, would hold the shim for a second at its end.
func shimEnv() []string { return []string{"GORACE=atexit_sleep_ms=0"} }

// launch hands the spec to the shim and waits for the start.
func (h *shimmed) launch(s Spec, deadline time.Time) (*started, error) {
	if err := h.control.SetDeadline(deadline); err != nil {
		return nil, err
	}
	var r report
	err := send(h.control, newLaunch(s, h.cgroup))
	if err == nil {
		err = h.from.Decode(&r)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.New("its start hangs: not executed within the deadline")
	case err != nil:
		return nil, fmt.Errorf("its shim ended before it was started: %w", err)
	case r.Refused != nil:
		if info, err := os.Stat(s.Dir); err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("working directory %s: %w", s.Dir, syscall.ENOTDIR)
		}
		return nil, r.Refused
	case r.Started == nil:
		return nil, errors.New("its shim gave no account of the start")
	}
	return r.Started, h.control.SetDeadline(time.Time{})
}

// abandon ends a shim whose program was not started, or not in time.
func (h *shimmed) abandon() {
	_ = h.control.Close()
	h.await(lastBreath) // it sees the end of its control socket
	removeCgroup(h.cgroup)
}

// await waits for the shim's end, and forces it after a while.
func (h *shimmed) await(patience time.Duration) {
	force := time.AfterFunc(patience, func() { _ = h.shim.Kill() })
	defer force.Stop()
	_, _ = h.shim.Wait() // its exit status says nothing that its report did not
}

// watch owns the program's end: it reads the shim's last reports.
func (h *shimmed) watch(c *Child) {
	defer close(c.done)
	defer func() { _ = h.control.Close() }()
	for {
		var r report
		if err := h.from.Decode(&r); err != nil {
			c.exit = h.lost(err)
			return
		}
		if r.Ended != nil {
			c.exit = exitStatus(syscall.WaitStatus(r.Ended.Status))
			if r.Ended.Left != "" {
				c.exit.Err = fmt.Errorf("not killed: %s", r.Ended.Left)
			}
			h.await(lastBreath)
			return
		}
		if r.Ending {
			h.mu.Lock()
			h.ending = true
			_ = h.control.SetReadDeadline(time.Now().Add(endAnswer))
			h.mu.Unlock()
		}
	}
}

// lost is for a shim that was killed or does not answer: what can be found of
// the program's processes is killed from here.
func (h *shimmed) lost(why error) Exit {
	_ = h.shim.Kill()
	h.await(0)
	h.killStrays()
	removeCgroup(h.cgroup)
	if errors.Is(why, os.ErrDeadlineExceeded) {
		return Exit{Code: -1, Err: errors.New("its shim did not answer and was killed")}
	}
	return Exit{Code: -1, Err: ErrShimKilled}
}

func (h *shimmed) terminate() {
	h.termOnce.Do(func() { _ = send(h.control, orderTerminate) }) // an error: it is over
}

func (h *shimmed) kill() {
	h.killOnce.Do(func() {
		_ = send(h.control, orderKill)
		_ = h.shim.Signal(unix.SIGCONT) // a plugin may stop its shim
		h.mu.Lock()
		defer h.mu.Unlock()
		if !h.ending {
			_ = h.control.SetReadDeadline(time.Now().Add(killAnswer))
		}
	})
}

// files are what a start opens: the host's ends, and those that the shim gets.
type files struct {
	control, outRead, errRead             *os.File
	null, shimControl, outWrite, errWrite *os.File
}

func openFiles() (f *files, err error) {
	f = &files{}
	defer func() {
		if err != nil {
			f.closeGiven()
			f.closeKept()
		}
	}()
	if f.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if f.outRead, f.outWrite, err = os.Pipe(); err != nil {
		return nil, err
	}
	if f.errRead, f.errWrite, err = os.Pipe(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	f.control, f.shimControl = os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	return f, nil
}

// closeGiven closes what belongs to the shim. Closing a nil file only fails.
func (f *files) closeGiven() {
	for _, file := range []*os.File{f.null, f.shimControl, f.outWrite, f.errWrite} {
		_ = file.Close()
	}
}

func (f *files) closeKept() {
	for _, file := range []*os.File{f.control, f.outRead, f.errRead} {
		_ = file.Close()
	}
}

// pipes are the output pipes as /proc/PID/fd names them.
func (f *files) pipes() []string {
	var out []string
	for _, file := range []*os.File{f.outRead, f.errRead} {
		if info, err := file.Stat(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				out = append(out, fmt.Sprintf("pipe:[%d]", s.Ino))
			}
		}
	}
	return out
}
