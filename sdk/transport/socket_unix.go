//go:build unix

package transport

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// canReadNow says whether readNow works here.
const canReadNow = true

// readNow takes what the system has, for RawConn.Read: false if that is
// nothing, and it calls again when there is something.
func (s *socket) readNow(fd uintptr) bool {
	b := inputs.Get().(*[]byte)
	n, err := syscall.Read(int(fd), *b)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(int(fd), *b)
	}
	if n > 0 {
		s.input, s.rest, s.err = b, (*b)[:n], nil
		return true
	}
	inputs.Put(b)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false
	case err == nil:
		s.err = io.EOF
	default:
		s.err = os.NewSyscallError("read", err)
	}
	return true
}
