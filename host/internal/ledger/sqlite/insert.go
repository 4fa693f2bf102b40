package sqlite

import (
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// insertRows is how many rows one INSERT carries; more gained nothing.
const insertRows = 16

// Columns of an INSERT, in the order in which bind fills them. Each costs SQLite
// an instruction or two a row, and the id a search: so they are left out where
// they can be.
const (
	idColumn     = "id, "
	usualColumns = "channel, conversation, prev, prev_channel, direction, state, turn, reply_to, text, origin"
	rareColumns  = ", parts, meta, notes, reason, platform_id"
)

// inserter writes messages, as many as it can in one statement.
type inserter struct {
	one  insertStmt
	many [4]insertStmt // see variant

	rows [insertRows]placed // that wait to be written
	n    int

	single bool // one row a statement, to see which one is refused

	last ledger.MessageID // written last in this transaction; 0 = none yet
}

// insertStmt is an INSERT with all columns or without some.
type insertStmt struct {
	*stmt
	ids, rare bool // has them
}

func variant(ids, rare bool) int {
	v := 0
	if ids {
		v = 1
	}
	if rare {
		v += 2
	}
	return v
}

func (w *writer) prepareInserts() error {
	prepare := func(ids, rare bool, rows int) (insertStmt, error) {
		columns := usualColumns
		if ids {
			columns = idColumn + columns
		}
		if rare {
			columns += rareColumns
		}
		row := ",(?" + strings.Repeat(",?", strings.Count(columns, ",")) + ")"
		s, err := w.db.prepare("INSERT OR FAIL INTO message (" + columns + ") VALUES " + strings.Repeat(row, rows)[1:])
		return insertStmt{s, ids, rare}, err
	}
	var err error
	for _, ids := range []bool{false, true} {
		for _, rare := range []bool{false, true} {
			if w.inserts.many[variant(ids, rare)], err = prepare(ids, rare, insertRows); err != nil {
				return err
			}
		}
	}
	w.inserts.one, err = prepare(true, true, 1)
	return err
}

// add takes one row more, and writes when there are enough of them.
func (w *writer) add(p placed) error {
	in := &w.inserts
	if in.single {
		return w.addOne(p)
	}
	in.rows[in.n] = p
	if in.n++; in.n < insertRows {
		return nil
	}
	in.n = 0
	next, follow, rare := in.last+1, in.last > 0, false
	for i := range in.rows {
		r := in.rows[i].row
		follow = follow && r.ID == next
		next++
		rare = rare || !usual(r)
	}
	s := in.many[variant(!follow, rare)]
	for i := range in.rows {
		w.bind(s, in.rows[i])
	}
	if err := s.run(); err != nil {
		return err
	}
	in.last = in.rows[insertRows-1].row.ID
	// Without an id SQLite gives the one behind the largest, which is ours
	// unless somebody else wrote to the file.
	if follow && w.db.lastRow() != int64(in.last) {
		return fmt.Errorf("message was stored as %d, expected %d: another program writes to the database", w.db.lastRow(), in.last)
	}
	return nil
}

// addRest writes what waits still.
func (w *writer) addRest() error {
	in := &w.inserts
	for _, p := range in.rows[:in.n] {
		if err := w.addOne(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addOne(p placed) error {
	in := &w.inserts
	w.bind(in.one, p)
	if err := in.one.run(); err != nil {
		return err
	}
	in.last = p.row.ID
	return nil
}

// usual reports that the row has none of the rare columns.
func usual(r *ledger.Row) bool {
	return len(r.Parts)+len(r.Meta)+len(r.Notes)+len(r.Reason)+len(r.PlatformID) == 0
}

// bind fills one row in the order of the insert's columns and moves the ends
// of its chains.
func (w *writer) bind(s insertStmt, p placed) {
	r, c := p.row, p.conv
	if s.ids {
		s.int(int64(r.ID))
	}
	s.int(c.chain.channel)
	s.int(c.ID)
	s.int(int64(c.next.head))
	s.int(int64(c.chain.next))
	s.int(int64(r.Direction))
	s.int(stateNumber(r))
	r.Turn = p.turn
	s.int(p.turn)
	s.int(int64(r.ReplyTo))
	s.text(r.Text)
	s.blobOrNull(r.Origin)
	if s.rare {
		s.blobOrNull(r.Parts)
		s.blobOrNull(r.Meta)
		s.blobOrNull(r.Notes)
		s.textOrNull(string(r.Reason))
		s.textOrNull(r.PlatformID)
	}
	c.next.head, c.chain.next = r.ID, r.ID
	if r.Direction == ledger.In {
		if r.State != ledger.Failed && !r.Aside { // who may not speak does not say where answers go
			c.next.lastIn = r.ID
		}
		return
	}
	if r.State == ledger.Sent {
		c.next.lastOut = r.ID
	}
	if r.Offers {
		c.next.offer = r.ID
	}
}
