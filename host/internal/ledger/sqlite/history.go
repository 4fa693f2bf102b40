package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
)

func (s *Store) entry(e db.Entry) ledger.Entry {
	origin, lost := packed.ParseOrigin(e.Origin) // one row that another hand broke takes no page down
	out := ledger.Entry{
		Row: ledger.Row{
			ID: ledger.MessageID(e.ID), Direction: ledger.Direction(e.Direction), State: ledger.State(e.State), Reason: ledger.Reason(e.Reason.String),
			ReplyTo: ledger.MessageID(e.ReplyTo), Turn: e.Turn, Text: e.Text, Status: status(e.Status), Parts: e.Parts, Meta: e.Meta, Notes: e.Notes, PlatformID: e.PlatformID.String, Handle: e.Handle.String,
		},
		Channel: e.Channel, ConversationID: e.Conversation, Conversation: e.ConversationKey, Origin: origin, Lost: lost,
	}
	if out.State == inFlight {
		out.State = ledger.Sent
	}
	if e.SettledAt.Valid {
		out.SettledAt = time.UnixMilli(e.SettledAt.Int64).UTC()
	}
	if out.State == ledger.Received && !s.open.has(out.ID) {
		out.State = ledger.Handled
	}
	return out
}

// status is the status that the database keeps as n.
func status(n int64) ledger.Status {
	if n < 0 || n >= int64(len(statuses)) {
		return ledger.StatusError // of a later version
	}
	return statuses[n]
}

// ByPlatformID reads the message that the platform knows by the id.
func (s *Store) ByPlatformID(ctx context.Context, channel int64, id string) (ledger.Entry, error) {
	r, err := s.read.MessageByPlatformID(ctx, db.MessageByPlatformIDParams{
		Channel: channel, PlatformID: sql.NullString{String: id, Valid: true},
	})
	return s.one(r, err)
}

// Message reads one message.
func (s *Store) Message(ctx context.Context, id ledger.MessageID) (ledger.Entry, error) {
	found, _, err := s.EntriesWithin(ctx, []ledger.MessageID{id}, 1)
	if err == nil && len(found) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Entry{}, err
	}
	return found[0], nil
}

func (s *Store) one(r db.Entry, err error) (ledger.Entry, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Entry{}, failed("read message", err)
	}
	return s.entry(r), nil
}

