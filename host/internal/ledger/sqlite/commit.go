package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func batchLen(units []*Unit) int {
	rows, bytes := 0, 0
	for i, u := range units {
		r, b := u.size()
		rows, bytes = rows+r, bytes+b
		if i > 0 && (rows > maxBatchRows || bytes > maxBatchBytes) {
			return i
		}
	}
	return len(units)
}

func (u *Unit) size() (rows, bytes int) {
	if u.In != nil {
		rows++
		bytes += rowSize(u.In)
	}
	for i := range u.Out {
		rows++
		bytes += rowSize(&u.Out[i])
	}
	for i := range u.Settle {
		rows++
		if c := u.Settle[i].Content; c != nil {
			bytes += len(c.Text) + len(c.Parts) + len(c.Meta)
		}
	}
	return rows, bytes
}

func rowSize(r *ledger.Row) int {
	return len(r.Text) + len(r.Parts) + len(r.Origin) + len(r.Meta) + len(r.Notes)
}

// write commits the units, and answers them before it looks after the log.
func (w *writer) write(units []*Unit) {
	b := &batch{later: w.later[:0]}
	tried, err := w.store(units, b)
	for _, f := range b.later {
		f.Flush()
	}
	clear(b.later)
	w.later = b.later
	if tried && w.note(err) {
		w.tidy()
	}
}

// store commits the units together and calls their Done with the error; tried is
// false if none was left to commit. If one of them breaks a constraint, each is committed
// alone, so that a duplicate does not hurt its neighbours.
func (w *writer) store(units []*Unit, b *batch) (tried bool, err error) {
	if units = w.dropFallen(units, b); len(units) == 0 {
		return false, nil
	}
	err = w.attempt(units)
	var broken *sqliteError
	if len(units) > 1 && (errors.Is(err, ledger.ErrRemoved) || errors.As(err, &broken) && broken.constraint()) {
		for i := range units {
			if rest := w.dropFallen(units[i:i+1], b); len(rest) > 0 {
				w.finish(rest, w.attempt(rest), b)
			}
		}
	} else {
		w.finish(units, err, b)
	}
	w.pulse.beat(len(units))
	w.db.arena.trim(w.db.tls)
	return true, err
}

// errFallen is the error of a unit behind one that failed.
var errFallen = fmt.Errorf("%w: what comes before was not stored", ledger.ErrUnavailable)

// dropFallen ends the units behind one that failed, and returns the others.
func (w *writer) dropFallen(units []*Unit, b *batch) []*Unit {
	fallen := func(u *Unit) bool { return u.Behind != nil && u.Behind.failed }
	if !slices.ContainsFunc(units, fallen) {
		return units
	}
	rest := make([]*Unit, 0, len(units))
	for i, u := range units {
		if fallen(u) {
			w.finish(units[i:i+1], errFallen, b) // before those behind it are looked at
		} else {
			rest = append(rest, u)
		}
	}
	return rest
}

func (w *writer) finish(units []*Unit, err error, b *batch) {
	var broken *sqliteError
	switch {
	case err == nil, errors.Is(err, ledger.ErrRemoved):
	case errors.As(err, &broken) && broken.constraint():
		err = ledger.ErrDuplicate
	default:
		err = w.trouble(err)
	}
	switch {
	case err == nil:
		w.unfinished.note(units)
	case errors.Is(err, ledger.ErrUnavailable):
		w.stats.Refused.Add(uint64(len(units)))
	}
	for _, u := range units {
		u.failed, u.Behind = err != nil, nil
		if u.Done != nil {
			u.Done(Result{Err: err, batch: b})
		}
	}
}

