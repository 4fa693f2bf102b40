package hosttest

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // locks the database like another program

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// LockStore keeps the host of a data directory from writing, as another program might,
// until unlock is called or the test ends.
func LockStore(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", filepath.Join(dir, sqlite.File), await.Limit.Milliseconds()))
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
