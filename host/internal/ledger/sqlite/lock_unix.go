//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory locks the directory itself; held is false if another process has
// locked it.
func lockDirectory(dir string) (unlock func() error, held bool, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, false, fmt.Errorf("open data directory: %w", err)
	}
	switch err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, false, d.Close()
	case err != nil: // a file system that locks files alone
		return func() error { return nil }, true, d.Close()
	}
	return d.Close, true, nil
}
