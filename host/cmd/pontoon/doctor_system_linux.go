package main

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clockKept reports whether the kernel's clock is disciplined by an NTP client.
func clockKept() (kept, known bool) {
	state, err := unix.Adjtimex(&unix.Timex{})
	return state != unix.TIME_ERROR, err == nil
}

// fileSystemOf is what kind of file system dir is on; "" = not known. fit is false
// where a database doesn't belong.
func fileSystemOf(dir string) (kind string, fit bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return "", true
	}
	switch uint32(s.Type) { //nolint:gosec // the numbers have 32 bits
	case unix.NFS_SUPER_MAGIC:
		return "nfs", false
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb", false
	case unix.V9FS_MAGIC:
		return "9p", false
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "tmpfs", false
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", true
	case unix.XFS_SUPER_MAGIC:
		return "xfs", true
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", true
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", true
	}
	return fmt.Sprintf("of type %#x", uint32(s.Type)), true //nolint:gosec // as above
}

// ours reports whether the file belongs to who runs this.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
