package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

func (s *Store) audit(ctx context.Context, q *db.Queries, c ledger.Change) error {
	if c.Detail == nil {
		c.Detail = json.RawMessage("{}")
	}
	return q.InsertAudit(ctx, db.InsertAuditParams{
		At: s.now().UnixMilli(), Actor: c.Actor, Via: c.Via, Remote: c.Remote, Action: c.Action, Target: c.Target, Detail: string(c.Detail),
		Was: nullJSON(c.Before), Became: nullJSON(c.After),
		Subject: c.Subject, Version: c.Version,
	})
}

// Note adds a line to the audit log for what changed nothing else.
func (s *Store) Note(ctx context.Context, c ledger.Change) error {
	return s.change(func(q *db.Queries) error { return s.audit(ctx, q, c) })
}

// Audit reads up to n of the wanted changes, newest first, from before id; 0
// starts. See ledger.PageFull.
func (s *Store) Audit(ctx context.Context, want ledger.AuditQuery, before int64, n int) ([]ledger.Change, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	p := auditParams(want)
	p.Before, p.N = before, int64(n)
	rows, err := s.read.Audits(ctx, p)
	out, err := s.auditPage(ctx, auditRows(rows), err)
	slices.Reverse(out)
	return out, err
}

// AuditAfter reads up to n of the wanted changes, oldest first, from behind id. See
// ledger.PageFull.
func (s *Store) AuditAfter(ctx context.Context, want ledger.AuditQuery, after int64, n int) ([]ledger.Change, error) {
	p := auditParams(want)
	rows, err := s.read.AuditsAfter(ctx, db.AuditsAfterParams{
		After: after, Since: p.Since, Until: p.Until, Actor: p.Actor, Action: p.Action, Target: p.Target, N: int64(n),
	})
	return s.auditPage(ctx, auditRows(rows), err)
}

// auditRow is a change and how much it holds.
type auditRow struct{ ID, Size int64 }

func auditRows[T ~struct{ ID, Size int64 }](rows []T) []auditRow {
	out := make([]auditRow, len(rows))
	for i, r := range rows {
		out[i] = auditRow(r)
	}
	return out
}

// auditPage reads the first changes of a list, as much as a page may hold, oldest first.
func (s *Store) auditPage(ctx context.Context, list []auditRow, err error) ([]ledger.Change, error) {
	ids, size := []int64{}, int64(0)
	for _, r := range list {
		if size >= ledger.PageBytes {
			break
		}
		ids, size = append(ids, r.ID), size+r.Size
	}
	if err != nil || len(ids) == 0 {
		return changes(nil, err)
	}
	rows, err := s.read.AuditsAmong(ctx, ids)
	return changes(rows, err)
}

// ChangesSince reads up to n of the changes that a channel or an agent had since its
// row had a version, newest first.
func (s *Store) ChangesSince(ctx context.Context, subject string, version int64, n int) ([]ledger.Change, error) {
	rows, err := s.read.AuditsOfVersions(ctx, db.AuditsOfVersionsParams{Subject: subject, After: version, N: int64(n)})
	return changes(rows, err)
}

func auditParams(want ledger.AuditQuery) db.AuditsParams {
	p := db.AuditsParams{Until: math.MaxInt64, Actor: want.Actor, Action: want.Action, Target: want.Target}
	if !want.Since.IsZero() {
		p.Since = want.Since.UnixMilli()
	}
	if !want.Until.IsZero() {
		p.Until = want.Until.UnixMilli()
	}
	return p
}

func changes(rows []db.Audit, err error) ([]ledger.Change, error) {
	if err != nil {
		return nil, failed("read audit log", err)
	}
	out := make([]ledger.Change, len(rows))
	for i, r := range rows {
		out[i] = ledger.Change{
			ID: r.ID, At: time.UnixMilli(r.At).UTC(), Actor: r.Actor, Via: r.Via, Remote: r.Remote, Action: r.Action, Target: r.Target,
			Detail: json.RawMessage(r.Detail), Before: fromNullJSON(r.Was), After: fromNullJSON(r.Became),
			Subject: r.Subject, Version: r.Version,
		}
	}
	return out, nil
}

func nullJSON(b json.RawMessage) sql.NullString {
	return sql.NullString{String: string(b), Valid: b != nil}
}

func fromNullJSON(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}
