//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// owner is the user that a file belongs to.
func owner(f fs.FileInfo) (uid int, ok bool) {
	s, ok := f.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
