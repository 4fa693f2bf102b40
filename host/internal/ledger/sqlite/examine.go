package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

const (
	// examineTime bounds the look at the database at each start: about a gigabyte is
	// read in it.
	examineTime = 5 * time.Second
	// examineBrief is how much of it a start waits for after a host that closed the
	// database as it should: a crash is what damages one most.
	examineBrief = examineTime / 10
)

// closed reports whether the host before closed the database at path: else it left a
// write-ahead log. Nobody may have opened it since.
func closed(path string) bool {
	_, err := os.Stat(path + "-wal")
	return errors.Is(err, os.ErrNotExist)
}

// examine refuses a database that is damaged. Of a large one it sees a part, and if
// brief is not 0 that may be a small one: then left says that examineBeside is to look
// at more.
func (s *Store) examine(ctx context.Context, brief time.Duration) (left bool, err error) {
	if brief != 0 && !s.isCurrent(ctx) { // what is damaged must not be migrated
		brief = 0
	}
	patience := examineTime
	if brief != 0 {
		patience = brief
	}
	whole, err := s.look(ctx, s.admin, patience)
	return err == nil && !whole && brief != 0, err
}

// isCurrent reports whether the database has the schema of this program; false if that
// can't be read.
func (s *Store) isCurrent(ctx context.Context) bool {
	have, newest, err := schemas(ctx, s.admin)
	return err == nil && have == newest
}

// look examines the database for as long as patience lasts. whole is false if that was
// too short.
func (s *Store) look(ctx context.Context, d *sql.DB, patience time.Duration) (whole bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch err := examine(bounded, d, "quick_check"); {
	case err == nil:
		return true, nil
	case bounded.Err() == nil:
		return false, err
	case ctx.Err() == nil:
		if patience == examineTime {
			s.log.Info("the database is large: only a part of it was examined, doctor examines all", "for", patience.String())
		}
		return false, nil
	}
	return false, ctx.Err()
}

// examineBeside is examine while the host works, on a connection of its own. A database
// that is damaged is not written any more: Serve tells. The log that is left then makes
// the next start wait for all of its examination.
func (s *Store) examineBeside(ctx context.Context, path string, busy string) {
	d, err := openSQL(path, "ro", 1, busy, "query_only(1)")
	if err == nil {
		_, err = s.look(ctx, d, examineTime)
		err = errors.Join(err, d.Close())
	}
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ledger.ErrCorrupt):
		_ = s.changeBeside(func(*db.Queries) error { return s.w.giveUp(err) })
	default:
		s.log.Warn("database not examined", "error", err)
	}
}

// giveUp ends the writer for good, for a reason that was found by somebody else. It is
// run within a job.
func (w *writer) giveUp(why error) error {
	if w.broken == nil {
		w.broken = fmt.Errorf("%w: %w", ledger.ErrUnavailable, why)
		w.failed <- w.broken
	}
	return w.broken
}
