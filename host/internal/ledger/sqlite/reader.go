package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// reader is a connection that walks the history. It is raw, since database/sql
// would prepare its statements anew for every page, and that costs more than
// the page. One goroutine uses it at a time, from take to give.
type reader struct {
	*raw
	begin, end                *stmt
	message, size, known, key *stmt
	life                      *stmt
}

func openReader(path string, pragmas ...string) (*reader, error) {
	c, err := openRaw(path, pragmas...)
	if err != nil {
		return nil, err
	}
	r := &reader{raw: c}
	for _, p := range []struct {
		dst **stmt
		sql string
	}{
		{&r.begin, "BEGIN"},
		{&r.end, "ROLLBACK"}, // nothing was written
		// Not the view: most pages have one conversation, whose key is looked up once.
		{&r.message, "SELECT id, channel, conversation, prev, prev_channel, direction, state, status, turn, reply_to, " +
			"text, parts, origin, meta, notes, reason, platform_id, handle, settled_at FROM message WHERE id = ?"},
		// The lengths are in a row's beginning: what a long row says is not read for them.
		{&r.size, "SELECT channel, prev, prev_channel, direction, octet_length(text) + coalesce(octet_length(parts), 0) + coalesce(octet_length(origin), 0) + " +
			"coalesce(octet_length(meta), 0) + coalesce(octet_length(notes), 0) FROM message WHERE id = ?"},
		{&r.known, "SELECT id, agent, muted, turns, head, last_in, last_out, offer FROM conversation WHERE channel = ? AND key = ?"},
		{&r.key, "SELECT key FROM conversation WHERE id = ?"},
		{&r.life, "SELECT at, what, detail FROM life WHERE message = ? ORDER BY id"},
	} {
		if *p.dst, err = c.prepare(p.sql); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func (r *reader) close() {
	for _, s := range []*stmt{r.begin, r.end, r.message, r.size, r.known, r.key, r.life} {
		if s != nil {
			s.finalize()
		}
	}
	r.raw.close()
}

// row reads one message, but for the key of its conversation; false if there is
// none.
func (r *reader) row(id int64) (e db.Entry, found bool, err error) {
	s := r.message
	s.int(id)
	defer s.again()
	if found, err = s.next(); !found {
		return e, false, err
	}
	return db.Entry{
		ID: s.getInt(0), Channel: s.getInt(1), Conversation: s.getInt(2), Prev: s.getInt(3), PrevChannel: s.getInt(4),
		Direction: s.getInt(5), State: s.getInt(6), Status: s.getInt(7), Turn: s.getInt(8), ReplyTo: s.getInt(9),
		Text: s.getText(10), Parts: s.getBlob(11), Origin: s.getBlob(12), Meta: s.getBlob(13), Notes: s.getBlob(14),
		Reason: s.getTextOrNull(15), PlatformID: s.getTextOrNull(16), Handle: s.getTextOrNull(17), SettledAt: s.getIntOrNull(18),
	}, true, nil
}

// measured is a message without what it says, and where it is in the log.
type measured struct {
	ledger.Heading
	prev, prevChannel int64
	direction         ledger.Direction
}

// measure reads what row would read, but for what the message says; false if there
// is none.
func (r *reader) measure(id int64) (m measured, found bool, err error) {
	s := r.size
	s.int(id)
	defer s.again()
	if found, err = s.next(); !found {
		return m, false, err
	}
	return measured{
		Heading: ledger.Heading{ID: ledger.MessageID(id), Channel: s.getInt(0), Size: int(s.getInt(4))},
		prev:    s.getInt(1), prevChannel: s.getInt(2), direction: ledger.Direction(s.getInt(3)),
	}, true, nil
}

// conversationKey is what the channel calls a conversation; "" = there is none.
func (r *reader) conversationKey(id int64) (string, error) {
	s := r.key
	s.int(id)
	defer s.again()
	if found, err := s.next(); !found {
		return "", err
	}
	return s.getText(0), nil
}

// conversation reads a conversation; false if there is none.
func (r *reader) conversation(channel int64, key string) (c db.Conversation, found bool, err error) {
	s := r.known
	s.int(channel)
	s.text(key)
	defer s.again()
	if found, err = s.next(); !found {
		return c, false, err
	}
	return db.Conversation{
		ID: s.getInt(0), Channel: channel, Key: key, Agent: s.getText(1), Muted: s.getInt(2), Turns: s.getInt(3),
		Head: s.getInt(4), LastIn: s.getInt(5), LastOut: s.getInt(6), Offer: s.getInt(7),
	}, true, nil
}

// lifeOf reads what happened to a message, in order.
func (r *reader) lifeOf(id int64) (out []ledger.Life, err error) {
	s := r.life
	s.int(id)
	defer s.again()
	for {
		if found, err := s.next(); !found {
			return out, err
		}
		out = append(out, ledger.Life{At: time.UnixMilli(s.getInt(0)).UTC(), What: s.getText(1), Detail: s.getText(2)})
	}
}

// next steps to the next row; false at the end. again must follow, also after
// an error.
func (s *stmt) next() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.fail(rc)
	}
}

