package child

import (
	"encoding/json"
	"os"
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
	Pid     int
	LimitBy string
}

type refusal struct {
	Errno int
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
