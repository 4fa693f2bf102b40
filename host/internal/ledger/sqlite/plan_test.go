package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// planned keeps SQLite's plans of the queries that are asked.
type planned struct {
	*sql.DB
	steps []string
}

func (p *planned) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := p.DB.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		p.steps = append(p.steps, step)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return p.DB.QueryContext(ctx, query, args...)
}

// What a host asks for each second goes through no table that all messages are in: with
// a million of them, that took a second of a processor each time.
func TestIndexRestsWhenNothingIsLate(t *testing.T) {
	p := &planned{DB: opened(t).readDB}
	if _, err := db.New(p).ToIndexLater(t.Context(), indexStep); err != nil {
		t.Fatal(err)
	}
	if plan := strings.Join(p.steps, "\n"); !strings.Contains(plan, "SCAN l") || strings.Contains(plan, "SCAN m") || strings.Contains(plan, "TEMP B-TREE") {
		t.Errorf("planned:\n%s", plan)
	}
}
