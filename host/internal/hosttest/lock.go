package hosttest

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // locks the database like another program

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// LockStore keeps the host of a data directory from writing, as another program might,
// until unlock is called or the test ends.
func LockStore(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.File)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if _, err := other.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = other.Close()
	})
	t.Cleanup(unlock)
	return unlock
}
