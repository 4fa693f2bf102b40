package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// SealAll seals what an older program stored in clear, and then writes the file
// anew, so that nothing of it is left in free pages; copies are databases that
// are treated alike. It is called before agents are read. A sweep that can't be
// done now is logged, and done at the next start.
func (s *Store) SealAll(ctx context.Context, copies []string) error {
	if s.vault.key == nil {
		return nil
	}
	sealed := 0
	if err := s.change(func(q *db.Queries) (err error) {
		sealed, err = s.vault.sealAgents(ctx, q)
		if err != nil || sealed == 0 {
			return err
		}
		return q.SetUnswept(ctx)
	}); err != nil {
		return fmt.Errorf("seal secrets of agents: %w", err)
	}
	if sealed > 0 {
		s.log.Info("secrets of agents sealed, which were stored in clear", "agents", sealed)
	}
	if unswept, err := s.read.Unswept(ctx); err != nil || unswept == 0 {
		return err
	}
	err := sweepFree(ctx, s.admin)
	for _, path := range copies {
		err = errors.Join(err, s.vault.sealCopy(ctx, path))
	}
	if err == nil {
		err = s.change(func(q *db.Queries) error { return q.DeleteUnswept(ctx) })
	}
	if err != nil {
		s.log.Warn("secrets may be left in clear in free pages of the database, or in a backup in the data directory: the next start tries again to sweep them", "error", err)
	}
	return nil
}

// sealAgents seals what is in clear, and says of how many agents.
func (v vault) sealAgents(ctx context.Context, q *db.Queries) (n int, err error) {
	err = eachAgent(ctx, q, func(row db.AgentConfigsRow) error {
		config, changed, err := v.sealLeft(row)
		if err != nil || !changed {
			return err
		}
		n++
		return q.SetAgentConfig(ctx, db.SetAgentConfigParams{Config: config, ID: row.ID})
	})
	return n, err
}

// sealCopy seals the secrets in a copy of the database, of whatever schema.
func (v vault) sealCopy(ctx context.Context, path string) error {
	d, err := openSQL(path, "rw", 1, "secure_delete(1)")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if there, err := has(ctx, d, "agent"); err != nil || !there {
		return err
	}
	n := 0
	err = inTx(ctx, d, func(q *db.Queries) (err error) {
		n, err = v.sealAgents(ctx, q)
		return err
	})
	if err == nil && n > 0 {
		_, err = d.ExecContext(ctx, "VACUUM")
	}
	if err != nil {
		return fmt.Errorf("seal secrets in %s: %w", path, err)
	}
	return nil
}

// sweepFree writes the database anew and empties its log: what was deleted or
// replaced is in neither any more.
func sweepFree(ctx context.Context, d *sql.DB) error {
	if _, err := d.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("write the database anew: %w", err)
	}
	var busy, pages, moved int
	if err := d.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return fmt.Errorf("empty the database's log: %w", err)
	}
	if busy != 0 {
		return errors.New("empty the database's log: somebody reads it")
	}
	return nil
}

