package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// killed is what the host before left in its data directory, which was killed when it had
// stored twenty messages, each in a transaction of its own.
func killed(t testing.TB) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir)
	_, chain := newChannel(t, s, "a")
	for i := range 20 {
		if err := commit(s, &ledger.Unit{Conversation: recalled(t, s, chain, "c"), In: &ledger.Row{State: ledger.Handled, Text: fmt.Sprint("message ", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	left := map[string][]byte{}
	if err := s.changeBeside(func(*db.Queries) error { // nobody writes meanwhile
		for _, end := range []string{"", "-wal", openMark} {
			b, err := os.ReadFile(filepath.Join(dir, File+end))
			if err != nil {
				return err
			}
			left[end] = b
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, File+openMark)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a database that was closed is marked as open: %v", err)
	}
	return left
}

func TestDamagedLog(t *testing.T) {
	left := killed(t)
	frame := walFrame + pageSpace
	last := len(left["-wal"]) - frame
	for name, c := range map[string]struct {
		change func(map[string][]byte)
		want   string // of the error; "" = it starts
		stored int
		torn   bool
	}{
		"as it was left":           {func(map[string][]byte) {}, "", 20, false},
		"a bit in a page":          {func(l map[string][]byte) { l["-wal"][32+walFrame+100] ^= 1 }, "frame 1 is not whole", 0, false},
		"a bit in a frame's head":  {func(l map[string][]byte) { l["-wal"][32+2*frame+9] ^= 1 }, "frame 3 is not whole", 0, false},
		"a bit in its head":        {func(l map[string][]byte) { l["-wal"][20] ^= 1 }, "its head is not whole", 0, false},
		"a bit in the newest page": {func(l map[string][]byte) { l["-wal"][last+walFrame+9] ^= 1 }, "", 19, true},
		"cut off in the newest":    {func(l map[string][]byte) { l["-wal"] = l["-wal"][:last+100] }, "", 19, false},
		"deleted":                  {func(l map[string][]byte) { delete(l, "-wal") }, "-wal is missing", 0, false},
		"deleted, and so meant":    {func(l map[string][]byte) { delete(l, "-wal"); delete(l, openMark) }, "", -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, all := t.TempDir(), map[string][]byte{}
			for end, b := range left {
				all[end] = bytes.Clone(b)
			}
			c.change(all)
			for end, b := range all {
				if err := os.WriteFile(filepath.Join(dir, File+end), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			inspected, err := Inspect(t.Context(), dir, nil, time.Minute)
			if err != nil || (inspected.Fault != nil) != (c.want != "") {
				t.Errorf("inspected: %v, %v", inspected.Fault, err)
			}
			var log bytes.Buffer
			s, err := Open(t.Context(), dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if c.want != "" {
				if !errors.Is(err, ledger.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("found %v, expected %q", err, c.want)
				}
				if b, err := os.ReadFile(filepath.Join(dir, File+"-wal")); !bytes.Equal(b, all["-wal"]) {
					t.Errorf("the log was changed: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := count(t, s); c.stored >= 0 && got != c.stored {
				t.Errorf("found %d messages, expected %d", got, c.stored)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "last transaction"); got != c.torn {
				t.Errorf("says %q", log.String())
			}
		})
	}
}

func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.readDB.QueryRowContext(context.Background(), "SELECT count(*) FROM message").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Logs that anybody may have written are read to their end, without a panic.
func FuzzReadLog(f *testing.F) {
	log := killed(f)["-wal"]
	if len(log) > 12*(walFrame+pageSpace) {
		log = log[:12*(walFrame+pageSpace)]
	}
	f.Add(log)
	f.Add(log[:40])
	f.Add(log[:32+walFrame+pageSpace])
	f.Fuzz(func(t *testing.T, b []byte) {
		bad, whole, err := readLog(bytes.NewReader(b))
		if frames := len(b) / walFrame; bad < 0 || bad > frames || whole > frames || bad == 0 && whole > 0 || err != nil && bad > 0 {
			t.Errorf("frame %d, %d transactions, %v", bad, whole, err)
		}
	})
}
