// Package logbound bounds what others can make the log grow by: what a line holds, and
// how many lines like it one source causes.
package logbound

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// What a line may hold, and how many there may be.
const (
	maxValue = 512      // bytes of a value of a line of DEBUG and INFO
	maxWorse = 4 << 10  // likewise of WARN and ERROR, which have causes
	maxStack = 16 << 10 // of a stack of ours

	ofSource = 50                     // lines of one kind that a source may cause at once …
	refill   = 200 * time.Millisecond // … and one more after each of this
	ofAll    = 2000                   // lines of one kind of all sources together …
	pauseAll = 10 * time.Millisecond  // … and one more after each of this

	tellAfter  = 10 * time.Second // the log says how many lines were left out, at the latest
	maxBuckets = 4096             // sources that are told apart
)

// sources are the attributes that say who caused a line.
var sources = map[string]bool{"channel": true, "remote": true, "agent": true, "plugin": true, "adapter": true, "owner": true}

// Handler clips what lines hold, and leaves out lines of which one source causes too
// many. The next line like them that is written says how many were left out; if there
// is none, a line of its own does.
type Handler struct {
	next   slog.Handler
	source string // by the attributes that it was given
	shared *buckets
}

// buckets count lines by their kind and source. All handlers of one log share them.
type buckets struct {
	now   func() time.Time
	after func(time.Duration, func()) // calls the function later

	mu sync.Mutex // guards what follows
	of map[key]*bucket
}

type key struct{ kind, source string }

// bucket is a token bucket, and what did not fit.
type bucket struct {
	left    float64
	at      time.Time
	missed  int
	waiting bool // somebody will tell of missed
}

// New bounds what next is given.
func New(next slog.Handler) *Handler {
	return newHandler(next, time.Now, func(d time.Duration, f func()) { time.AfterFunc(d, f) })
}

func newHandler(next slog.Handler, now func() time.Time, after func(time.Duration, func())) *Handler {
	return &Handler{next: next, shared: &buckets{now: now, after: after, of: map[key]*bucket{}}}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	clipped := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out.source += sourceOf(a)
		clipped[i] = clipAttr(a, maxValue)
	}
	out.next = h.next.WithAttrs(clipped)
	return &out
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	out := *h
	out.next = h.next.WithGroup(name)
	return &out
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	source := h.source
	r.Attrs(func(a slog.Attr) bool {
		source += sourceOf(a)
		return true
	})
	source = clip(source, maxValue)
	missed, ok := h.shared.take(key{r.Message, source}, func(missed int) { h.tell(ctx, &r, source, missed) })
	if !ok {
		return nil
	}
	most := maxValue
	if r.Level >= slog.LevelWarn {
		most = maxWorse
	}
	out := slog.NewRecord(r.Time, r.Level, clip(r.Message, most), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(clipAttr(a, most))
		return true
	})
	if missed > 0 {
		out.AddAttrs(slog.String("left_out", leftOut(missed)))
	}
	return h.next.Handle(ctx, out)
}

func leftOut(n int) string { return fmt.Sprintf("left out %d like this", n) }

// tell says what was left out, when no line like it came since.
func (h *Handler) tell(ctx context.Context, r *slog.Record, source string, missed int) {
	out := slog.NewRecord(h.shared.now(), r.Level, leftOut(missed), 0)
	out.AddAttrs(slog.String("like", clip(r.Message, maxValue)))
	if source != "" {
		out.AddAttrs(slog.String("of", strings.TrimSpace(source)))
	}
	_ = h.next.Handle(context.WithoutCancel(ctx), out) // nobody is there to be told
}

// take reports whether one more line may be written, and how many were left out before
// it. Of those that nothing follows, tell is called.
func (b *buckets) take(k key, tell func(missed int)) (missed int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.of) >= maxBuckets {
		b.forget()
	}
	if len(b.of) >= maxBuckets && b.of[k] == nil {
		k.source = "" // they share what is for all
	}
	all := b.find(key{k.kind, ""}, ofAll, pauseAll)
	one := all
	if k.source != "" {
		one = b.find(k, ofSource, refill)
	}
	if one.left >= 1 && all.left >= 1 {
		missed, one.missed = one.missed, 0
		if one.left--; one != all {
			all.left--
			missed += all.missed
			all.missed = 0
		}
		return missed, true
	}
	if all.left < 1 { // one line tells of all sources then
		one = all
	}
	one.missed++
	if !one.waiting {
		one.waiting = true
		b.after(tellAfter, func() { b.late(one, tell) })
	}
	return 0, false
}

// late tells of what was left out, unless a line that was written has.
func (b *buckets) late(one *bucket, tell func(int)) {
	b.mu.Lock()
	missed := one.missed
	one.missed, one.waiting = 0, false
	b.mu.Unlock()
	if missed > 0 {
		tell(missed)
	}
}

// find brings a bucket to what it holds now.
func (b *buckets) find(k key, most float64, pause time.Duration) *bucket {
	now, one := b.now(), b.of[k]
	if one == nil {
		one = &bucket{left: most, at: now}
		b.of[k] = one
	}
	one.left = min(most, one.left+float64(now.Sub(one.at))/float64(pause))
	one.at = now
	return one
}

// forget drops the buckets that are full again.
func (b *buckets) forget() {
	now := b.now()
	for k, one := range b.of {
		if !one.waiting && one.missed == 0 && now.Sub(one.at) >= ofSource*refill {
			delete(b.of, k)
		}
	}
}

// sourceOf is what an attribute says of who caused the line; an address without its
// port, which each connection has a new one of.
func sourceOf(a slog.Attr) string {
	if !sources[a.Key] {
		return ""
	}
	text := a.Value.Resolve().String()
	if a.Key == "remote" {
		if i := strings.LastIndexByte(text, ':'); i > 0 && (text[0] == '[' || strings.Count(text, ":") == 1) {
			text = text[:i]
		}
	}
	return " " + clip(text, maxValue)
}

// clipAttr is the attribute with at most so many bytes of each text in it.
func clipAttr(a slog.Attr, most int) slog.Attr {
	if a.Key == "stack" {
		most = maxStack
	}
	a.Key = clip(a.Key, maxValue)
	switch a.Value = a.Value.Resolve(); a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(clip(a.Value.String(), most))
	case slog.KindGroup:
		group := a.Value.Group()
		out := make([]slog.Attr, len(group))
		for i, g := range group {
			out[i] = clipAttr(g, most)
		}
		a.Value = slog.GroupValue(out...)
	case slog.KindAny:
		if text := fmt.Sprintf("%+v", a.Value.Any()); len(text) > most {
			a.Value = slog.StringValue(clip(text, most))
		}
	}
	return a
}

// clip is at most so many bytes of a text, and how many there were.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:end], len(s))
}