func inTx(ctx context.Context, d *sql.DB, fn func(*db.Queries) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(db.New(tx)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// offline opens the database of dir, which the caller holds (see Lock), to change
// it. It must have the schema of this program.
func offline(ctx context.Context, dir string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(dir, File))
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	d, err := openSQL(path, "rw", 1, "busy_timeout(2000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "secure_delete(1)")
	if err != nil {
		return nil, err
	}
	have, newest, err := schemas(ctx, d)
	if err == nil && have != newest {
		err = fmt.Errorf("database has schema %d, this program needs %d: start the host once, which brings it up to date, or run a newer pontoon", have, newest)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Try counts what is sealed in the database of dir, which is not changed and
// which a host may use, and says if the key does not open it; nil only counts.
// There is no database: fs.ErrNotExist.
func Try(ctx context.Context, dir string, key Sealer) (sealed int, err error) {
	d, _, err := openInspected(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = d.Close() }()
	if there, err := has(ctx, d, "agent"); err != nil || !there {
		return 0, err
	}
	if sealed, err = tryAgents(ctx, db.New(d), key); err != nil {
		return sealed, err
	}
	if there, err := has(ctx, d, "secret"); err != nil || !there {
		return sealed, err
	}
	more, err := trySecrets(ctx, db.New(d), key)
	return sealed + more, err
}

func has(ctx context.Context, d *sql.DB, table string) (bool, error) {
	var n int
	if err := d.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", table).Scan(&n); err != nil {
		return false, fmt.Errorf("database can't be read: %w", err)
	}
	return n > 0, nil
}

// SecretNames are the names of the secrets in the database of dir, as Try sees it.
func SecretNames(ctx context.Context, dir string) ([]string, error) {
	d, _, err := openInspected(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	if there, err := has(ctx, d, "secret"); err != nil || !there {
		return nil, err
	}
	var names []string
	err = eachSecret(ctx, db.New(d), func(row db.Secret) error {
		names = append(names, row.Name)
		return nil
	})
	return names, err
}

// Reseal seals everything in the database of dir, which the caller holds, with
// another key: all of it or nothing. Then it calls changed, and sweeps what the
// former key opens from the file. Errors wrap seal.ErrKey if from is not the key.
func Reseal(ctx context.Context, dir string, from, to Sealer, by ledger.Change, changed func() error) (sealed int, err error) {
	d, err := offline(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	again := func(text, place string) (string, error) {
		clear, err := from.Open(text, place)
		if err != nil {
			return "", err
		}
		sealed++
		return to.Seal(clear, place)
	}
	err = inTx(ctx, d, func(q *db.Queries) error {
		err := eachAgent(ctx, q, func(row db.AgentConfigsRow) error {
			config, err := vault{}.each(row.Config, func(field string, value json.RawMessage) (json.RawMessage, error) {
				text, is := sealedText(value)
				if !is {
					return value, nil
				}
				if text, err = again(text, fieldPlace(row.Uid, field)); err != nil {
					return nil, err
				}
				return json.Marshal(sealedField{&text})
			})
			if err != nil {
				return err
			}
			return q.SetAgentConfig(ctx, db.SetAgentConfigParams{Config: config, ID: row.ID})
		})
		if err == nil {
			err = eachSecret(ctx, q, func(row db.Secret) error {
				text, err := again(row.Sealed, secretPlace(row.Name))
				if err != nil {
					return err
				}
				return q.SetSealed(ctx, db.SetSealedParams{Sealed: text, ID: row.ID})
			})
		}
		if err != nil {
			return err
		}
		return noteOffline(ctx, q, by)
	})
	if err != nil {
		return 0, fmt.Errorf("seal secrets again: %w", err)
	}
	if err := changed(); err != nil {
		return sealed, err
	}
	return sealed, sweepFree(ctx, d)
}

// Forget removes from the database of dir, which the caller holds, what the key
// does not open: nil opens nothing. With dry it only says what that is.
func Forget(ctx context.Context, dir string, key Sealer, by ledger.Change, dry bool) (forgotten []string, err error) {
	d, err := offline(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	lost := func(text, place string) bool {
		if key != nil {
			if _, err := key.Open(text, place); err == nil {
				return false
			}
		}
		forgotten = append(forgotten, place)
		return true
	}
	err = inTx(ctx, d, func(q *db.Queries) error {
		err := eachAgent(ctx, q, func(row db.AgentConfigsRow) error {
			config, err := vault{}.each(row.Config, func(field string, value json.RawMessage) (json.RawMessage, error) {
				if text, is := sealedText(value); is && lost(text, fieldPlace(row.Uid, field)) {
					forgotten[len(forgotten)-1] = "agent " + row.Name + ": " + field
					return nil, nil
				}
				return value, nil
			})
			if err != nil {
				return err
			}
			return q.SetAgentConfig(ctx, db.SetAgentConfigParams{Config: config, ID: row.ID})
		})
		if err == nil {
			err = eachSecret(ctx, q, func(row db.Secret) error {
				if !lost(row.Sealed, secretPlace(row.Name)) {
					return nil
				}
				forgotten[len(forgotten)-1] = "secret " + row.Name
				_, err := q.DeleteSecret(ctx, row.Name)
				return err
			})
		}
		if err != nil {
			return err
		}
		if dry {
			return errDry
		}
		if by.Detail, err = json.Marshal(map[string]any{"forgotten": forgotten}); err != nil {
			return err
		}
		return noteOffline(ctx, q, by)
	})
	if errors.Is(err, errDry) {
		return forgotten, nil
	}
	if err != nil {
		return nil, fmt.Errorf("forget secrets: %w", err)
	}
	return forgotten, sweepFree(ctx, d)
}

// errDry takes back what was only tried.
var errDry = errors.New("dry")

func noteOffline(ctx context.Context, q *db.Queries, c ledger.Change) error {
	return q.InsertAudit(ctx, db.InsertAuditParams{At: time.Now().UnixMilli(), Actor: c.Actor, Action: c.Action, Target: c.Target, Detail: string(c.Detail)})
}
