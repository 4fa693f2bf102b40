// Package disk tells how much room a file system has, and what of it is kept back.
package disk

import (
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A part of the disk is kept back: for deletions, which need room too, and for
// whatever else lives there. Small disks keep back a share.
const (
	spareSpace = 64 << 20
	spareShare = 20 // a twentieth
)

// Space is the room for messages on the file system of a data directory, in bytes.
type Space struct {
	Free  uint64 // that may be written
	Spare uint64 // of it, kept back: messages are refused rather than stored there
	Total uint64
}

// In tells of the file system that dir is on; errors.ErrUnsupported where
// the system doesn't say.
func In(dir string) (Space, error) {
	free, total, err := diskSpace(dir)
	if err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return Space{Free: free, Spare: min(spareSpace, total/spareShare), Total: total}, nil
}

// RoomFor reports ErrFull if so many bytes more would leave less on the file
// system of dir than is kept back.
func RoomFor(dir string, bytes int64) error {
	s, err := In(dir)
	if err != nil {
		return nil //nolint:nilerr // unknown: the system tells when it is full
	}
	return s.Room(uint64(max(0, bytes)))
}

// Of the disk uploads leave more free than messages do: a tenth, at most a gigabyte. So
// whoever may upload can't stop messages.
const (
	spareOfFiles = 1 << 30
	shareOfFiles = 10
)

// RoomForFiles is RoomFor for what is uploaded.
func RoomForFiles(dir string, bytes int64) error {
	s, err := In(dir)
	if err != nil {
		return nil //nolint:nilerr // unknown: the system tells when it is full
	}
	s.Spare = max(s.Spare, min(spareOfFiles, s.Total/shareOfFiles))
	return s.Room(uint64(max(0, bytes)))
}

// Room reports ledger.ErrFull if need bytes more would leave less than is kept back.
func (s Space) Room(need uint64) error {
	if s.Free < s.Spare+need {
		return fmt.Errorf("%w: %d KiB are free, %d KiB of them are kept back", ledger.ErrFull, s.Free>>10, s.Spare>>10)
	}
	return nil
}

// Sizes are what a database takes, and the room that is left beside it.
type Sizes struct {
	Database, WAL int64 // bytes of the files
	Space         Space // zero where the system does not say
}
