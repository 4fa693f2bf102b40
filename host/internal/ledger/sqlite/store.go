// Package sqlite keeps everything in one SQLite file: one writer with group
// commit, readers beside it. No SQL type leaves it.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver of the readers and of administrative changes

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/schema"
)

// File is the database's name in the data directory.
const File = "pontoon.db"

const (
	readers            = 4
	couriers           = 2
	defaultBusyTimeout = 2 * time.Second
	housekeeping       = time.Second     // how often the mark advances, and the broom looks what there is to do
	lookEvery          = time.Second / 4 // how often it is looked whether the database is still there
)

// Options are how a store is opened; the zero value is for production.
type Options struct {
	Log         *slog.Logger
	Now         func() time.Time // nil = time.Now
	BusyTimeout time.Duration    // how long a lock held by another program is waited for
	MaxBytes    int64            // that database and attachments may take: else the oldest messages go; 0 = any

	// BackUp is called before the schema of an existing database is changed;
	// if it fails nothing is changed. nil = no backup.
	BackUp func(ctx context.Context, schema int64) error

	// Names lists the attachments that a stored message names; nil = none. It
	// must not keep what it gets.
	Names func(parts, meta []byte) []string

	// Keys are files of the data directory that only a host which was there before
	// leaves: beside them a missing or empty database is refused.
	Keys []string

	// Sealing keeps secrets from whoever reads the file. The zero value leaves
	// them in clear: for tests and tools that store none.
	Sealing Sealing

	brief time.Duration // 0 = examineBrief; for tests
}

// Store is the database of one host. All methods are safe for concurrent use.
type Store struct {
	log    *slog.Logger
	now    func() time.Time
	unlock func() error // of the data directory
	admin  *sql.DB      // one connection, used on the writer's goroutine only
	read   *db.Queries
	readDB *sql.DB
	// walkers read the history, where every page counts.
	walkers *readerPool
	// couriers read what is to be delivered, or shown by itself.
	couriers *readerPool
	w        *writer
	open     *unfinished
	broom    *broom
	vault    vault
	// erased is set when messages were deleted: their words are to leave the index.
	erased atomic.Bool
	// searching is held by those who search.
	searching   chan struct{}
	deadCounter deadCounter

	mu     sync.Mutex // guards chains and files
	chains map[int64]*chain
	files  ledger.Files // nil = not known yet

	stop func()
	once sync.Once // of Close
	wg   sync.WaitGroup
}

// Open opens the database in dir and brings its schema up to date; dir is made
// if need be. It refuses a directory that another host uses and a schema newer
// than this program.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := &Store{log: o.Log, now: o.Now, chains: map[int64]*chain{}, searching: make(chan struct{}, searchers)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	if s.unlock, err = Lock(abs); err != nil {
		return nil, err
	}
	if err := s.start(ctx, filepath.Join(abs, File), o); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// place makes the file of the database unless it is there, and looks at its log.
func (s *Store) place(path string, o Options) (made os.FileInfo, err error) {
	if err := CheckThere(filepath.Dir(path), o.Keys); err != nil {
		return nil, err
	}
	// Made here, since the files that SQLite puts beside it take its mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	made, err = f.Stat()
	if err := errors.Join(err, f.Chmod(0o600), f.Close()); err != nil {
		return nil, fmt.Errorf("protect database: %w", err)
	}
	torn, err := checkLog(path)
	if torn && err == nil {
		s.log.Warn("the last transaction in the write-ahead log is not whole: the machine went down while it was written, or the file is damaged")
	}
	return made, err
}

func (s *Store) start(ctx context.Context, path string, o Options) error {
	made, err := s.place(path, o)
	if err != nil {
		return err
	}
	busy := fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())
	brief := time.Duration(0)
	if closed(path) {
		brief = cmp.Or(o.brief, examineBrief)
	}
	// The order counts: the lock must be waited for before the mode is asked for.
	// The writer alone moves the log into the database: it looks at the errors.
	if s.admin, err = openSQL(path, "rwc", 1, busy, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "wal_autocheckpoint(0)"); err != nil {
		return err
	}
	unseen, err := s.examine(ctx, brief)
	if err != nil {
		return err
	}
	if err := migrate(ctx, s.admin, o.BackUp, func() error { return fresh(path, o.Keys) }); err != nil {
		return err
	}
	if err := s.emptyLog(ctx); err != nil {
		return err
	}
	if s.vault, err = o.Sealing.open(ctx, db.New(s.admin)); err != nil {
		return err
	}
	if s.readDB, err = openSQL(path, "ro", readers, busy, "query_only(1)"); err != nil {
		return err
	}
	s.read = db.New(s.readDB)
	open := func() (*reader, error) {
		return openReader(path, fmt.Sprintf("busy_timeout=%d", o.BusyTimeout.Milliseconds()), "query_only=1")
	}
	s.walkers, s.couriers = newReaderPool(readers, open), newReaderPool(couriers, open)

	s.open = &unfinished{ids: map[ledger.MessageID]listed{}}
	s.w = &writer{
		wake: make(chan struct{}, 1), unfinished: s.open, admin: s.runAdmin, now: s.now, ids: ledger.IDs{Now: s.now}, names: o.Names, ahead: map[platformKey]bool{}, relisted: map[ledger.MessageID]bool{},
		health: health{log: s.log, dir: filepath.Dir(path), path: path, file: made, failed: make(chan error, 1)},
	}
	s.w.stats.Batch.OfSizes()
	s.broom = &broom{Store: s, max: o.MaxBytes, wake: make(chan struct{}, 1), blocked: map[int64]int64{}, days: newAlmanac(s.log, s.now)}
	if err := s.resume(ctx); err != nil {
		return err
	}
	s.w.db, err = openRaw(path, fmt.Sprintf("busy_timeout=%d", o.BusyTimeout.Milliseconds()), "synchronous=FULL", "foreign_keys=0")
	if err != nil {
		return fmt.Errorf("open database for writing: %w", err)
	}
	if err := s.w.prepare(); err != nil {
		return fmt.Errorf("prepare statements: %w", err)
	}
	if err := s.w.keepBeside(); err != nil {
		return err
	}
	if err := setMark(path); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	s.wg.Go(func() { s.w.serve(context.WithoutCancel(ctx)) })
	s.wg.Go(func() { s.keepHouse(ctx) })
	s.wg.Go(func() { s.broom.sweep(ctx) })
	s.erased.Store(true) // perhaps, by the process before
	s.wg.Go(func() { (&indexer{Store: s}).index(ctx) })
	if unseen {
		s.wg.Go(func() { s.examineBeside(ctx, path, busy) })
	}
	return nil
}

