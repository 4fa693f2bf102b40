package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/db"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

const (
	// searchTime bounds one search. What it found until then is answered, with
	// where to go on.
	searchTime = 700 * time.Millisecond
	// searchers is how many search at a time: others need the readers too.
	searchers = 2
	// searchTail is how many messages that are not in the index yet are looked at
	// one by one.
	searchTail = 5000
	searchPage = 64 // messages asked of the index at a time
)

// Search finds messages, those that are in the index and, one by one, some of
// those that are not yet. It takes no longer than it may.
func (s *Store) Search(ctx context.Context, f search.Find) (search.Found, error) {
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(f.Patience, searchTime))
	defer cancel()
	select {
	case s.searching <- struct{}{}:
		defer func() { <-s.searching }()
	case <-bounded.Done():
		return search.Found{}, bounded.Err()
	}
	r := run{Store: s, f: f, at: f.Cursor}
	if r.at == 0 {
		r.at = 1<<63 - 1
	}
	err := r.search(bounded)
	out := search.Found{Messages: r.found}
	if len(r.found) >= f.N && f.N > 0 {
		out.Next = r.found[len(r.found)-1].ID
	}
	if timeUp(bounded, err) && ctx.Err() == nil {
		if len(r.found) == 0 && r.at == cmp.Or(f.Cursor, 1<<63-1) {
			return search.Found{}, context.DeadlineExceeded // no step was made: to go on would not help
		}
		out.Next, err = r.at, nil
	}
	if err != nil {
		return search.Found{}, err
	}
	// It is told, not needed: in its own time.
	fresh, old, err := unindexed(ctx, s.read)
	out.Behind, out.More = max(0, fresh-searchTail)+old, fresh == indexCount || old == indexCount
	return out, err
}

func timeUp(ctx context.Context, err error) bool { return err != nil && ctx.Err() != nil }

// run is one search. All messages from at on are looked at.
type run struct {
	*Store
	f     search.Find
	at    ledger.MessageID
	found []ledger.Heading
}

func (r *run) full() bool { return len(r.found) >= r.f.N }

// search goes from the newest message to the oldest: the tail that is not in the
// index, then the index.
func (r *run) search(ctx context.Context) error {
	if r.f.Channels != nil && len(r.f.Channels) == 0 {
		return nil
	}
	if !r.f.Query.Before.IsZero() {
		r.at = min(r.at, ledger.IDAt(r.f.Query.Before))
	}
	var floor ledger.MessageID // nothing up to it is wanted
	if !r.f.Query.After.IsZero() {
		floor = max(0, ledger.IDAt(r.f.Query.After)-1)
	}
	at, err := r.read.Indexing(ctx)
	if err != nil {
		return err
	}
	var places []string
	for _, c := range r.f.Channels {
		places = append(places, place(c))
	}
	query := r.f.Query.FTS(places)
	if r.onlyDead() {
		return r.each(ctx, func(before ledger.MessageID) ([]int64, error) {
			return r.read.DeadBefore(ctx, db.DeadBeforeParams{Before: int64(before), After: int64(floor), N: searchPage})
		})
	}
	if query == "" { // the index is of no use
		return r.each(ctx, r.messages(ctx, floor, 1<<62))
	}
	if err := r.each(ctx, r.messages(ctx, max(floor, ledger.MessageID(at.High)), searchTail)); err != nil || r.full() {
		return err
	}
	r.at = min(r.at, ledger.MessageID(at.High)+1)
	later, err := r.read.Later(ctx, db.LaterParams{Before: int64(r.at), N: searchTail})
	if err != nil {
		return err
	}
	return r.each(ctx, func(before ledger.MessageID) ([]int64, error) {
		ids, err := r.read.SearchBefore(ctx, query, int64(floor), int64(before), searchPage)
		if err != nil {
			return nil, err
		}
		// Those that are still being made are in no index: they are looked at too.
		end := int64(floor)
		if len(ids) == searchPage {
			end = ids[len(ids)-1]
		}
		for _, id := range later {
			if id < int64(before) && id > end {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		slices.Reverse(ids)
		return slices.Compact(ids), nil
	})
}

// onlyDead reports that only failed and expired messages are wanted, which have an
// index of their own.
func (r *run) onlyDead() bool {
	return len(r.f.Query.States) > 0 && !slices.ContainsFunc(r.f.Query.States, func(s string) bool { return s != ledger.Failed.String() && s != ledger.Expired.String() })
}

// messages lists messages behind floor, up to most of them.
func (r *run) messages(ctx context.Context, floor ledger.MessageID, most int) func(ledger.MessageID) ([]int64, error) {
	return func(before ledger.MessageID) ([]int64, error) {
		if most <= 0 {
			return nil, nil
		}
		ids, err := r.read.MessagesBetween(ctx, db.MessagesBetweenParams{Before: int64(before), After: int64(floor), N: searchPage})
		most -= len(ids)
		return ids, err
	}
}

// each looks at the messages that list gives, until there are none or enough.
func (r *run) each(ctx context.Context, list func(before ledger.MessageID) ([]int64, error)) error {
	for !r.full() {
		ids, err := list(r.at)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := r.look(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}

// look reads messages and keeps those that are wanted.
func (r *run) look(ctx context.Context, ids []int64) error {
	w := walk{keys: map[int64]string{}}
	return r.walkers.within(ctx, func(rd *reader) error {
		for i, id := range ids {
			if err := r.walkers.stopped(ctx); err != nil {
				return err
			}
			row, _, there, err := w.step(rd, id)
			if err != nil {
				return err
			}
			if there {
				e := r.entry(row)
				if r.wants(&e) {
					r.found = append(r.found, ledger.Heading{ID: e.ID, Channel: e.Channel, Size: e.Size()})
				}
			}
			if r.at = ledger.MessageID(id); r.full() {
				return nil
			}
			if i%rowsAtOnce == rowsAtOnce-1 {
				r.GiveWay()
			}
		}
		return nil
	})
}

// wants reports whether a message is what is looked for. Also what the index gave
// is asked: it may say something else by now.
func (r *run) wants(e *ledger.Entry) bool {
	state := e.State.String()
	return (r.f.Channels == nil || slices.Contains(r.f.Channels, e.Channel)) && !slices.Contains(r.f.Except, e.Channel) &&
		(len(r.f.Query.States) == 0 || slices.Contains(r.f.Query.States, state)) && !slices.Contains(r.f.Query.Without.States, state) &&
		r.f.Query.Match(search.Text(e.Text, e.Parts), e.Origin.UserName+"\n"+e.Origin.UserID+"\n"+e.Origin.Agent)
}
