package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

const (
	// deadLooked is how many dead letters are looked at to count a conversation's.
	deadLooked = 10_000
	// perChannel is of how many channels the recent conversations are merged;
	// of more, all are gone through.
	perChannel = 32
)

// Conversations reads up to n conversations, latest first. before is the Newest of
// the last one of the page before; 0 starts. channels nil = all, none = none.
func (s *Store) Conversations(ctx context.Context, channels []int64, before ledger.MessageID, n int) ([]ledger.ConversationInfo, error) {
	if before == 0 {
		before = 1<<63 - 1
	}
	found, err := s.recent(ctx, channels, int64(before), n)
	if err != nil {
		return nil, failed("read conversations", err)
	}
	out := make([]ledger.ConversationInfo, len(found))
	for i, c := range found {
		out[i] = ledger.ConversationInfo{ID: c.ID, Channel: c.Channel, Key: c.Key, Settings: ledger.Settings{Agent: c.Agent, Muted: c.Muted != 0}, Turns: c.Turns, Newest: ledger.MessageID(c.Head)}
	}
	if err := s.lastOf(ctx, out); err != nil {
		return nil, err
	}
	return out, s.count(ctx, out)
}

// recent lists the latest conversations: those with messages that the index has
// not come by yet, then those that it has listed.
func (s *Store) recent(ctx context.Context, channels []int64, before int64, n int) ([]db.Conversation, error) {
	if channels != nil && len(channels) == 0 || n <= 0 {
		return nil, nil
	}
	at, err := s.read.Indexing(ctx)
	if err != nil {
		return nil, err
	}
	wanted := func(c db.Conversation) bool { return channels == nil || slices.Contains(channels, c.Channel) }
	out, err := gather(n, before, wanted, func(before int64) ([]db.Conversation, error) {
		return s.read.RecentTail(ctx, db.RecentTailParams{High: at.High, Before: before, N: int64(n)})
	})
	if err != nil {
		return nil, err
	}
	if channels == nil || len(channels) > perChannel {
		listed, err := gather(n, before, wanted, func(before int64) ([]db.Conversation, error) {
			return s.read.Recent(ctx, db.RecentParams{Before: before, N: int64(n)})
		})
		if err != nil {
			return nil, err
		}
		out = append(out, listed...)
	} else {
		for _, c := range channels {
			listed, err := s.read.RecentOf(ctx, db.RecentOfParams{Channel: c, Before: before, N: int64(n)})
			if err != nil {
				return nil, err
			}
			out = append(out, listed...)
		}
	}
	slices.SortFunc(out, func(a, b db.Conversation) int { return cmp.Compare(b.Head, a.Head) })
	// The index may have come by one meanwhile.
	out = slices.CompactFunc(out, func(a, b db.Conversation) bool { return a.Head == b.Head })
	return out[:min(n, len(out))], nil
}

// gather reads pages until it has n conversations that are wanted.
func gather(n int, before int64, wanted func(db.Conversation) bool, page func(before int64) ([]db.Conversation, error)) ([]db.Conversation, error) {
	var out []db.Conversation
	for len(out) < n {
		rows, err := page(before)
		if err != nil || len(rows) == 0 {
			return out, err
		}
		for _, c := range rows {
			if before = c.Head; wanted(c) && len(out) < n {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// lastOf reads the newest messages.
func (s *Store) lastOf(ctx context.Context, in []ledger.ConversationInfo) error {
	err := s.walkers.within(ctx, func(r *reader) error {
		for i := range in {
			row, found, err := r.row(int64(in[i].Newest))
			if err != nil || !found {
				if err != nil {
					return err
				}
				continue
			}
			row.ConversationKey = in[i].Key
			e := s.entry(row)
			e.Text = strings.Clone(search.Brief(search.Text(e.Text, e.Parts))) // and nothing that holds all of it
			e.Parts, e.Meta, e.Notes, e.Origin.ReplyCtx = nil, nil, nil, ""
			if in[i].Last = &e; i%rowsAtOnce == rowsAtOnce-1 {
				s.GiveWay()
			}
		}
		return nil
	})
	if err != nil {
		return failed("read newest messages", err)
	}
	return nil
}

// count counts what was not delivered.
func (s *Store) count(ctx context.Context, in []ledger.ConversationInfo) error {
	at := map[int64]*ledger.ConversationInfo{}
	var ids, channels []int64
	for i := range in {
		at[in[i].ID] = &in[i]
		ids, channels = append(ids, in[i].ID), append(channels, in[i].Channel)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(channels)
	waiting, err := s.read.WaitingAmong(ctx, db.WaitingAmongParams{Channels: slices.Compact(channels), Conversations: ids})
	if err != nil {
		return failed("count what waits", err)
	}
	for _, w := range waiting {
		at[w.Conversation].Waiting = w.N
	}
	dead, err := s.read.FailedAmong(ctx, db.FailedAmongParams{Most: deadLooked, Conversations: ids})
	if err != nil {
		return failed("count what failed", err)
	}
	for _, f := range dead {
		at[f.Conversation].Failed = f.N
	}
	return nil
}
