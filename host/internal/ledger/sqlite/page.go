package sqlite

import (
	"context"
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// Entries reads the messages with these ids, in this order, but for those that are
// deleted.
func (s *Store) Entries(ctx context.Context, ids []ledger.MessageID) ([]ledger.Entry, error) {
	return s.readAll(ctx, ids, s.GiveWay)
}

// EntriesWithin is Entries for who delivers messages, and may not wait for those who
// read: up to so many bytes, and the one that goes beyond. It looked at the first so
// many ids.
func (s *Store) EntriesWithin(ctx context.Context, ids []ledger.MessageID, bytes int) (found []ledger.Entry, looked int, err error) {
	w := walk{keys: map[int64]string{}}
	err = s.couriers.within(ctx, func(r *reader) error {
		for ; looked < len(ids) && bytes > 0; looked++ {
			row, _, there, err := w.step(r, int64(ids[looked]))
			if err != nil {
				return err
			}
			if there {
				found = append(found, s.entry(row))
				bytes -= found[len(found)-1].Size()
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, failed("read messages", err)
	}
	return found, looked, nil
}

// readAll is Entries; rest is called now and then.
func (s *Store) readAll(ctx context.Context, ids []ledger.MessageID, rest func()) ([]ledger.Entry, error) {
	w := walk{keys: map[int64]string{}}
	out := make([]ledger.Entry, 0, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	err := s.walkers.within(ctx, func(r *reader) error {
		for _, id := range ids {
			if err := s.walkers.stopped(ctx); err != nil {
				return err
			}
			row, _, found, err := w.step(r, int64(id))
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if out = append(out, s.entry(row)); len(out)%rowsAtOnce == rowsAtOnce-1 {
				rest()
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed("read messages", err)
	}
	return out, nil
}

// page reads the first of what is listed, as much as a page may hold; left is the rest.
func (s *Store) page(ctx context.Context, list []ledger.Heading) (page []ledger.Entry, left []ledger.Heading, err error) {
	n := ledger.Fitting(list, ledger.PageBytes)
	ids := make([]ledger.MessageID, n)
	for i := range ids {
		ids[i] = list[i].ID
	}
	page, err = s.readAll(ctx, ids, func() {}) // whoever delivers messages does not rest for those who do
	return page, list[n:], err
}

// sized is a row of the queries that list messages without reading them.
type sized interface {
	~struct{ ID, Channel, Size int64 }
}

func headings[T sized](rows []T, err error) ([]ledger.Heading, error) {
	if err != nil {
		return nil, failed("list messages", err)
	}
	out := make([]ledger.Heading, len(rows))
	for i, r := range rows {
		one := struct{ ID, Channel, Size int64 }(r)
		out[i] = ledger.Heading{ID: ledger.MessageID(one.ID), Channel: one.Channel, Size: int(one.Size)}
	}
	return out, nil
}

// HeadingsAfter lists up to n messages of all channels in commit order, from behind
// id.
func (s *Store) HeadingsAfter(ctx context.Context, id ledger.MessageID, n int) ([]ledger.Heading, error) {
	return headings(s.read.MessagesAfter(ctx, db.MessagesAfterParams{After: int64(id), N: int64(n)}))
}

// Headings is Before for who reads the messages later, without a bound of bytes.
func (s *Store) Headings(ctx context.Context, in ledger.Scope, before ledger.MessageID, n int) ([]ledger.Heading, error) {
	out := make([]ledger.Heading, 0, min(n, 50))
	err := s.back(ctx, in, before, func(_ *walk, r *reader, id int64) (next int64, done bool, err error) {
		m, found, err := r.measure(id)
		if err != nil || !found {
			return 0, true, err
		}
		if in.Direction == nil || m.direction == *in.Direction {
			if out = append(out, m.Heading); len(out)%headingsAtOnce == 0 {
				s.GiveWay()
			}
		}
		if next = m.prev; in.Conversation == nil {
			next = m.prevChannel
		}
		return next, len(out) >= n, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// headingsAtOnce is rowsAtOnce of what costs less to read.
const headingsAtOnce = 64

// back walks back in the scope from before a message, 0 = from the newest, and
// calls fn for each message until it says that it is done.
func (s *Store) back(ctx context.Context, in ledger.Scope, before ledger.MessageID, fn func(w *walk, r *reader, id int64) (next int64, done bool, err error)) error {
	w := walk{Scope: in, keys: map[int64]string{}}
	c, err := s.chain(ctx, in.Channel)
	if err != nil {
		return err
	}
	head := c.head.Load() // before the reader begins, so that it sees this message
	err = s.walkers.within(ctx, func(r *reader) error {
		next, err := w.begin(r, head, int64(before))
		for done := false; err == nil && next != 0 && !done; {
			if err = s.walkers.stopped(ctx); err != nil {
				return err
			}
			next, done, err = fn(&w, r, next)
		}
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		if deleted, derr := s.wasDeleted(ctx, in.Channel, before); deleted || derr != nil {
			return derr
		}
		return err
	case err == nil, errors.Is(err, ledger.ErrPageBytes):
		return err
	}
	return failed("read messages", err)
}
