package sqlite

import (
	"errors"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func batchLen(units []unit) int {
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

func (u unit) size() (rows, bytes int) {
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
func (w *writer) write(units []unit) {
	b := &ledger.Commit{Flushers: w.later[:0]}
	tried, err := w.store(units, b)
	for _, f := range b.Flushers {
		f.Flush()
	}
	clear(b.Flushers)
	w.later = b.Flushers
	if tried && w.note(err) {
		w.tidy()
	}
}

// store commits the units together and calls their done; tried is false if none was
// left to commit. A unit that can't be stored is left out, and the others are
// committed without it: it does not hurt its neighbours. err is the disk's.
func (w *writer) store(units []unit, b *ledger.Commit) (tried bool, err error) {
	fates := w.fatesOf(units)
	rest := w.kept(units, fates)
	careful := w.wary > 0 // every reason that can be looked up was
	if careful {
		w.wary--
		rest, err = w.lookAhead(units, fates)
	}
	for err == nil && len(rest) > 0 {
		tried = true
		if err = w.attempt(rest); err == nil {
			break
		}
		switch blamed := w.blamed; {
		case !unfit(err):
		case blamed != nil && careful:
			fates[slices.IndexFunc(units, func(u unit) bool { return u.Unit == blamed })] = w.unfitUnit(err)
			rest, err = w.lookAhead(units, fates) // what repeats it is no repeat
		case !careful:
			careful = true
			rest, err = w.lookAhead(units, fates)
		case !w.inserts.single: // which row it was nobody knows: one at a time
			w.inserts.single, err = true, nil
		}
	}
	w.inserts.single = false
	w.finish(units, fates, err, b)
	w.pulse.beat(len(units))
	w.db.arena.trim(w.db.tls)
	return tried, err
}

// finish calls the units' done in their order. All that were to be stored, and
// repeats of them, share err.
func (w *writer) finish(units []unit, fates []error, err error, b *ledger.Commit) {
	if err != nil {
		err = w.trouble(err)
	}
	refused := 0
	for i := range fates {
		if err != nil && (fates[i] == nil || errors.Is(fates[i], ledger.ErrDuplicate)) {
			fates[i] = err
		}
		if errors.Is(fates[i], ledger.ErrUnavailable) {
			refused++
		}
	}
	if refused > 0 {
		w.stats.Refused.Add(uint64(refused))
	}
	if err == nil {
		w.unfinished.note(units, fates)
	}
	for i, u := range units {
		u.Failed, u.After = fates[i] != nil, nil
		if u.done != nil {
			u.done(ledger.Result{Err: fates[i], Commit: b})
		}
	}
}

func (w *writer) transact(units []unit) error {
	w.blamed = nil
	err := w.begin.run()
	if err == nil {
		if err = w.insert(units); err == nil {
			w.blamed = nil
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
			if c.nextCursor != nil {
				c.owner.Load().Committed(*c.nextCursor)
			}
		}
		c.nextCursor = nil
	}
	w.busy, w.chains = w.busy[:0], w.chains[:0]
	if err != nil && w.db.inTransaction() {
		if rerr := w.back.run(); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func (w *writer) insert(units []unit) error {
	w.inserts.n, w.inserts.last = 0, 0
	clear(w.relisted)
	for _, u := range units {
		c := u.conversation()
		if w.inserts.single {
			w.blamed = u.Unit
		}
		w.stageChain(u.chain())
		if u.Cursor != "" {
			u.chain().nextCursor = &u.Cursor
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
		w.blamed = u.Unit
		if err := w.follow(u); err != nil {
			return err
		}
	}
	w.blamed = nil
	for _, c := range w.chains {
		if c.nextCursor == nil {
			continue
		}
		w.saveCursor.int(c.channel)
		w.saveCursor.text(*c.nextCursor)
		if err := w.saveCursor.run(); err != nil {
			return err
		}
	}
	return w.saveConversations()
}

// placed is a row with its place in the history.
type placed struct {
	row  *ledger.Row
	conv *conversation
	turn int64
}

func (w *writer) stage(c *conversation) {
	if !c.staged {
		c.staged, c.next = true, c.now
		w.busy = append(w.busy, c)
	}
}

func (w *writer) stageChain(c *chain) {
	if !c.staged {
		c.staged, c.next = true, ledger.MessageID(c.head.Load())
		w.chains = append(w.chains, c)
	}
}

// follow writes what is not on the happy path: the pending list and changes of
// state.
func (w *writer) follow(u unit) error {
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
		if u.Out[i].State != ledger.Queued {
			continue
		}
		if err := w.list(ledger.Settlement{ID: u.Out[i].ID, State: ledger.Queued}, u.chain().channel); err != nil {
			return err
		}
	}
	for _, t := range u.Settle {
		if err := w.refill(u.conversation(), t.ID, t.Content); err != nil {
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
		if err := w.list(t, u.chain().channel); err != nil {
			return err
		}
		if err := w.tell(t); err != nil {
			return err
		}
	}
	return nil
}

// refill writes what a message says after all.
func (w *writer) refill(conv *conversation, id ledger.MessageID, c *ledger.Content) error {
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

// tries is what pending.tries says of a message: how often it failed, and of one that
// waits for its agent whether its user was told so, which the query Told reads.
func tries(t ledger.Settlement) int64 {
	if t.Told {
		return 1
	}
	return int64(t.Tries)
}

// list puts a message on the pending list, or takes it off.
func (w *writer) list(t ledger.Settlement, channel int64) error {
	if t.State != ledger.Queued && !t.Tracked {
		if !w.relisted[t.ID] && w.unfinished.unlisted(t.ID) {
			return nil
		}
		w.unpend.int(int64(t.ID))
		return w.unpend.run()
	}
	w.relisted[t.ID] = true
	w.pend.int(int64(t.ID))
	w.pend.int(channel)
	w.pend.int(int64(kindOf(t.State)))
	w.pend.int(int64(t.Frame))
	w.pend.int(tries(t))
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

func (w *writer) saveConversation(c *conversation) error {
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
		s.int(c.chain.channel)
		s.text(c.Key)
	}
	return s.run()
}
