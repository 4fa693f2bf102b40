package sqlite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// openMark is the end of a file's name beside the database which says that a host has
// it open, or did not close it: then the write-ahead log must be there.
const openMark = "-open"

// checkLog looks for damage of the write-ahead log that a host left which did not end as
// it should: SQLite reads it up to the first frame that is not whole, and says nothing of
// those behind it. No one may have the database open. torn reports that the last
// transaction alone is not whole: the machine may have gone down while it was written,
// and then nobody was told that it is stored.
//
// The format is that of https://sqlite.org/fileformat2.html#walformat.
func checkLog(path string) (torn bool, err error) {
	name := path + "-wal"
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, checkMark(path)
	}
	if err != nil {
		return false, fmt.Errorf("open write-ahead log: %w", err)
	}
	defer func() { _ = f.Close() }()
	bad, whole, err := readLog(bufio.NewReaderSize(f, 1<<20))
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %s: %w", ledger.ErrCorrupt, name, err)
	case whole >= 2: // the earlier of two was on disk before the later was begun
		return false, fmt.Errorf("%w: %s: frame %d is not whole, and %d transactions end behind it: they were stored, and can't be read. "+
			"Bring the file back; to go on without what it holds from there, delete this file and %s", ledger.ErrCorrupt, name, bad, whole, path+openMark)
	}
	return bad > 0, nil
}

// checkMark refuses a database whose write-ahead log is gone.
func checkMark(path string) error {
	if _, err := os.Lstat(path + openMark); err != nil {
		return nil //nolint:nilerr // it was closed, or a host of before made no mark
	}
	return fmt.Errorf("%w: %s-wal is missing, and no host has closed the database: what was stored last is in that file. "+
		"Bring it back; to go on without it, or if another program has opened the database since and closed it, delete %s", ledger.ErrCorrupt, path, path+openMark)
}

// walFrame is what is before each page in the log.
const walFrame = 24

// readLog reads a log as SQLite would. bad is the first frame that is not whole, from 1
// on; 0 = none. whole is how many transactions of this log end there or behind it.
func readLog(r io.Reader) (bad, whole int, err error) {
	head := make([]byte, 32)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, nil //nolint:nilerr // nothing is in it
	}
	big := binary.BigEndian
	var order binary.ByteOrder = binary.LittleEndian
	magic, page, salts := big.Uint32(head), big.Uint32(head[8:]), head[16:24]
	if magic&1 == 1 {
		order = big
	}
	var sum walSum
	sum.add(order, head[:24])
	frame := make([]byte, walFrame, walFrame+65536)
	if magic&^1 != 0x377f0682 || page < 512 || page > 65536 || page&(page-1) != 0 || !sum.is(head[24:]) {
		if _, err := io.ReadFull(r, frame); err != nil {
			return 0, 0, nil //nolint:nilerr // likewise
		}
		return 0, 0, errors.New("its head is not whole, and what is behind can't be read. Bring the file back, or restore a backup")
	}
	frame = frame[:walFrame+page]
	for n := 1; ; n++ {
		if _, err := io.ReadFull(r, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return bad, whole, nil
			}
			return 0, 0, err
		}
		mine, ends := bytes.Equal(frame[8:16], salts), big.Uint32(frame[4:]) != 0
		if bad == 0 {
			sum.add(order, frame[:8])
			sum.add(order, frame[walFrame:])
			if mine && big.Uint32(frame) != 0 && sum.is(frame[16:]) {
				continue
			}
			bad = n
		}
		if mine && ends {
			whole++
		}
	}
}

// walSum is the log's running checksum.
type walSum [2]uint32

func (s *walSum) add(order binary.ByteOrder, b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
}

func (s *walSum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == s[0] && binary.BigEndian.Uint32(b[4:]) == s[1]
}

// setMark says that a host has the database open.
func setMark(path string) error {
	f, err := os.OpenFile(path+openMark, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("mark the database as open: %w", err)
	}
	return nil
}

// clearMark says that the database is closed, if all that was stored is in it.
func (w *writer) clearMark() error {
	if !closed(w.path) || errors.Is(w.broken, ledger.ErrLost) {
		return nil
	}
	if err := os.Remove(w.path + openMark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("mark the database as closed: %w", err)
	}
	return nil
}
