package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

// idsAtOnce is how many messages one statement names.
const idsAtOnce = 500

// resume finds where the log ends and what was left open. A million messages may be on
// the pending list: they are counted, and none of them is read.
func (s *Store) resume(ctx context.Context) error {
	newest, err := s.read.NewestMessage(ctx)
	if err != nil {
		return fmt.Errorf("read end of the log: %w", err)
	}
	gone, err := s.read.NewestGone(ctx)
	if err != nil {
		return fmt.Errorf("read end of the log: %w", err)
	}
	mark, err := s.read.Mark(ctx)
	if err != nil {
		return fmt.Errorf("read mark: %w", err)
	}
	// No id is given twice, whatever was deleted and wherever the clock is.
	s.w.ids.Last = ledger.MessageID(max(newest, gone.Gone, gone.Swept, mark))
	s.open.last = s.w.ids.Last
	_, err = db.New(s.admin).BreakStreams(ctx, db.BreakStreamsParams{
		Broken: statusNumber(ledger.StatusError), After: mark, Streaming: statusNumber(ledger.StatusStreaming),
	})
	if err != nil {
		return fmt.Errorf("end broken answers: %w", err)
	}
	if err := s.goThroughList(ctx, mark); err != nil {
		return fmt.Errorf("read what was not finished: %w", err)
	}
	return s.eachUnlisted(ctx, func(page []ledger.Heading) error {
		for _, h := range page {
			s.open.add(h.ID, false)
		}
		return nil
	})
}

// goThroughList counts what waits for adapters, remembers what waits for agents, and lets
// all wait again that was sent and not acknowledged.
func (s *Store) goThroughList(ctx context.Context, mark int64) error {
	if err := db.New(s.admin).ListInFlight(ctx, db.ListInFlightParams{After: mark, InFlight: int64(inFlight)}); err != nil {
		return err
	}
	counts, err := s.read.CountListed(ctx)
	if err != nil {
		return err
	}
	s.open.queued = make(map[int64]int64, len(counts))
	for _, c := range counts {
		s.open.queued[c.Channel] = c.N
	}
	others, err := s.read.ListedOtherwise(ctx)
	if err != nil {
		return err
	}
	var back []int64
	for _, m := range others {
		if kind(m.Kind) == forAgent {
			s.open.add(ledger.MessageID(m.Message), true)
			s.open.queued[m.Channel]--
		} else {
			back = append(back, m.Message)
		}
	}
	if len(back) == 0 {
		return nil
	}
	return s.runAdmin(ctx, func(q *db.Queries) error {
		for ids := range slices.Chunk(back, idsAtOnce) {
			err := q.Requeue(ctx, db.RequeueParams{Queued: int64(ledger.Queued), Sent: int64(ledger.Sent), InFlight: int64(inFlight), Ids: ids})
			if err == nil {
				err = q.ListQueued(ctx, ids)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Unanswered reads the inbound messages that were open when the host stopped:
// those that are listed, then the others, each oldest first.
func (s *Store) Unanswered(ctx context.Context) (all []ledger.OpenMessage, err error) {
	take := func(list []ledger.Heading, as func(*ledger.OpenMessage)) error {
		for len(list) > 0 {
			page, left, err := s.page(ctx, list)
			if err != nil {
				return err
			}
			for _, e := range page {
				all = append(all, ledger.OpenMessage{Entry: e})
				as(&all[len(all)-1])
			}
			list = left
		}
		return nil
	}
	for ids := range slices.Chunk(s.open.onList(), idsAtOnce) {
		rows, err := s.read.Reopened(ctx, db.ReopenedParams{Received: int64(ledger.Received), Ids: ids})
		if err != nil {
			return nil, failed("list messages", err)
		}
		list := make([]ledger.Heading, len(rows))
		told := map[ledger.MessageID]bool{}
		for i, r := range rows {
			list[i] = ledger.Heading{ID: ledger.MessageID(r.ID), Channel: r.Channel, Size: int(r.Size)}
			told[list[i].ID] = r.Told != 0
		}
		if err := take(list, func(m *ledger.OpenMessage) { m.Listed, m.Told = true, told[m.ID] }); err != nil {
			return nil, err
		}
	}
	err = s.eachUnlisted(ctx, func(list []ledger.Heading) error { return take(list, func(*ledger.OpenMessage) {}) })
	return all, err
}

// eachUnlisted calls fn for pages of the open messages that are not on the pending list.
func (s *Store) eachUnlisted(ctx context.Context, fn func([]ledger.Heading) error) error {
	after, err := s.read.Mark(ctx)
	if err != nil {
		return failed("read mark", err)
	}
	for {
		list, err := headings(s.read.Unanswered(ctx, db.UnansweredParams{After: after, Received: int64(ledger.Received), N: idsAtOnce}))
		if err != nil {
			return err
		}
		if err := fn(list); err != nil {
			return err
		}
		if len(list) < idsAtOnce {
			return nil
		}
		after = int64(list[len(list)-1].ID)
	}
}
