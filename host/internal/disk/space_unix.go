//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// diskSpace is what of a directory's file system may be written yet, and its
// size, in bytes.
func diskSpace(dir string) (free, total uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(st.Bsize)
	return st.Bavail * block, st.Blocks * block, nil
}
