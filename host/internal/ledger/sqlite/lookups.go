package sqlite

import (
	"slices"
	"sync"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What is kept in memory of rows that requests look up. A lookup through database/sql
// prepares its statement anew, and costs as much as all else of a short request.
const (
	maxKept      = 4096    // rows of one kind
	maxKeptBytes = 4 << 20 // that they hold together, roughly
	keptOverhead = 256     // bytes of a row beside its texts
)

// lookups is what this process has read of rows that change seldom. The writer forgets
// all of it behind each administrative change, before it does anything else: so no
// kind of change can be left out, and nobody who was told of a change, or whose
// message was committed behind it, is given what was there before. Only a change
// that adds rows, or that touches none of these tables, may leave it: see
// Store.changeBeside. That a row is not there is never kept.
type lookups struct {
	channels    lookup[string, ledger.Channel] // by id or name, as it was asked for
	channelKeys lookup[int64, ledger.Channel]
	credentials lookup[credentialKey, ledger.Credential] // live ones alone
	threads     lookup[threadKey, string]
}

type credentialKey struct {
	kind ledger.CredentialKind
	hash string
}

type threadKey struct {
	channel, owner int64
	name           string
}

func (l *lookups) forget() {
	l.channels.forget()
	l.channelKeys.forget()
	l.credentials.forget()
	l.threads.forget()
}

// lookup is the rows of one kind, by what they are looked up by.
type lookup[K comparable, V any] struct {
	mu     sync.RWMutex // guards what follows
	rows   map[K]V
	bytes  int
	change uint64 // counts what was forgotten
}

// get is the row that is kept under k. change is for put.
func (s *lookup[K, V]) get(k K) (row V, ok bool, change uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	row, ok = s.rows[k]
	return row, ok, s.change
}

// put keeps a row that was read after get told change, unless rows were forgotten
// since: it may be from before that.
func (s *lookup[K, V]) put(k K, row V, size int, change uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size += keptOverhead; s.change != change || size > maxKeptBytes {
		return
	}
	if _, there := s.rows[k]; there { // two have read it
		return
	}
	if len(s.rows) >= maxKept || s.bytes+size > maxKeptBytes {
		s.rows, s.bytes = nil, 0
	}
	if s.rows == nil {
		s.rows = map[K]V{}
	}
	s.rows[k] = row
	s.bytes += size
}

func (s *lookup[K, V]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.bytes = nil, 0
	s.change++
}

// keptChannel is the channel that s keeps under k; else it is read, and kept. The
// caller may change what it gets.
func keptChannel[K comparable](s *lookup[K, ledger.Channel], k K, read func() (ledger.Channel, error)) (ledger.Channel, error) {
	c, ok, change := s.get(k)
	if !ok {
		var err error
		if c, err = read(); err != nil {
			return c, err
		}
		s.put(k, c, textBytes(c.ID, c.Name, c.Kind, c.Agent)+textBytes(c.Agents...)+textBytes(c.Accept...)+textBytes(c.Users...), change)
	}
	c.Agents, c.Accept, c.Users = slices.Clone(c.Agents), slices.Clone(c.Accept), slices.Clone(c.Users)
	return c, nil
}

// textBytes is what texts take, each with what points to it.
func textBytes(texts ...string) (n int) {
	for _, t := range texts {
		n += len(t) + 16
	}
	return n
}
