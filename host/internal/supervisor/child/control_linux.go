package child

import (
	"encoding/json"
	"os"
	"syscall"
)

// What host and shim say to each other over the control socket: JSON values, one
// to a line. The host begins with one launch. Text that a user chose is
// bytes, since it need not be UTF-8.

// launch is what the shim is to start.
type launch struct {
	Path   []byte
	Args   [][]byte
	Env    [][]byte
	Dir    []byte
	Memory int64  // bytes; 0 = no limit
	Cgroup string // of the plugin's own, with its limits set; "" = none

	Sandbox     Sandbox // without its paths, which are these
	Read, Write [][]byte
	Shim        int // pid of the shim, in what it hands on
}

// newLaunch is what the shim of a program is told.
func newLaunch(s Spec, cgroup string) launch {
	l := launch{
		Path: []byte(s.Path), Args: byteSlices(s.Args), Env: byteSlices(s.Env), Dir: []byte(s.Dir),
		Memory: s.Memory, Cgroup: cgroup, Sandbox: s.Sandbox, Read: byteSlices(s.Sandbox.Read), Write: byteSlices(s.Sandbox.Write),
	}
	l.Sandbox.Read, l.Sandbox.Write = nil, nil
	return l
}

// An order is what the host wants done.
type order string

const (
	orderTerminate order = "terminate"
	orderKill      order = "kill"
)

// report is what the shim tells. One field is set.
type report struct {
	Refused *refusal `json:",omitempty"` // it could not be started; the last report
	Started *started `json:",omitempty"`
	Ending  bool     `json:",omitempty"` // the killing has begun, ended follows
	Ended   *ended   `json:",omitempty"` // the last report
}

type started struct {
	Pid  int
	Held Held
}

// refusal is why there is no program.
type refusal struct {
	Errno int    // 0 = the system did not say no
	What  string // was refused; "" = the program's execution
}

// Error implements error.
func (r *refusal) Error() string {
	switch {
	case r.Errno == 0:
		return r.What
	case r.What == "":
		return syscall.Errno(r.Errno).Error()
	}
	return r.What + ": " + syscall.Errno(r.Errno).Error()
}

// Unwrap makes errors.Is know the system's error.
func (r *refusal) Unwrap() error {
	if r.Errno == 0 {
		return nil
	}
	return syscall.Errno(r.Errno)
}

type ended struct {
	Status uint32 // as wait4 gives it
	Left   string // what could not be killed; "" = nothing
}

// send writes one value at once.
func send(f *os.File, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n')) // a reader of a string waits for what follows it
	return err
}

func byteSlices(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func texts(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
