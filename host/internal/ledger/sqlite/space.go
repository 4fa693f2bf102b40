package sqlite

import (
	"os"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/disk"
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

// need is what the units may take on the disk: each byte once in the
// write-ahead log and once in the database.
func need(units []unit) uint64 {
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
	s, err := disk.In(w.dir)
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
		if s, err = disk.In(w.dir); err != nil {
			return nil //nolint:nilerr // as above
		}
	}
	return s.Room(need + w.growth())
}

// growth is how much larger the database becomes when the write-ahead log, which could
// not be emptied or is filled anew, is moved into it; 0 if that can't be known: then
// SQLite tells when the disk is full.
func (w *writer) growth() uint64 {
	info, err := os.Stat(w.path)
	if err != nil {
		return 0
	}
	s, err := w.db.prepare("PRAGMA page_count")
	if err != nil {
		return 0
	}
	defer s.finalize()
	if found, err := s.next(); !found || err != nil {
		return 0
	}
	return uint64(max(0, s.getInt(0)*pageSpace-info.Size()))
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
