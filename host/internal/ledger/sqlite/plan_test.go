package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// asked keeps the query that was asked last.
type asked struct {
	*sql.DB
	query string
	args  []any
}

func (a *asked) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	a.query, a.args = query, args
	return a.DB.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // who asked closes them
}

// What a host asks for each second goes through no table that all messages are in: with
// a million of them, that took a second of a processor each time.
func TestIndexRestsWhenNothingIsLate(t *testing.T) {
	a := &asked{DB: opened(t).readDB}
	if _, err := db.New(a).ToIndexLater(t.Context(), indexStep); err != nil {
		t.Fatal(err)
	}
	rows, err := a.Query("EXPLAIN QUERY PLAN "+a.query, a.args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(step + "\n")
	}
	if p := plan.String(); rows.Err() != nil || !strings.Contains(p, "SCAN l") || strings.Contains(p, "SCAN m") || strings.Contains(p, "TEMP B-TREE") {
		t.Errorf("planned, %v:\n%s", rows.Err(), p)
	}
}
