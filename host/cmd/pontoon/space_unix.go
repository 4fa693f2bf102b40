//go:build linux || darwin || freebsd

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeSpace is how many bytes may be written in a directory's file system.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("ask for free space: %w", err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
