// Package store keeps everything in one SQLite file: one writer with group
// commit, readers beside it. No SQL type leaves it.
package store

import (
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
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver of the readers and of administrative changes

	"github.com/pontoon-bridge/pontoon/host/internal/store/db"
	"github.com/pontoon-bridge/pontoon/schema"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// File is the database's name in the data directory.
const File = "pontoon.db"

const (
	readers            = 4
	defaultBusyTimeout = 2 * time.Second
	housekeeping       = time.Second // how often the mark advances and deleted channels are swept
)

// Options are how a store is opened; the zero value is for production.
type Options struct {
	Log         *slog.Logger
	Now         func() time.Time // nil = time.Now
	BusyTimeout time.Duration    // how long a lock held by another program is waited for
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
	w       *writer
	open    *unfinished

	mu     sync.Mutex // guards chains
	chains map[int64]*Chain

	stop func()
	wg   sync.WaitGroup
}

// Open opens the database in dir and brings its schema up to date; dir is made
// if need be. It refuses a directory that another host uses and a schema newer
// than this program.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := &Store{log: o.Log, now: o.Now, chains: map[int64]*Chain{}}
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

func (s *Store) start(ctx context.Context, path string, o Options) error {
	// Made here, since the files that SQLite puts beside it take its mode.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("protect database: %w", err)
	}
	busy := fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())
	// The order counts: the lock must be waited for before the mode is asked for.
	if s.admin, err = openSQL(path, "rwc", 1, busy, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"); err != nil {
		return err
	}
	if err := migrate(ctx, s.admin); err != nil {
		return err
	}
	if s.readDB, err = openSQL(path, "ro", readers, busy, "query_only(1)"); err != nil {
		return err
	}
	s.read = db.New(s.readDB)
	s.walkers = newReaderPool(readers, func() (*reader, error) {
		return openReader(path, fmt.Sprintf("busy_timeout=%d", o.BusyTimeout.Milliseconds()), "query_only=1")
	})

	s.open = &unfinished{ids: map[MessageID]struct{}{}}
	s.w = &writer{wake: make(chan struct{}, 1), unfinished: s.open, admin: s.runAdmin, now: s.now, ids: ids{now: s.now}}
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	s.wg.Go(func() { s.w.serve(context.WithoutCancel(ctx)) })
	s.wg.Go(func() { s.keepHouse(ctx) })
	return nil
}

func openSQL(path, mode string, conns int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_txlock": {"immediate"}}
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	d, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d.SetMaxOpenConns(conns)
	d.SetMaxIdleConns(conns)
	return d, nil
}

func migrate(ctx context.Context, d *sql.DB) error {
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.Migrations)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; have > newest {
		return fmt.Errorf("database has schema %d, this program knows up to %d: run a newer pontoon or restore a backup", have, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return nil
}

// resume finds where the log ends and which turns were left open.
func (s *Store) resume(ctx context.Context) error {
	newest, err := s.read.NewestMessage(ctx)
	if err != nil {
		return fmt.Errorf("read end of the log: %w", err)
	}
	s.w.ids.last = MessageID(newest)
	s.open.last = MessageID(newest)
	if err := s.breakStreams(ctx); err != nil {
		return err
	}
	if _, err := db.New(s.admin).RequeueUnacknowledged(ctx, db.RequeueUnacknowledgedParams{Queued: int64(Queued), Sent: int64(Sent)}); err != nil {
		return fmt.Errorf("queue what was not acknowledged: %w", err)
	}
	return s.eachUnanswered(ctx, func(e Entry) error {
		s.open.add(e.ID)
		return nil
	})
}

// breakStreams ends the answers that were being made when the host stopped.
func (s *Store) breakStreams(ctx context.Context) error {
	after, err := s.read.Mark(ctx)
	if err != nil {
		return fmt.Errorf("read mark: %w", err)
	}
	_, err = db.New(s.admin).BreakStreams(ctx, db.BreakStreamsParams{
		Broken: statusNumber(message.StatusError), After: after, Streaming: statusNumber(message.StatusStreaming),
	})
	if err != nil {
		return fmt.Errorf("end broken answers: %w", err)
	}
	return nil
}

// Close writes what was accepted, and ends. Nothing may be appended any more.
func (s *Store) Close() error {
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
	if s.walkers != nil {
		s.walkers.close()
	}
	if s.w != nil && s.w.db != nil {
		s.w.db.close()
	}
	for _, d := range []*sql.DB{s.readDB, s.admin} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(append(errs, s.unlock())...)
}

// Append queues the unit for the next commit; see Unit.Done. The rows have
// their ids when it returns. It never blocks.
func (s *Store) Append(u *Unit) {
	if !s.w.append(u) && u.Done != nil {
		// In its own goroutine: the caller may hold what Done needs.
		s.wg.Go(func() { u.Done(Result{Err: fmt.Errorf("%w: the host is stopping", ErrUnavailable)}) })
	}
}

// Handled ends the turn of a message that has an answer: the answer itself is
// what marks it, so that nothing is written.
func (s *Store) Handled(id MessageID) { s.open.remove(id) }

// Writable reports whether a commit works now.
func (s *Store) Writable() error {
	return s.change(func(*db.Queries) error { return nil })
}

// NewID gives an id that no message has.
func (s *Store) NewID() MessageID {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.ids.next()
}

// change runs fn in a transaction of its own on the writer's goroutine.
func (s *Store) change(fn func(*db.Queries) error) error { return s.w.submit(fn) }

func (s *Store) runAdmin(ctx context.Context, fn func(*db.Queries) error) error {
	tx, err := s.admin.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	err = fn(db.New(tx))
	if err == nil {
		if err = tx.Commit(); err == nil {
			return nil
		}
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
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
