package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/schema"
)

// Inspection is what can be seen of a database without a host.
type Inspection struct {
	Bytes, WAL int64     // of the file, and of the log beside it
	Free       int64     // of Bytes: left by what was deleted, and to be written again
	Schema     int64     // 0 = not known
	Newest     int64     // schema that this program knows; 0 = not known
	NewestAt   time.Time // when the newest message was stored, by the clock of then; zero = there is none
	Dead       int64     // dead letters
	DeadMore   bool      // there are more, see DeadCounts.Whole
	Fault      error     // what is wrong with it; nil = nothing was found
	Cut        bool      // the check did not come to its end in time
	Behind     int64     // messages that the search index does not have yet, counted up to 100,000; -1 = not known
}

// inspectPause is how long after a look at the log another one confirms it.
const inspectPause = 200 * time.Millisecond

// Inspect looks at the database in dir and changes nothing, also while a host
// uses it. It reads all of it, for as long as patience lasts. The error is
// fs.ErrNotExist if there is none, and that of CheckThere.
func Inspect(ctx context.Context, dir string, keys []string, patience time.Duration) (Inspection, error) {
	i := Inspection{Behind: -1}
	if err := CheckThere(dir, keys); err != nil {
		return i, err
	}
	d, sizes, err := openInspected(dir)
	if err != nil {
		return i, err
	}
	defer func() { _ = d.Close() }()
	i.Bytes, i.WAL = sizes.Bytes, sizes.WAL
	if i.Fault = lookAtLog(filepath.Join(dir, File)); i.Fault == nil {
		i.Fault = i.look(ctx, d, patience)
	}
	if i.Fault == nil && i.Schema == 0 { // as migrate
		i.Fault = fresh(filepath.Join(dir, File), keys)
	}
	return i, nil
}

// lookAtLog is checkLog where a host may write to the log: what it is just writing looks
// otherwise a moment later.
func lookAtLog(path string) error {
	_, first := checkLog(path)
	if first == nil {
		return nil
	}
	time.Sleep(inspectPause)
	if _, err := checkLog(path); err != nil && err.Error() == first.Error() {
		return err
	}
	return nil
}

// openInspected opens the database in dir only to be read, so that nothing is left
// behind where nobody uses it.
func openInspected(dir string) (*sql.DB, Inspection, error) {
	var i Inspection
	path := filepath.Join(dir, File)
	info, err := os.Stat(path)
	if err != nil {
		return nil, i, fmt.Errorf("open database: %w", err)
	}
	i.Bytes = info.Size()
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(2000)", "query_only(1)"}}
	if log, err := os.Stat(path + "-wal"); err == nil {
		i.WAL = log.Size()
	} else if errors.Is(err, fs.ErrNotExist) {
		q.Set("immutable", "1") // nobody uses it: a reader would leave files behind
	}
	d, err := openURL(path, q)
	if err != nil {
		return nil, i, err
	}
	d.SetMaxOpenConns(1)
	return d, i, nil
}

func (i *Inspection) look(ctx context.Context, d *sql.DB, patience time.Duration) error {
	if err := d.QueryRowContext(ctx, "SELECT f.freelist_count * z.page_size FROM pragma_freelist_count f, pragma_page_size z").Scan(&i.Free); err != nil {
		return fmt.Errorf("database can't be read: %w", err)
	}
	var err error
	if i.Schema, i.Newest, err = schemas(ctx, d); err != nil {
		return err
	}
	if i.Schema == i.Newest { // an older one may not have what is asked for
		if err := i.lookInside(ctx, d); err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if i.Schema == i.Newest {
		n, _, err := behind(bounded, db.New(d))
		if err == nil {
			i.Behind = n
		} // else the check says what is wrong
	}
	err = examine(bounded, d, "quick_check")
	if bounded.Err() != nil && ctx.Err() == nil {
		i.Cut = true
		return nil
	}
	return err
}

func (i *Inspection) lookInside(ctx context.Context, d *sql.DB) error {
	var newest ledger.MessageID
	if err := d.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM message").Scan(&newest); err != nil {
		return fmt.Errorf("database can't be read: %w", err)
	}
	if newest > 0 {
		i.NewestAt = newest.Time()
	}
	dead, err := countDead(ctx, d, ledger.MaxDeadCounted)
	i.Dead, i.DeadMore = dead.Total(), !dead.Whole
	return err
}

// schemas are that of the database and the newest that this program knows.
func schemas(ctx context.Context, d *sql.DB) (have, newest int64, err error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, d, schema.SQLite)
	if err != nil {
		return 0, 0, fmt.Errorf("read migrations: %w", err)
	}
	// Not by goose, which would make its table where there is none.
	if err := d.QueryRowContext(ctx, "SELECT version_id FROM goose_db_version ORDER BY id DESC LIMIT 1").Scan(&have); err != nil {
		return 0, 0, fmt.Errorf("%s is no database of a host: %w", File, err)
	}
	sources := p.ListSources()
	return have, sources[len(sources)-1].Version, nil
}
