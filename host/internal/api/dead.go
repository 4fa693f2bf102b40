package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
)

// DeadLetter is a message that failed or expired.
type DeadLetter struct {
	ChannelID string  `json:"channel_id"`
	Channel   string  `json:"channel"`
	DiedAt    *Time   `json:"died_at" nullable:"true" doc:"When it failed or expired; null = it did neither"`
	Message   Message `json:"message"`
}

func (s *server) showLetter(row ledger.Channel, e *ledger.Entry) DeadLetter {
	out := DeadLetter{ChannelID: row.ID, Channel: row.Name, Message: s.showMessage(*e)}
	if e.State == ledger.Failed || e.State == ledger.Expired {
		out.DiedAt = when(e.Settled())
	}
	return out
}

type deadList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	NextCursor  string       `json:"next_cursor,omitempty"`
}

// AnyMessageRef names a message of any channel.
type AnyMessageRef struct {
	Message string `path:"message" maxLength:"64" doc:"The message's id"`
}

func (s *server) deadLetters() {
	huma.Register(s.api, s.gives(opens(auth.ScopeRead, byChannel, operation("GET", "/dead-letters", "list-dead-letters", "Messages that failed or expired, the last that did first: on their way out, or since no agent handled them", 200, 404, 422)), deadList{}), s.listDead)
	huma.Register(s.api, opens(auth.ScopeRead, byChannel, operation("GET", "/dead-letters/counts", "count-dead-letters", "How many messages failed or expired, by channel and reason", 200, 404)), s.countDead)
	huma.Register(s.api, opens(auth.ScopeSend, byChannel, operation("POST", "/dead-letters/{message}/replay", "replay-dead-letter", "Send a dead letter again, under its id, or hand it to the agent again", 202, 404, 409)), s.replayOne)
	huma.Register(s.api, s.gives(opens(auth.ScopeRead, byChannel, operation("GET", "/messages/{message}", "get-message", "One message, with all that happened to it", 200, 404)), Life{}), s.getMessage)
	s.replays()
}

func (s *server) listDead(ctx context.Context, in *struct {
	MessagePage
	Channel string `query:"channel" maxLength:"64" doc:"Only of this channel"`
	Reason  string `query:"reason" enum:"adapter_not_attached,rejected,queue_full,unknown_outcome,retries_exhausted,ttl,frame_too_large,agent_away,agent_timeout,agent_refused,agent_failed" doc:"Only for this reason"`
}) (*huma.StreamResponse, error) {
	behind, ok := ledger.ParseDeath(in.Cursor)
	if !ok {
		return nil, badCursor(in.Cursor)
	}
	key, err := s.keyOf(ctx, in.Channel)
	if err != nil {
		return nil, err
	}
	list, next, err := s.dead(ctx, key, ledger.Reason(in.Reason), behind, in.Limit)
	if err != nil {
		return nil, err
	}
	headings := make([]ledger.Heading, len(list))
	for i := range list {
		headings[i] = list[i].Heading
	}
	if n := ledger.Fitting(headings, in.MaxBytes); n < len(list) {
		headings, next = headings[:n], list[n-1].Death()
	}
	page, err := s.Pages.OpenList(ctx, headings)
	if err != nil {
		return nil, s.fault(err, "dead letters")
	}
	names := s.channelNames()
	return s.shown(page, `{"dead_letters":[`, func(ctx context.Context, e *ledger.Entry) (any, error) {
		row, there, err := names.of(ctx, e.Channel)
		if err != nil || !there { // deleted, and about to be swept
			return nil, err
		}
		return s.showLetter(row, e), nil
	}, func(early ledger.MessageID) any {
		if i := slices.IndexFunc(headings, func(h ledger.Heading) bool { return h.ID == early }); i >= 0 {
			return nextPage{list[i].Death().Cursor()}
		}
		return nextPage{next.Cursor()}
	}), nil
}

// maxPassed is how many dead letters of channels that are not there for a key
// are passed over for one page.
const maxPassed = 5000

// dead lists up to n dead letters of a channel, or of those that are there for who
// makes the request, the last that died first. The zero value of next = there are no
// more; a page may be shorter than n before that.
func (s *server) dead(ctx context.Context, channel int64, why ledger.Reason, behind ledger.Death, n int) (page []ledger.DeadHeading, next ledger.Death, err error) {
	sees, err := s.sees(ctx)
	if err != nil {
		return nil, ledger.Death{}, s.fault(err, "dead letters")
	}
	for read := 0; read < maxPassed; {
		found, err := s.Store.Dead(ctx, channel, why, behind, n)
		if err != nil {
			return nil, ledger.Death{}, s.fault(err, "dead letters")
		}
		for i := range found {
			if behind = found[i].Death(); sees(found[i].Channel) {
				if page = append(page, found[i]); len(page) == n {
					return page, behind, nil
				}
			}
		}
		if len(found) < n {
			return page, ledger.Death{}, nil
		}
		read += len(found)
	}
	return page, behind, nil
}

// keyOf is the key of a channel; 0 for "".
func (s *server) keyOf(ctx context.Context, ref string) (int64, error) {
	if ref == "" {
		return 0, nil
	}
	row, err := s.find(ctx, ref)
	return row.Key, err
}

// anyMessage finds a message of any channel that is there for who makes the
// request.
func (s *server) anyMessage(ctx context.Context, id string) (ledger.Heading, ledger.Channel, error) {
	mid, err := ledger.ParseMessageID(id)
	if err != nil {
		return ledger.Heading{}, ledger.Channel{}, field(http.StatusNotFound, "path.message", err.Error(), clip(id))
	}
	list, err := s.Store.HeadingsAfter(ctx, mid-1, 1)
	if err == nil && (len(list) == 0 || list[0].ID != mid) {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Heading{}, ledger.Channel{}, s.fault(err, "message "+id)
	}
	row, err := s.Store.ChannelByKey(ctx, list[0].Channel)
	if err == nil && !holderOf(ctx).Sees(row.ID) {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Heading{}, ledger.Channel{}, s.fault(err, "message "+id)
	}
	return list[0], row, nil
}

func (s *server) replayOne(ctx context.Context, in *AnyMessageRef) (*body[sentBody], error) {
	found, row, err := s.anyMessage(ctx, in.Message)
	if err != nil {
		return nil, err
	}
	e, err := s.Store.Message(ctx, found.ID)
	if err != nil {
		return nil, s.fault(err, "message "+in.Message)
	}
	if err := s.Hub.Replay(ctx, row, e); err != nil {
		if errors.Is(err, hub.ErrNotDead) || errors.Is(err, hub.ErrRefused) {
			return nil, huma.Error409Conflict("message " + in.Message + " is " + e.State.String() + ": " + err.Error())
		}
		return nil, s.sendFault(err, row.Name)
	}
	s.note(ctx, "dead.replay", row.Name, map[string]string{"message": in.Message})
	state := ledger.Queued
	if e.Direction == ledger.In {
		state = ledger.Received
	}
	return &body[sentBody]{sentBody{e.ID.String(), state.String(), []render.Note{}}}, nil
}

// note adds a line to the audit log for what was done already.
func (s *server) note(ctx context.Context, action, target string, detail any) {
	if err := s.Store.Note(ctx, s.by(ctx, action, target, detail)); err != nil {
		s.Log.Error("audit line not written", "action", action, "error", err)
	}
}