// Before reads up to n messages of the scope, newest first, and ledger.PageBytes of
// them: see ledger.PageFull, and ledger.Scope.Bytes. Of the page before,
// before is the last message; 0 starts at the newest.
func (s *Store) Before(ctx context.Context, in ledger.Scope, before ledger.MessageID, n int) ([]ledger.Entry, error) {
	out := make([]ledger.Entry, 0, min(n, 50))
	size := 0
	err := s.back(ctx, in, before, func(w *walk, r *reader, id int64) (next int64, done bool, err error) {
		row, next, found, err := w.step(r, id)
		if err != nil || !found {
			return next, false, err
		}
		out = append(out, s.entry(row))
		size += out[len(out)-1].Size()
		if in.Bytes > 0 && size > in.Bytes {
			return 0, true, ledger.ErrPageBytes
		}
		if len(out)%rowsAtOnce == rowsAtOnce-1 {
			s.GiveWay()
		}
		return next, len(out) >= n || in.Bytes == 0 && size >= ledger.PageBytes, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ChangedSince lists those of the n messages up to last whose state may have changed
// since last was stored, oldest first.
func (s *Store) ChangedSince(ctx context.Context, last ledger.MessageID, n int) ([]ledger.Heading, error) {
	return headings(s.read.ChangedSince(ctx, db.ChangedSinceParams{Last: int64(last), At: last.Time().UnixMilli(), N: int64(n)}))
}

// Newest is the newest message of all channels; 0 = none.
func (s *Store) Newest(ctx context.Context) (ledger.MessageID, error) {
	id, err := s.read.NewestMessage(ctx)
	if err != nil {
		return 0, failed("read newest message", err)
	}
	return ledger.MessageID(id), nil
}

// Pending reads up to n queued messages of a channel in commit order, from
// behind id, and ledger.PageBytes of them; none = there are no more.
func (s *Store) Pending(ctx context.Context, channel int64, id ledger.MessageID, n int) ([]ledger.Entry, error) {
	for {
		list, err := headings(s.read.PendingOfChannel(ctx, db.PendingOfChannelParams{Channel: channel, After: int64(id), Queued: int64(ledger.Queued), N: int64(n)}))
		if err != nil || len(list) == 0 {
			return nil, err
		}
		page, left, err := s.page(ctx, list)
		if err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(e ledger.Entry) bool { return e.State != ledger.Queued }) // meanwhile
		if len(page) > 0 {
			return page, nil
		}
		id = list[len(list)-len(left)-1].ID
	}
}

// Replayed is when each of the messages was replayed last; those that were not are
// left out.
func (s *Store) Replayed(ctx context.Context, ids []ledger.MessageID) (map[ledger.MessageID]time.Time, error) {
	keys := make([]int64, len(ids))
	for i, id := range ids {
		keys[i] = int64(id)
	}
	rows, err := s.read.Replayed(ctx, db.ReplayedParams{Ids: keys, Replayed: ledger.LifeReplayed})
	if err != nil {
		return nil, failed("read replays", err)
	}
	at := make(map[ledger.MessageID]time.Time, len(rows))
	for _, r := range rows {
		at[ledger.MessageID(r.Message)] = time.UnixMilli(r.At).UTC()
	}
	return at, nil
}

// Waiting lists the queued messages of a channel in commit order.
func (s *Store) Waiting(ctx context.Context, channel int64) ([]ledger.Waiting, error) {
	const page = 1000
	var out []ledger.Waiting
	for after := int64(0); ; {
		rows, err := s.read.WaitingOfChannel(ctx, db.WaitingOfChannelParams{Channel: channel, After: after, Queued: int64(ledger.Queued), N: page})
		if err != nil {
			return nil, failed("read queue", err)
		}
		for _, r := range rows {
			after = r.Message
			out = append(out, ledger.Waiting{ID: ledger.MessageID(r.Message), Conversation: r.ConversationKey, Frame: int(r.Frame), Tries: int(r.Tries)})
		}
		if len(rows) < page {
			return out, nil
		}
	}
}

// Life reads what happened to a message beside the happy path, in order.
func (s *Store) Life(ctx context.Context, id ledger.MessageID) (life []ledger.Life, err error) {
	err = s.couriers.within(ctx, func(r *reader) (err error) {
		life, err = r.lifeOf(int64(id))
		return err
	})
	if err != nil {
		return nil, failed("read life of message", err)
	}
	return life, nil
}

// PendingChannels are the channels that have unfinished messages.
func (s *Store) PendingChannels(ctx context.Context) ([]int64, error) {
	keys, err := s.read.PendingChannels(ctx)
	if err != nil {
		return nil, failed("read channels with queues", err)
	}
	return keys, nil
}

// CountPending is how many messages of a channel are queued.
func (s *Store) CountPending(ctx context.Context, channel int64) (int64, error) {
	if n, known := s.open.queuedIn(channel); known {
		return n, nil
	}
	n, err := s.read.CountPending(ctx, channel)
	if err != nil {
		return 0, failed("count queue", err)
	}
	return n, nil
}

// chain is the channel's place in the log, read once per process.
func (s *Store) chain(ctx context.Context, channel int64) (*chain, error) {
	s.mu.Lock()
	c := s.chains[channel]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	ends, err := s.read.ChannelEnds(ctx, channel)
	if err != nil {
		return nil, failed("read end of channel", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chains[channel]; c != nil {
		return c, nil
	}
	c = &chain{channel: channel}
	c.head.Store(ends.Head)
	c.lastIn.Store(ends.LastIn)
	c.lastOut.Store(ends.LastOut)
	s.chains[channel] = c
	return c, nil
}

// Own implements ledger.Log.
func (s *Store) Own(ctx context.Context, channel int64) (*ledger.Tail, error) {
	c, err := s.chain(ctx, channel)
	if err != nil {
		return nil, err
	}
	t := &ledger.Tail{Channel: channel, Engine: c}
	if s.w.ownFirst(c, t) { // nobody appended before: no need to wait for the disk
		err = readCursor(ctx, s.read, t)
	} else { // on the writer's goroutine: what the owner before appended is committed, or fenced
		err = s.w.submit(job{run: func(q *db.Queries) error { return readCursor(ctx, q, t) }, then: func() { s.w.own(c, t) }, beside: true})
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func readCursor(ctx context.Context, q *db.Queries, t *ledger.Tail) error {
	cursor, err := q.Cursor(ctx, t.Channel)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return failed("read cursor", err)
	}
	if cursor != "" {
		t.Committed(cursor)
	}
	return nil
}

// Release implements ledger.Log.
func (s *Store) Release(t *ledger.Tail) {
	c := t.Engine.(*chain)
	_ = s.w.submit(job{run: func(*db.Queries) error { return nil }, beside: true, then: func() { // an error is that of the host's end
		if c.epoch == t.Epoch {
			s.w.own(c, nil)
		}
	}})
}

// Conversation reads a conversation of a channel, or makes one that is written
// with its first message. The caller makes sure that it is not held twice.
func (s *Store) Conversation(ctx context.Context, tail *ledger.Tail, key string) (ledger.Recall, error) {
	var c db.Conversation
	var latest, offer *ledger.Entry
	found := false
	err := s.couriers.within(ctx, func(r *reader) (err error) {
		if c, found, err = r.conversation(tail.Channel, key); err != nil || !found {
			return err
		}
		if latest, err = s.entryBy(r, c.LastIn, key); err != nil {
			return err
		}
		offer, err = s.entryBy(r, c.Offer, key)
		return err
	})
	if err != nil {
		return ledger.Recall{}, failed("read conversation", err)
	}
	if !found {
		return ledger.Recall{Conversation: &newConversation(int64(s.NewID()), key, tail).Conversation}, nil
	}
	settings := ledger.Settings{Agent: c.Agent, Muted: c.Muted != 0}
	known := newConversation(c.ID, key, tail)
	known.saved = true
	known.now = ends{ledger.MessageID(c.Head), ledger.MessageID(c.LastIn), ledger.MessageID(c.LastOut), ledger.MessageID(c.Offer), c.Turns, settings}
	r := ledger.Recall{Conversation: &known.Conversation, Settings: settings, Offer: offer, Passed: c.LastIn > c.Offer}
	if latest != nil {
		r.Latest = latest.Origin
	}
	return r, nil
}

// entryBy reads a message of a conversation; nil = there is none.
func (s *Store) entryBy(r *reader, id int64, key string) (*ledger.Entry, error) {
	if id == 0 {
		return nil, nil
	}
	row, found, err := r.row(id)
	if err != nil || !found {
		return nil, err
	}
	row.ConversationKey = key
	e := s.entry(row)
	return &e, nil
}

// Entry makes the entry of a row that was just committed.
func (s *Store) Entry(r ledger.Row, c *ledger.Conversation) (ledger.Entry, error) {
	origin, err := packed.ParseOrigin(r.Origin)
	if r.Status == "" {
		r.Status = ledger.StatusCompleted
	}
	return ledger.Entry{Row: r, Channel: c.Tail.Channel, ConversationID: c.ID, Conversation: c.Key, Origin: origin}, err
}
