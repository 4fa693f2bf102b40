// Package connlog writes down who came to a channel or an agent, why it went, and who was
// not let in. Nobody waits for it: lines are written once a second, and those of the last
// second are lost with a host that is killed.
package connlog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

const (
	every    = time.Second
	maxLines = 20_000 // that wait to be written; those beyond are left out
	together = 200    // that one commit has: messages wait for it
)

// Store keeps the lines.
type Store interface {
	AddConnections(ctx context.Context, lines []ledger.Connection) error
}

// Log is the history of connections as it is written.
type Log struct {
	store Store
	log   *slog.Logger
	now   func() time.Time

	mu      sync.Mutex // guards what follows
	lines   []ledger.Connection
	like    map[ledger.Connection]int // where in lines those are that were turned away
	leftOut int
}

// New makes the log of a host. Serve must run.
func New(store Store, log *slog.Logger, now func() time.Time) *Log {
	return &Log{store: store, log: log, now: now}
}

// Note adds a line; of it Owner, What, Remote with or without a port, Credential, Code
// and Why count.
func (l *Log) Note(c ledger.Connection) {
	at := l.now()
	c.Remote, c.Why = host(c.Remote), clip(c.Why)
	l.mu.Lock()
	defer l.mu.Unlock()
	key := c
	if c.What == ledger.Turned {
		if i, ok := l.like[key]; ok {
			l.lines[i].Count++
			l.lines[i].Latest = at
			return
		}
	}
	if len(l.lines) >= maxLines {
		l.leftOut++
		return
	}
	c.At, c.Latest, c.Count = at, at, 1
	l.lines = append(l.lines, c)
	if c.What == ledger.Turned {
		if l.like == nil {
			l.like = map[ledger.Connection]int{}
		}
		l.like[key] = len(l.lines) - 1
	}
}

// Serve writes lines until ctx ends, and then what is left.
func (l *Log) Serve(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // Close writes the rest, once all have left
		case <-tick.C:
			l.flush(ctx)
		}
	}
}

// Close writes what is left.
func (l *Log) Close(ctx context.Context) { l.flush(ctx) }

func (l *Log) flush(ctx context.Context) {
	l.mu.Lock()
	lines, leftOut := l.lines, l.leftOut
	l.lines, l.like, l.leftOut = nil, nil, 0
	l.mu.Unlock()
	if leftOut > 0 {
		l.log.Warn("history of connections: too many at once, some left out", "count", leftOut)
	}
	for len(lines) > 0 {
		n := min(together, len(lines))
		if err := l.store.AddConnections(context.WithoutCancel(ctx), lines[:n]); err != nil {
			if !errors.Is(err, ledger.ErrUnavailable) { // who writes messages tells of that
				l.log.Warn("history of connections not written", "error", err)
			}
			l.back(lines)
			return
		}
		lines = lines[n:]
	}
}

// back puts lines back that were not written, as many as there is room for.
func (l *Log) back(lines []ledger.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := max(0, maxLines-len(l.lines))
	if len(lines) > room {
		l.leftOut += len(lines) - room
		lines = lines[:room]
	}
	for k := range l.like {
		l.like[k] += len(lines)
	}
	l.lines = append(lines, l.lines...)
}

// host is an address without its port.
func host(remote string) string {
	if a := netguard.Host(remote); a.IsValid() {
		return a.String()
	}
	return clip(remote)
}

// clip bounds what others say, in whole characters.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= ledger.MaxConnectionWhy {
		return s
	}
	cut := ledger.MaxConnectionWhy - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
