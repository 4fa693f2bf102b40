package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What is in the audit log stays there, whoever has the file.
func TestAuditOnlyGrows(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 3 {
		if err := s.Note(t.Context(), ledger.Change{Actor: fmt.Sprintf("actor-%d", i), Action: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, File)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, text := range []string{
		"UPDATE audit SET actor = 'x'", "UPDATE audit SET remote = 'x' WHERE id = 2", "DELETE FROM audit", "DELETE FROM audit WHERE id = 3",
		"REPLACE INTO audit (id, at, actor, action, target, detail) VALUES (2, 0, 'x', 'x', 'x', '{}')",
		"INSERT INTO audit (id, at, actor, action, target, detail) VALUES (2, 0, 'x', 'x', 'x', '{}') ON CONFLICT (id) DO UPDATE SET actor = 'x'",
		"UPDATE OR REPLACE audit SET id = 1 WHERE id = 3",
	} {
		if _, err := db.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", text, err)
		}
	}
	all, err := s.AuditAfter(context.Background(), ledger.AuditQuery{}, 0, 10)
	if err != nil || len(all) != 3 || all[1].Actor != "actor-1" || all[1].ID != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestAuditFilter(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000).UTC()
	var passed atomic.Int64 // minutes: others look at the clock too
	s, err := Open(t.Context(), t.TempDir(), Options{Now: func() time.Time { return start.Add(time.Duration(passed.Load()) * time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []ledger.Change{
		{Actor: "me", Via: "session:1", Remote: "192.0.2.1", Action: "channel.create", Target: "a"},
		{Actor: "me", Action: "channel.update", Target: "b", Before: []byte(`{"queue":false}`), After: []byte(`{"queue":true}`)},
		{Actor: "you", Action: "channels", Target: "a"}, {Actor: "you", Action: "channel", Target: "%"},
	} {
		if err := s.Note(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		passed.Add(1)
	}
	for name, c := range map[string]struct {
		want ledger.AuditQuery
		ids  string
	}{
		"all": {ledger.AuditQuery{}, "[4 3 2 1]"}, "actor": {ledger.AuditQuery{Actor: "me"}, "[2 1]"}, "noPattern": {ledger.AuditQuery{Actor: "%"}, "[]"}, "target": {ledger.AuditQuery{Target: "a"}, "[3 1]"},
		"action": {ledger.AuditQuery{Action: "channel.update"}, "[2]"}, "actions": {ledger.AuditQuery{Action: "channel"}, "[4 2 1]"}, "both": {ledger.AuditQuery{Action: "channel", Actor: "you"}, "[4]"},
		"since": {ledger.AuditQuery{Since: start.Add(time.Minute)}, "[4 3 2]"}, "until": {ledger.AuditQuery{Until: start.Add(time.Minute)}, "[1]"},
		"percent": {ledger.AuditQuery{Target: "%"}, "[4]"}, "quote": {ledger.AuditQuery{Target: "' OR 1=1 --"}, "[]"},
	} {
		var ids []int64
		found, err := s.Audit(t.Context(), c.want, 0, 10)
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		if got := fmt.Sprint(ids); err != nil || got != c.ids {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.ids)
		}
		up, err := s.AuditAfter(t.Context(), c.want, 0, 10)
		if err != nil || len(up) != len(found) || len(up) > 1 && up[0].ID > up[1].ID {
			t.Errorf("%s: the other way round: %+v, %v", name, up, err)
		}
	}
	found, err := s.Audit(t.Context(), ledger.AuditQuery{Action: "channel.update"}, 0, 1)
	if err != nil || string(found[0].Before) != `{"queue":false}` || string(found[0].After) != `{"queue":true}` {
		t.Errorf("got %+v, %v", found, err)
	}
}