// once steps, reports whether there was a row, and makes the statement ready again.
func (s *stmt) once() (bool, error) {
	defer s.again()
	return s.next()
}

// again makes the statement ready to be bound and stepped anew.
func (s *stmt) again() {
	sqlite3.Xsqlite3_reset(s.c.tls, s.p)
	s.n = 0
	s.c.arena.reset()
}

func (s *stmt) getInt(column int32) int64 {
	return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, column)
}

func (s *stmt) getIntOrNull(column int32) sql.NullInt64 {
	if sqlite3.Xsqlite3_column_type(s.c.tls, s.p, column) == sqlite3.SQLITE_NULL {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: s.getInt(column), Valid: true}
}

// peek is a column's bytes in SQLite's own memory, good until the next step.
func (s *stmt) peek(column int32) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, column)
	if p == 0 { // NULL, or empty
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, column))
}

func (s *stmt) getText(column int32) string { return string(s.peek(column)) }

func (s *stmt) getBlob(column int32) []byte { return append([]byte(nil), s.peek(column)...) }

func (s *stmt) getTextOrNull(column int32) sql.NullString {
	b := s.peek(column)
	return sql.NullString{String: string(b), Valid: b != nil}
}

// readerPool lends readers. They are opened when they are first needed, and
// again after one has failed.
type readerPool struct {
	open    func() (*reader, error)
	slots   chan *reader // nil = to be opened
	closing chan struct{}
	once    sync.Once
}

var errClosed = errors.New("the store is closed")

func newReaderPool(n int, open func() (*reader, error)) *readerPool {
	p := &readerPool{open: open, slots: make(chan *reader, n), closing: make(chan struct{})}
	for range n {
		p.slots <- nil
	}
	return p
}

// within lends fn a reader that sees one state of the database throughout.
func (p *readerPool) within(ctx context.Context, fn func(*reader) error) (err error) {
	if err := p.stopped(ctx); err != nil {
		return err
	}
	var r *reader
	select {
	case r = <-p.slots:
	case <-p.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		var failed *sqliteError
		if r != nil && errors.As(err, &failed) { // whatever it was, it need not last
			r.close()
			r = nil
		}
		p.slots <- r
	}()
	if r == nil {
		if r, err = p.open(); err != nil {
			return fmt.Errorf("open database: %w", err)
		}
	}
	if err := r.begin.run(); err != nil {
		return err
	}
	if err := fn(r); err != nil {
		return errors.Join(err, r.end.run())
	}
	return r.end.run()
}

// stopped is why a walk must end: ctx, or close.
func (p *readerPool) stopped(ctx context.Context) error {
	select {
	case <-p.closing:
		return errClosed
	default:
		return ctx.Err()
	}
}

// close ends what is being read, and waits for it.
func (p *readerPool) close() {
	p.once.Do(func() {
		close(p.closing)
		for range cap(p.slots) {
			if r := <-p.slots; r != nil {
				r.close()
			}
		}
	})
}
