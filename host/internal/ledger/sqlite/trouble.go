package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// checkpointPages is how long the write-ahead log may grow before it is moved
// into the database, in pages: SQLite's own default, and more gained nothing.
const checkpointPages = 1000

// health is what the writer knows of its disk. The writer's goroutine owns it.
type health struct {
	log       *slog.Logger
	dir       string      // the data directory
	path      string      // the database
	file      os.FileInfo // of it, as it was opened
	beside    []beside    // the files of SQLite beside it
	broken    error       // why nothing is written any more; nil = it is
	toSave    bool        // the log was deleted, and is to be moved into the database
	failed    chan error
	since     time.Time // when commits began to fail; zero = they work
	reclaimed time.Time // when the log was last emptied to make room
	pages     int32     // of the log, when it was last looked at
	due       int32     // at how many of them it is moved into the database
	changes   int       // administrative ones since then
}

// tidyChanges is after how many administrative changes the log is moved into
// the database: SQLite tells the length of the log to the writer's connection
// alone.
const tidyChanges = 16

// attempt commits the units, unless that must not or can't succeed.
func (w *writer) attempt(units []unit) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.room(need(units)); err != nil {
		return err
	}
	began := time.Now()
	err := w.transact(units)
	if err == nil {
		w.stats.Commits.Took(began)
		w.stats.Batch.Observe(int64(len(units)))
	}
	return err
}

// trouble is what others are told of a failed write: an error that wraps
// ErrUnavailable. After some errors it is the last that this process tried.
func (w *writer) trouble(err error) error {
	if w.broken != nil {
		return w.broken
	}
	fatal := fatality(err)
	switch {
	case fatal != nil:
		w.broken = fmt.Errorf("%w: %w: %w", ledger.ErrUnavailable, fatal, err)
		w.failed <- w.broken
		return w.broken
	case errors.Is(err, ledger.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
}

// fatality is the reason why a process must not write after err; nil = it may.
func fatality(err error) error {
	code, ok := resultCode(err)
	switch {
	case !ok:
		return nil
	case code == sqlite3.SQLITE_IOERR_FSYNC, code == sqlite3.SQLITE_IOERR_DIR_FSYNC:
		return ledger.ErrNotSynced
	case code&0xff == sqlite3.SQLITE_CORRUPT, code&0xff == sqlite3.SQLITE_NOTADB:
		return ledger.ErrCorrupt
	}
	return nil
}

// resultCode is SQLite's extended result code in an error of either connection.
func resultCode(err error) (code int32, ok bool) {
	var mine *sqliteError
	var driver *sqlite.Error
	switch {
	case errors.As(err, &mine):
		return mine.code, true
	case errors.As(err, &driver):
		return int32(driver.Code()), true
	}
	return 0, false
}

// note follows a batch: it says when the disk begins and ceases to refuse, and
// reports whether the write-ahead log is so long that it is to be tidied.
func (w *writer) note(err error) (untidy bool) {
	switch {
	case err != nil && w.since.IsZero():
		w.since = time.Now()
		w.stats.Failing.Store(true)
		w.log.Error("messages are not stored, and refused until the disk takes them again", "error", err)
	case err == nil && !w.since.IsZero():
		w.log.Info("messages are stored again", "after", time.Since(w.since).Round(time.Millisecond).String())
		w.since = time.Time{}
		w.stats.Failing.Store(false)
	}
	was := w.pages
	w.pages = *w.db.logPages()
	if w.pages < was || w.due == 0 { // it began anew
		w.due = checkpointPages
	}
	return w.broken == nil && w.pages >= w.due
}

// tidy moves the write-ahead log into the database, as far as readers let it.
// If they don't, the log goes on, and it is tried again after as many pages.
func (w *writer) tidy() {
	w.due, w.changes = w.pages+checkpointPages, 0
	if err := w.checkpoint(passive); err != nil {
		w.log.Warn("write-ahead log not moved into the database yet", "error", err)
	}
}

// checkpoint moves the write-ahead log into the database. That it is in use is
// no error. One of a sync counts like that of a commit: SQLite would take the
// pages for written the next time, and drop them from the log.
func (w *writer) checkpoint(mode checkpointMode) error {
	err := w.db.checkpoint(mode)
	if code, _ := resultCode(err); err == nil || code&0xff == sqlite3.SQLITE_BUSY || code&0xff == sqlite3.SQLITE_LOCKED {
		return nil
	}
	return w.trouble(err)
}

// failed is the error of something that was asked of the database: it wraps
// ErrUnavailable if the same may succeed later.
func failed(what string, err error) error {
	if failing(err) && !errors.Is(err, ledger.ErrUnavailable) {
		return fmt.Errorf("%s: %w: %w", what, ledger.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// failing reports whether err is the disk's or the database file's.
func failing(err error) bool {
	if errors.Is(err, ledger.ErrUnavailable) {
		return true
	}
	code, ok := resultCode(err)
	if !ok {
		return false
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// Serve waits for an error after which the store refuses everything for good,
// and returns it; nil once ctx ends. Reading goes on.
func (s *Store) Serve(ctx context.Context) error {
	select {
	case err := <-s.w.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
