package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Replay is a replay of many dead letters: how far it is.
type Replay struct {
	ID        string `json:"id"`
	ChannelID string `json:"channel_id,omitempty" doc:"Whose dead letters; empty = all channels'"`
	Channel   string `json:"channel,omitempty"`
	State     string `json:"state" enum:"running,done,stopped" doc:"done = all are on their way, or left; what became of them waiting, arrived and dead_again tell, also later"`
	Total     int    `json:"total" doc:"How many it is to replay"`
	Replayed  int    `json:"replayed" doc:"How many are on their way again"`
	Left      int    `json:"left" doc:"How many could not be, such as those of a channel without adapter and queue"`
	Waiting   int    `json:"waiting" doc:"Of those on their way: how many wait for the adapter or the agent, or for its word"`
	Arrived   int    `json:"arrived" doc:"Of those on their way: how many were delivered, written to an adapter that can't confirm, or handled by the agent"`
	DeadAgain int    `json:"dead_again" doc:"Of those on their way: how many failed or expired again"`
	Why       string `json:"why,omitempty" doc:"Why the last that is left could not be"`
	Began     Time   `json:"began_at"`
	Ended     *Time  `json:"ended_at" nullable:"true"`
}

type replayList struct {
	Replays []Replay `json:"replays"`
}

// ReplayRef names a replay of many.
type ReplayRef struct {
	Replay string `path:"replay" maxLength:"64" doc:"The replay's id"`
}

type replayed struct {
	Replayed int `json:"replayed" doc:"How many are on their way again"`
	Left     int `json:"left" doc:"How many could not be, such as those of a channel without adapter and queue"`
}

// maxReplay bounds what one request sends again.
const maxReplay = 10_000

func (s *server) replays() {
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("POST", "/dead-letters/replay", "replay-dead-letters", "Send all dead letters again, oldest first, or those of a channel, 10,000 at most; answers when it is over. /dead-letters/replays does not wait", 202, 404)), s.replayAll)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("POST", "/dead-letters/replays", "begin-replay", "Begin to send all dead letters again, oldest first, or those of a channel, 10,000 at most. If that goes on already it is answered as it is", 202, 404, 409)), s.beginReplay)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("GET", "/dead-letters/replays", "list-replays", "Replays of many dead letters that go on, and the last that ended since the host began; newest first", 200)), s.listReplays)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("GET", "/dead-letters/replays/{replay}", "get-replay", "How far a replay of many dead letters is", 200, 404)), s.getReplay)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("DELETE", "/dead-letters/replays/{replay}", "stop-replay", "Stop a replay of many dead letters: those that it did not come to stay where they are", 204, 404)), s.stopReplay)
}

// letters are the last dead letters of a channel, or of those that are there for
// who makes the request, oldest first.
func (s *server) letters(ctx context.Context, channel int64) ([]hub.Letter, error) {
	var all []hub.Letter
	for next := (ledger.Death{}); ; {
		page, after, err := s.dead(ctx, channel, "", next, 500)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			all = append(all, hub.Letter{ID: e.ID, Channel: e.Channel})
		}
		if next = after; next.ID == 0 || len(all) >= maxReplay {
			break
		}
	}
	slices.SortFunc(all, func(a, b hub.Letter) int { return cmp.Compare(a.ID, b.ID) }) // in the order that they were written in
	return all, nil
}

func (s *server) replayAll(ctx context.Context, in *struct {
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
}) (*body[replayed], error) {
	key, err := s.keyOf(ctx, in.Channel)
	if err != nil {
		return nil, err
	}
	all, err := s.letters(ctx, key)
	if err != nil {
		return nil, err
	}
	var out replayed
	err = s.Hub.ReplayAll(ctx, all, func(err error) {
		if err == nil {
			out.Replayed++
		} else {
			out.Left++
		}
	})
	s.note(context.WithoutCancel(ctx), "dead.replay", in.Channel, out)
	if err != nil {
		return nil, s.fault(err, "dead letters")
	}
	return &body[replayed]{out}, nil
}

