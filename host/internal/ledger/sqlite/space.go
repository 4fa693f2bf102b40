package sqlite

import (
	"fmt"
	"os"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// A part of the disk is kept back: for deletions, which need room too, and for
// whatever else lives there. Small disks keep back a share.
const (
	spareSpace = 64 << 20
	spareShare = 20 // a twentieth
)

// What a commit may take beyond what its messages say: pages of the tree that
// are written anew for each row, and for each commit.
const (
	rowSpace    = 512
	commitSpace = 32 << 10
	pageSpace   = 4 << 10 // of one page
)

// reclaimPause is the least time between two attempts to make room.
const reclaimPause = time.Second

// Space is the room for messages on the file system of a data directory, in bytes.
type Space struct {
	Free  uint64 // that may be written
	Spare uint64 // of it, kept back: messages are refused rather than stored there
	Total uint64
}

// SpaceIn tells of the file system that dir is on; errors.ErrUnsupported where
// the system doesn't say.
func SpaceIn(dir string) (Space, error) {
	free, total, err := diskSpace(dir)
	if err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return Space{Free: free, Spare: min(spareSpace, total/spareShare), Total: total}, nil
}

// RoomFor reports ErrFull if so many bytes more would leave less on the file
// system of dir than is kept back.
func RoomFor(dir string, bytes int64) error {
	s, err := SpaceIn(dir)
	if err != nil {
		return nil //nolint:nilerr // unknown: the system tells when it is full
	}
	return s.room(uint64(max(0, bytes)))
}

func (s Space) room(need uint64) error {
	if s.Free < s.Spare+need {
		return fmt.Errorf("%w: %d KiB are free, %d KiB of them are kept back", ledger.ErrFull, s.Free>>10, s.Spare>>10)
	}
	return nil
}

// need is what the units may take on the disk: each byte once in the
// write-ahead log and once in the database.
func need(units []*Unit) uint64 {
	all := commitSpace
	for _, u := range units {
		rows, bytes := u.size()
		all += 2*bytes + rows*rowSpace
	}
	return uint64(all)
}

// room reports ErrFull if what must be written would leave less than is kept
// back. Before that it empties the write-ahead log, which takes as much as the
// database grows by, but gives back its own size.
func (w *writer) room(need uint64) error {
	s, err := SpaceIn(w.dir)
	if err != nil {
		return nil //nolint:nilerr // unknown: SQLite tells when it is full
	}
	if s.Free >= s.Spare+need+w.logSize(s.Free) {
		return nil
	}
	if time.Since(w.reclaimed) >= reclaimPause {
		w.reclaimed = time.Now()
		if err := w.checkpoint(truncate); w.broken != nil {
			return err
		}
		if s, err = SpaceIn(w.dir); err != nil {
			return nil //nolint:nilerr // as above
		}
	}
	return s.room(need)
}

// logSize is the size of the write-ahead log, if that could count: most disks
// have far more room.
func (w *writer) logSize(free uint64) uint64 {
	if free > 1<<30 {
		return 0
	}
	info, err := os.Stat(w.path + "-wal")
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}