func openSQL(path, mode string, conns int, pragmas ...string) (*sql.DB, error) {
	d, err := openURL(path, url.Values{"mode": {mode}, "_pragma": pragmas, "_txlock": {"immediate"}})
	if err != nil {
		return nil, err
	}
	d.SetMaxOpenConns(conns)
	d.SetMaxIdleConns(conns)
	return d, nil
}

// openURL opens a database file with the driver's and SQLite's settings.
func openURL(path string, settings url.Values) (*sql.DB, error) {
	abs, err := filepath.Abs(path) // a url takes the first element of a relative one for a host
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return d, nil
}

func migrate(ctx context.Context, d *sql.DB, backUp func(context.Context, int64) error, fresh func() error) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if have == 0 { // there is nothing in it
		if err := fresh(); err != nil {
			return err
		}
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	if have > newest {
		return fmt.Errorf("database has schema %d, this program knows up to %d: run a newer pontoon or restore a backup", have, newest)
	}
	if 0 < have && have < newest && backUp != nil {
		if err := backUp(ctx, have); err != nil {
			return fmt.Errorf("database not migrated from schema %d to %d, since it could not be backed up: %w", have, newest, err)
		}
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return nil
}

// emptyLog moves the write-ahead log that migrations or a crash left into the
// database and gives its room back: on a small disk it would never be enough to do
// that later. On a full disk, or while another program reads, the log stays.
func (s *Store) emptyLog(ctx context.Context) error {
	_, err := s.admin.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if reason := fatality(err); reason != nil {
		return fmt.Errorf("move the write-ahead log into the database: %w: %w", reason, err)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("write-ahead log not moved into the database yet", "error", err)
	}
	return ctx.Err()
}

// Close writes what was accepted, and ends. Nothing may be appended any more. A
// second call does nothing.
func (s *Store) Close() (err error) {
	s.once.Do(func() { err = s.end() })
	return err
}

func (s *Store) end() error {
	s.stop()
	if err := s.saveMark(); err != nil {
		s.log.Warn("mark not saved", "error", err)
	}
	s.w.close()
	s.wg.Wait()
	return s.release()
}

func (s *Store) release() error {
	var errs []error
	for _, p := range []*readerPool{s.walkers, s.couriers} {
		if p != nil {
			p.close()
		}
	}
	// Closing would move the log into the database and remove it. After a sync
	// that failed only the next process can do that safely.
	if s.w != nil && s.w.db != nil && s.w.broken == nil {
		s.w.db.close()
	}
	for _, d := range []*sql.DB{s.readDB, s.admin} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	if s.w != nil {
		errs = append(errs, s.w.clearMark())
	}
	return errors.Join(append(errs, s.unlock())...)
}

// Append implements ledger.Log.
func (s *Store) Append(u *ledger.Unit, done func(ledger.Result)) {
	if !s.w.append(unit{u, done}) && done != nil {
		// In its own goroutine: the caller may hold what done needs.
		s.wg.Go(func() { done(ledger.Result{Err: fmt.Errorf("%w: the host is stopping", ledger.ErrUnavailable)}) })
	}
}

// Handled ends the turn of a message that has an answer: the answer itself is
// what marks it, so that nothing is written.
func (s *Store) Handled(id ledger.MessageID) { s.open.remove(id) }

// Writable reports whether a message of ordinary size could be committed now.
func (s *Store) Writable() error {
	return s.change(func(q *db.Queries) error {
		if err := s.w.watch(); err != nil {
			return err
		}
		if err := s.w.room(2 * commitSpace); err != nil || s.w.since.IsZero() {
			return err
		}
		return q.SetMark(context.Background(), int64(s.open.mark())) // the last commit failed: does one now?
	})
}

// NewID gives an id that no message has.
func (s *Store) NewID() ledger.MessageID {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.ids.Next()
}

// change runs fn in a transaction of its own on the writer's goroutine.
func (s *Store) change(fn func(*db.Queries) error) error { return s.w.submit(job{run: fn}) }

// changeBeside is change for what happens often and changes and deletes no row that
// is kept.
func (s *Store) changeBeside(fn func(*db.Queries) error) error {
	return s.w.submit(job{run: fn, beside: true})
}

func (s *Store) runAdmin(ctx context.Context, fn func(*db.Queries) error) error {
	tx, err := s.admin.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err = fn(db.New(tx)); err == nil {
		if err = tx.Commit(); err == nil {
			return nil
		}
	}
	if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
		err = errors.Join(err, rerr)
	}
	return err
}

// breaks reports whether err is a violation of the named unique column.
func breaks(err error, column string) bool {
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed") && strings.Contains(err.Error(), column)
}