func (s *server) beginReplay(ctx context.Context, in *struct {
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
}) (*body[Replay], error) {
	if h := holderOf(ctx); in.Channel == "" && h.Limited() {
		return nil, huma.Error403Forbidden("the key " + h.Name + " is limited to channels: name one of them")
	}
	var row ledger.Channel
	if in.Channel != "" {
		var err error
		if row, err = s.find(ctx, in.Channel); err != nil {
			return nil, err
		}
	}
	all, err := s.letters(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	by := context.WithoutCancel(ctx) // it goes on when the request is over
	r, err := s.Hub.BeginReplay(row.Key, all, func(r hub.Replaying) {
		s.note(by, "dead.replay", row.Name, replayed{r.Replayed, r.Left})
	})
	switch {
	case errors.Is(err, hub.ErrReplaying):
		return nil, huma.Error409Conflict(err.Error())
	case errors.Is(err, hub.ErrClosed):
		return nil, huma.Error503ServiceUnavailable(err.Error())
	case err != nil:
		return nil, s.fault(err, "dead letters")
	}
	return &body[Replay]{s.showReplay(r, row)}, nil
}

func (s *server) listReplays(ctx context.Context, _ *struct{}) (*body[replayList], error) {
	out := replayList{Replays: []Replay{}}
	for _, r := range s.Hub.Replays() {
		shown, err := s.seenReplay(ctx, r)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, s.fault(err, "replays")
		}
		out.Replays = append(out.Replays, shown)
	}
	return &body[replayList]{out}, nil
}

func (s *server) getReplay(ctx context.Context, in *ReplayRef) (*body[Replay], error) {
	r, err := s.findReplay(ctx, in.Replay)
	if err != nil {
		return nil, err
	}
	return &body[Replay]{r}, nil
}

func (s *server) stopReplay(ctx context.Context, in *ReplayRef) (*struct{}, error) {
	r, err := s.findReplay(ctx, in.Replay)
	if err != nil {
		return nil, err
	}
	if err := s.Hub.StopReplay(r.ID); err != nil {
		return nil, noReplay(in.Replay)
	}
	return nil, nil
}

// findReplay is a replay that is there for who makes the request.
func (s *server) findReplay(ctx context.Context, id string) (Replay, error) {
	for _, r := range s.Hub.Replays() {
		if r.ID != id {
			continue
		}
		shown, err := s.seenReplay(ctx, r)
		if err == nil || !errors.Is(err, ledger.ErrNotFound) {
			return shown, err
		}
	}
	return Replay{}, noReplay(id)
}

// noReplay says that there is none; it may have been before the host began.
func noReplay(id string) error {
	return field(http.StatusNotFound, "path.replay", "no such replay since the host began, or it ended long ago", clip(id))
}

// seenReplay shows a replay to who makes the request. The error is ledger.ErrNotFound
// where it is not there for them, or its channel is deleted.
func (s *server) seenReplay(ctx context.Context, r hub.Replaying) (Replay, error) {
	h := holderOf(ctx)
	if r.Channel == 0 {
		if h.Limited() {
			return Replay{}, ledger.ErrNotFound
		}
		return s.showReplay(r, ledger.Channel{}), nil
	}
	row, err := s.Store.ChannelByKey(ctx, r.Channel)
	if err == nil && !h.Sees(row.ID) {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return Replay{}, err
	}
	return s.showReplay(r, row), nil
}

func (s *server) showReplay(r hub.Replaying, row ledger.Channel) Replay {
	out := Replay{ID: r.ID, ChannelID: row.ID, Channel: row.Name, State: "running", Total: r.Total, Replayed: r.Replayed, Left: r.Left, Waiting: r.Waiting, Arrived: r.Arrived, DeadAgain: r.Dead, Began: timeOf(r.Began)}
	if !r.Ended.IsZero() {
		out.State, out.Ended = "done", when(r.Ended)
		if r.Stopped {
			out.State = "stopped"
		}
	}
	if r.Why != nil {
		out.Why = s.whyLeft(r.Why)
	}
	return out
}

// whyLeft says why a dead letter could not be replayed, without what only the log
// is to know.
func (s *server) whyLeft(err error) string {
	for _, known := range []error{hub.ErrNotAttached, hub.ErrQueueFull, hub.ErrNotDead, hub.ErrRefused} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return "it was deleted meanwhile"
	case ledger.Failing(err):
		return "storage is unavailable"
	}
	return "internal error"
}
