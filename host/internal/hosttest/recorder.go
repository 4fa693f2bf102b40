package hosttest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Recorder keeps the host's log, for what leaves no other trace.
type Recorder struct {
	mu     sync.Mutex
	lines  []string
	errors []string // those of level error
	broken string   // a line that makes it panic
}

// Enabled, WithAttrs, WithGroup and Handle make it a slog.Handler. A line is the
// message with its attributes behind it.
func (r *Recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *Recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *Recorder) WithGroup(string) slog.Handler            { return r }
func (r *Recorder) Handle(_ context.Context, l slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := l.Message
	l.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	r.lines = append(r.lines, text)
	if l.Level >= slog.LevelError {
		r.errors = append(r.errors, text)
	}
	if r.broken != "" && strings.HasPrefix(text, r.broken) {
		r.broken = ""
		panic("the log is broken")
	}
	return nil
}

// PanicAt makes the next line with this prefix panic where it is logged, as a defect
// there would.
func (r *Recorder) PanicAt(prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = prefix
}

// Count is how many lines have the prefix.
func (r *Recorder) Count(prefix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, l := range r.lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

// Has reports whether a line begins with prefix and has text in it.
func (r *Recorder) Has(prefix, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, func(l string) bool { return strings.HasPrefix(l, prefix) && strings.Contains(l, text) })
}

// Text is all of it.
func (r *Recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// Errors are the lines of level error.
func (r *Recorder) Errors() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errors)
}
