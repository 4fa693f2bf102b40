package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/ledgertest"
)

func TestContract(t *testing.T) {
	ledgertest.Run(t, func(t testing.TB) ledgertest.Kept {
		dir := t.TempDir()
		return ledgertest.Kept{
			Open: func(t testing.TB) ledgertest.Engine {
				s, err := Open(t.Context(), dir, Options{BusyTimeout: 50 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Refuse: func(t testing.TB) (resume func()) {
				other, err := sql.Open("sqlite", filepath.Join(dir, File)+"?_pragma=busy_timeout(10000)")
				if err != nil {
					t.Fatal(err)
				}
				other.SetMaxOpenConns(1)
				if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := other.Close(); err != nil { // which rolls back
						t.Error(err)
					}
				}
			},
		}
	})
}
