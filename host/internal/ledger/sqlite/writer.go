package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// Limits of one transaction, so that nobody waits long for a commit.
const (
	maxBatchRows  = 4096
	maxBatchBytes = 8 << 20
)

// writer owns the only connection that writes messages, and runs everything
// else that writes in between. One goroutine, serve, does all of it, but that a
// Leader may take its place while it waits.
type writer struct {
	db *raw

	inserts              inserter
	begin, commit, back  *stmt
	pend, unpend, settle *stmt
	status, fill         *stmt
	saveCursor           *stmt
	handle, life         *stmt
	repeat, there        *stmt // see lookAhead
	name, unname         *stmt
	names                func(parts, meta []byte) []string // see Options
	now                  func() time.Time
	addConversation      *stmt
	updateConversation   *stmt
	moveConversation     *stmt
	unfinished           *unfinished
	relisted             map[ledger.MessageID]bool // put on the pending list by this transaction, of which unfinished does not know yet
	busy                 []*conversation           // touched by this batch
	chains               []*chain                  // touched by this batch
	admin                func(context.Context, func(*db.Queries) error) error
	health               // of the disk
	pulse                pulse
	later                []ledger.Flusher // of the batch before, to be used again
	stats                tally.Storage
	lookups              lookups
	fates                []error              // of the units of a batch
	blamed               *ledger.Unit         // that the latest transaction failed at; nil = nobody knows
	wary                 int                  // batches that are looked at beforehand still
	ahead                map[platformKey]bool // of one batch; see lookAhead

	mu      sync.Mutex // guards what follows
	ids     ledger.IDs
	queue   []unit
	jobs    []job
	waiting bool // serve waits, and nobody is in its place
	untidy  bool // a Leader left the log to be tidied
	crowd   bool // the latest commits had more than one unit
	closed  bool
	wake    chan struct{} // capacity 1
}

// job is an administrative change, run between two batches.
type job struct {
	run    func(*db.Queries) error
	then   func() // on the writer's goroutine, once it is committed; nil = nothing
	beside bool   // see Store.changeBeside
	done   chan error
}

func (w *writer) prepare() (err error) {
	if err := w.prepareInserts(); err != nil {
		return err
	}
	for _, p := range []struct {
		dst **stmt
		sql string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.back, "ROLLBACK"},
		{&w.pend, "INSERT INTO pending (message, channel, kind, frame, tries) VALUES (?, ?, ?, ?, ?) " +
			"ON CONFLICT (message) DO UPDATE SET kind = excluded.kind, frame = excluded.frame, tries = excluded.tries"},
		{&w.unpend, "DELETE FROM pending WHERE message = ?"},
		{&w.settle, "UPDATE message SET state = ?, reason = ?, notes = coalesce(?, notes), settled_at = ? WHERE id = ?"},
		{&w.status, "UPDATE message SET status = ? WHERE id = ?"},
		{&w.fill, "UPDATE message SET status = ?, text = ?, parts = ?, meta = ? WHERE id = ?"},
		{&w.handle, "UPDATE message SET handle = ? WHERE id = ?"},
		{&w.life, "INSERT INTO life (message, at, what, detail) VALUES (?, ?, ?, ?)"},
		{&w.name, "INSERT OR IGNORE INTO attachment (path, message) VALUES (?, ?)"},
		{&w.unname, "DELETE FROM attachment WHERE message = ?"},
		{&w.saveCursor, "INSERT INTO cursor (channel, value) VALUES (?, ?) ON CONFLICT (channel) DO UPDATE SET value = excluded.value"},
		{&w.addConversation, "INSERT INTO conversation (agent, muted, turns, head, last_in, last_out, offer, id, channel, key) " +
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
		{&w.updateConversation, "UPDATE conversation SET agent = ?, muted = ?, turns = ?, head = ?, last_in = ?, last_out = ?, offer = ? " +
			"WHERE id = ?"},
		{&w.repeat, "SELECT 1 FROM message WHERE channel = ? AND platform_id = ?"},
		{&w.there, "SELECT 1 FROM message WHERE id = ?"},
		{&w.moveConversation, "UPDATE conversation SET turns = ?, head = ?, last_in = ?, last_out = ? WHERE id = ?"},
	} {
		if *p.dst, err = w.db.prepare(p.sql); err != nil {
			return err
		}
	}
	return nil
}

// append gives the unit's rows their ids, in queue order, which is commit order.
func (w *writer) append(u unit) bool {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return false
	}
	u.Identify(&w.ids)
	w.queue = append(w.queue, u)
	wake := w.waiting
	w.waiting = false
	w.mu.Unlock()
	if wake {
		w.wake <- struct{}{}
	}
	return true
}

// ownFirst gives a channel its first owner of this process; false if it had one.
func (w *writer) ownFirst(c *chain, t *ledger.Tail) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.epoch != 0 {
		return false
	}
	c.epoch, t.Epoch = 1, 1
	c.owner.Store(t)
	return true
}

// own gives a channel another owner, nil = none. It is run on the writer's goroutine.
func (w *writer) own(c *chain, t *ledger.Tail) {
	w.mu.Lock() // for ownFirst
	defer w.mu.Unlock()
	if c.epoch++; t != nil {
		t.Epoch = c.epoch
	}
	c.owner.Store(t)
}

// submit runs a job between two batches, and waits for it.
func (w *writer) submit(j job) error {
	j.done = make(chan error, 1)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return fmt.Errorf("%w: the host is stopping", ledger.ErrUnavailable)
	}
	w.jobs = append(w.jobs, j)
	wake := w.waiting
	w.waiting = false
	w.mu.Unlock()
	if wake {
		w.wake <- struct{}{}
	}
	return <-j.done
}

// serve writes until close and everything accepted before it is written.
func (w *writer) serve(ctx context.Context) {
	var spare []unit
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && len(w.jobs) == 0 && !w.untidy {
			if w.closed {
				w.mu.Unlock()
				return
			}
			w.waiting = true
			w.mu.Unlock()
			<-w.wake
			w.mu.Lock()
		}
		units, jobs, untidy := w.queue, w.jobs, w.untidy
		if len(units) > 0 {
			w.crowd = len(units) > 1
		}
		w.queue, w.jobs, w.untidy = spare[:0], nil, false
		w.mu.Unlock()

		if untidy {
			w.tidy()
		}
		for rest := units; len(rest) > 0; {
			n := batchLen(rest)
			w.write(rest[:n])
			rest = rest[n:]
		}
		for _, j := range jobs {
			j.done <- w.runJob(ctx, j)
		}
		clear(units)
		spare = units
	}
}

// runJob runs an administrative change, which SQLite lets through as long as
// there is any room.
func (w *writer) runJob(ctx context.Context, j job) error {
	if w.broken != nil {
		return w.broken
	}
	err := w.admin(ctx, j.run)
	if !j.beside {
		w.lookups.forget() // also if it failed: what became of it may be uncertain
	}
	if w.toSave {
		w.saveLog()
	}
	if err == nil && j.then != nil {
		j.then()
	}
	if failing(err) {
		err = w.trouble(err)
	}
	if w.changes++; w.broken == nil && w.changes >= tidyChanges {
		w.tidy()
	}
	return err
}

// close makes serve return once the queue is empty.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	wake := w.waiting
	w.waiting = false
	w.mu.Unlock()
	if wake {
		w.wake <- struct{}{}
	}
}
