package connlog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// shelf keeps lines, unless it fails.
type shelf struct {
	lines []ledger.Connection
	fails error
}

func (s *shelf) AddConnections(_ context.Context, lines []ledger.Connection) error {
	if s.fails == nil {
		s.lines = append(s.lines, lines...)
	}
	return s.fails
}

// Lines keep their order over a disk that refuses them for a while; refusals that are alike
// are one line meanwhile; what is said is bounded.
func TestLog(t *testing.T) {
	kept := &shelf{fails: ledger.ErrUnavailable}
	l := New(kept, slog.New(slog.DiscardHandler), time.Now)
	turned := ledger.Connection{What: ledger.Turned, Remote: "127.0.0.1:1234", Why: "no"}
	l.Note(ledger.Connection{What: ledger.Attached, Remote: "[::1]:5"})
	l.Note(turned)
	turned.Remote = "127.0.0.1:1235" // a port tells nothing
	l.Note(turned)
	l.flush(t.Context())
	l.Note(ledger.Connection{What: ledger.Left, Why: strings.Repeat("é", 500) + "\xff"})
	l.Note(turned)
	kept.fails = nil
	l.Close(t.Context())
	var got []string
	for _, c := range kept.lines {
		got = append(got, fmt.Sprintf("%s %s %d %d", c.What, c.Remote, c.Count, len(c.Why)))
	}
	if want := "attached ::1 1 0, refused 127.0.0.1 2 2, left  1 255, refused 127.0.0.1 1 2"; strings.Join(got, ", ") != want {
		t.Errorf("found %s, want %s", strings.Join(got, ", "), want)
	}
	for range maxLines + 5 {
		l.Note(ledger.Connection{What: ledger.Attached})
	}
	if len(l.lines) != maxLines || l.leftOut != 5 {
		t.Errorf("%d wait and %d are left out", len(l.lines), l.leftOut)
	}
}