func (w *writer) transact(units []*Unit) error {
	err := w.begin.run()
	if err == nil {
		if err = w.insert(units); err == nil {
			err = w.commit.run()
		}
	}
	for _, c := range w.busy {
		if c.staged = false; err == nil {
			c.now, c.saved = c.next, true
		}
	}
	for _, c := range w.chains {
		if c.staged = false; err == nil {
			c.head.Store(int64(c.next))
			if c.nextCursor != "" {
				cursor := c.nextCursor
				c.cursor.Store(&cursor)
			}
		}
		c.nextCursor = ""
	}
	w.busy, w.chains = w.busy[:0], w.chains[:0]
	if err != nil && w.db.inTransaction() {
		if rerr := w.back.run(); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func (w *writer) insert(units []*Unit) error {
	w.inserts.n, w.inserts.last = 0, 0
	for _, u := range units {
		c := u.Conversation
		if u.chain().removed {
			return ledger.ErrRemoved
		}
		w.stageChain(u.chain())
		if u.Cursor != "" {
			u.chain().nextCursor = u.Cursor
		}
		if c == nil {
			continue
		}
		w.stage(c)
		if u.Set != nil {
			c.next.Settings = *u.Set
		}
		if u.In != nil {
			if !u.In.Aside {
				c.next.turns++
			}
			if err := w.add(placed{u.In, c, c.next.turn()}); err != nil {
				return err
			}
		}
		for i := range u.Out {
			if err := w.add(placed{&u.Out[i], c, c.next.turn()}); err != nil {
				return err
			}
		}
	}
	if err := w.addRest(); err != nil {
		return err
	}
	for _, u := range units {
		if err := w.follow(u); err != nil {
			return err
		}
	}
	for _, c := range w.chains {
		if c.nextCursor == "" {
			continue
		}
		w.saveCursor.int(c.Channel)
		w.saveCursor.text(c.nextCursor)
		if err := w.saveCursor.run(); err != nil {
			return err
		}
	}
	return w.saveConversations()
}

// placed is a row with its place in the history.
type placed struct {
	row  *ledger.Row
	conv *Conversation
	turn int64
}

func (w *writer) stage(c *Conversation) {
	if !c.staged {
		c.staged, c.next = true, c.now
		w.busy = append(w.busy, c)
	}
}

func (w *writer) stageChain(c *Chain) {
	if !c.staged {
		c.staged, c.next = true, ledger.MessageID(c.head.Load())
		w.chains = append(w.chains, c)
	}
}

// follow writes what is not on the happy path: the pending list and changes of
// state.
func (w *writer) follow(u *Unit) error {
	if u.In != nil {
		if err := w.nameFiles(u.In.ID, u.In.Parts, u.In.Meta); err != nil {
			return err
		}
	}
	for i := range u.Out {
		if err := w.nameFiles(u.Out[i].ID, u.Out[i].Parts, u.Out[i].Meta); err != nil {
			return err
		}
		if s := u.Out[i].Status; s != "" {
			w.status.int(statusNumber(s))
			w.status.int(int64(u.Out[i].ID))
			if err := w.status.run(); err != nil {
				return err
			}
		}
		if u.Out[i].State != ledger.Queued && !u.Out[i].Tracked {
			continue
		}
		if err := w.list(ledger.Settlement{ID: u.Out[i].ID, State: u.Out[i].State, Tracked: u.Out[i].Tracked}, u.Conversation.Chain.Channel); err != nil {
			return err
		}
	}
	for _, t := range u.Settle {
		if err := w.refill(u.Conversation, t.ID, t.Content); err != nil {
			return err
		}
		w.settle.int(int64(t.State))
		w.settle.textOrNull(string(t.Reason))
		w.settle.blobOrNull(t.Notes)
		w.settle.int(w.now().UnixMilli())
		w.settle.int(int64(t.ID))
		if err := w.settle.run(); err != nil {
			return err
		}
		if w.db.changes() == 0 { // deleted since somebody looked at it
			return ledger.ErrRemoved
		}
		if err := w.list(t, u.Conversation.Chain.Channel); err != nil {
			return err
		}
		if err := w.tell(t); err != nil {
			return err
		}
	}
	return nil
}

// refill writes what a message says after all.
func (w *writer) refill(conv *Conversation, id ledger.MessageID, c *ledger.Content) error {
	if c == nil {
		return nil
	}
	w.fill.int(statusNumber(c.Status))
	w.fill.text(c.Text)
	w.fill.blobOrNull(c.Parts)
	w.fill.blobOrNull(c.Meta)
	w.fill.int(int64(id))
	if c.Offers {
		conv.next.offer = id
	}
	if err := w.fill.run(); err != nil {
		return err
	}
	return w.renameFiles(id, c)
}

// list puts a message on the pending list, or takes it off.
func (w *writer) list(t ledger.Settlement, channel int64) error {
	if t.State != ledger.Queued && !t.Tracked {
		w.unpend.int(int64(t.ID))
		return w.unpend.run()
	}
	w.pend.int(int64(t.ID))
	w.pend.int(channel)
	w.pend.int(int64(t.Frame))
	w.pend.int(int64(t.Tries))
	return w.pend.run()
}

// tell writes what became known of a message, and what happened to it.
func (w *writer) tell(t ledger.Settlement) error {
	if t.Handle != "" {
		w.handle.text(t.Handle)
		w.handle.int(int64(t.ID))
		if err := w.handle.run(); err != nil {
			return err
		}
	}
	life := t.Life
	switch t.State {
	case ledger.Queued, ledger.Failed, ledger.Expired: // not the happy path
		life = append(life, ledger.Life{What: t.State.String(), Detail: string(t.Reason)})
	}
	for _, l := range life {
		w.life.int(int64(t.ID))
		w.life.int(w.now().UnixMilli())
		w.life.text(l.What)
		w.life.text(l.Detail)
		if err := w.life.run(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) saveConversations() error {
	for _, c := range w.busy {
		if c.saved && c.next == c.now {
			continue
		}
		if err := w.saveConversation(c); err != nil {
			return err
		}
		if c.saved && w.db.changes() == 0 { // deleted, since all of its messages were
			c.saved = false
			if err := w.saveConversation(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) saveConversation(c *Conversation) error {
	if c.saved && c.next.Settings == c.now.Settings && c.next.offer == c.now.offer {
		s := w.moveConversation // as nearly always
		s.int(c.next.turns)
		s.int(int64(c.next.head))
		s.int(int64(c.next.lastIn))
		s.int(int64(c.next.lastOut))
		s.int(c.ID)
		return s.run()
	}
	s := w.updateConversation
	if !c.saved {
		s = w.addConversation
	}
	muted := int64(0)
	if c.next.Muted {
		muted = 1
	}
	s.text(c.next.Agent)
	s.int(muted)
	s.int(c.next.turns)
	s.int(int64(c.next.head))
	s.int(int64(c.next.lastIn))
	s.int(int64(c.next.lastOut))
	s.int(int64(c.next.offer))
	s.int(c.ID)
	if !c.saved {
		s.int(c.Chain.Channel)
		s.text(c.Key)
	}
	return s.run()
}
