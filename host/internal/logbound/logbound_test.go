package logbound

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

type bed struct {
	*slog.Logger
	out  bytes.Buffer
	now  time.Time
	late []func()
}

func newBed() *bed {
	b := &bed{now: time.Unix(1000, 0)}
	text := slog.NewTextHandler(&b.out, &slog.HandlerOptions{Level: slog.LevelDebug})
	b.Logger = slog.New(newHandler(text, func() time.Time { return b.now }, func(_ time.Duration, f func()) { b.late = append(b.late, f) }))
	return b
}

func (b *bed) lines() []string {
	defer b.out.Reset()
	return strings.Split(strings.TrimSuffix(b.out.String(), "\n"), "\n")
}

func TestClipped(t *testing.T) {
	b := newBed()
	long := strings.Repeat("é", 100_000)
	b.With("with", long).WithGroup("g").Info("m"+long, "text", long, "list", []string{"a", long}, slog.Group("in", "text", long), "error", errors.New(long), "n", 7)
	line := b.lines()[0]
	if len(line) > 8*maxValue || !strings.Contains(line, "g.n=7") || strings.Count(line, "… (200000 bytes)") != 4 || strings.Contains(line, "�") {
		t.Errorf("%d bytes: %s", len(line), line)
	}
	b.Error("m", "stack", long, "error", long)
	if line := b.lines()[0]; len(line) > maxStack+maxWorse+200 || len(line) < maxStack+maxWorse {
		t.Errorf("an error has %d bytes", len(line))
	}
	b.Info("m", "text", "short", "list", []string{"a"})
	if line := b.lines()[0]; !strings.HasSuffix(line, `msg=m text=short list=[a]`) {
		t.Error(line)
	}
}

// One source's lines are left out beyond its share, and counted; others' are not.
func TestLeftOut(t *testing.T) {
	b := newBed()
	for i := range 1000 {
		b.Info("adapter attached", "channel", "loud", "remote", fmt.Sprintf("127.0.0.1:%d", i))
	}
	if n := len(b.lines()); n != ofSource {
		t.Errorf("%d lines of one source, expected %d", n, ofSource)
	}
	b.Info("adapter attached", "channel", "quiet", "remote", "127.0.0.1:5")
	b.Info("adapter detached", "channel", "loud", "remote", "127.0.0.1:5")
	if lines := b.lines(); len(lines) != 2 || strings.Contains(lines[0]+lines[1], "left out") {
		t.Errorf("other lines: %q", lines)
	}
	b.now = b.now.Add(refill)
	b.Info("adapter attached", "channel", "loud", "remote", "127.0.0.1:6")
	if lines := b.lines(); len(lines) != 1 || !strings.Contains(lines[0], `left_out="left out 950 like this"`) {
		t.Errorf("the next line: %q", lines)
	}
	for range 3 {
		b.Info("adapter attached", "channel", "loud", "remote", "127.0.0.1:7")
	}
	if len(b.late) != 1 {
		t.Fatalf("%d wait to tell, expected one", len(b.late))
	}
	b.late[0]()
	if lines := b.lines(); len(lines) != 1 || !strings.Contains(lines[0], `msg="left out 3 like this" like="adapter attached" of="loud 127.0.0.1"`) {
		t.Errorf("when nothing follows: %q", lines)
	}
}

// Many sources together are bounded too, and so is what is kept of them.
func TestManySources(t *testing.T) {
	b := newBed()
	for i := range 2 * maxBuckets {
		b.Warn("refused", "remote", fmt.Sprintf("[2001:db8::%x]:9", i))
	}
	if n := len(b.lines()); n != ofAll {
		t.Errorf("%d lines, expected %d", n, ofAll)
	}
	h := b.Handler().(*Handler)
	if n := len(h.shared.of); n > maxBuckets+1 {
		t.Errorf("%d sources are kept", n)
	}
	if len(b.late) != 1 {
		t.Errorf("%d wait to tell, expected one", len(b.late))
	}
	for _, f := range b.late {
		f()
	}
	b.now = b.now.Add(time.Hour)
	b.Warn("refused", "remote", "192.0.2.1")
	if n := len(h.shared.of); n > 2 {
		t.Errorf("%d sources are kept after an hour", n)
	}
}
