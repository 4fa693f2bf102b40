package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"

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
	Message   Message `json:"message"`
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
	huma.Register(s.api, s.gives(opens(auth.ScopeRead, byChannel, operation("GET", "/dead-letters", "list-dead-letters", "Messages that failed or expired, newest first: on their way out, or since no agent handled them", 200, 404, 422)), deadList{}), s.listDead)
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
	before, err := in.after()
	if err != nil {
		return nil, err
	}
	key, err := s.keyOf(ctx, in.Channel)
	if err != nil {
		return nil, err
	}
	list, next, err := s.dead(ctx, key, ledger.Reason(in.Reason), ledger.MessageID(before), in.Limit)
	if err != nil {
		return nil, err
	}
	if n := ledger.Fitting(list, in.MaxBytes); n < len(list) {
		list, next = list[:n], list[n-1].ID
	}
	page, err := s.Pages.OpenList(ctx, list)
	if err != nil {
		return nil, s.fault(err, "dead letters")
	}
	names := s.channelNames()
	return s.shown(page, `{"dead_letters":[`, func(ctx context.Context, e *ledger.Entry) (any, error) {
		row, there, err := names.of(ctx, e.Channel)
		if err != nil || !there { // deleted, and about to be swept
			return nil, err
		}
		return DeadLetter{row.ID, row.Name, s.showMessage(*e)}, nil
	}, func(early ledger.MessageID) any {
		return nextPage{cursorOf(cmp.Or(early, next))}
	}), nil
}

// maxPassed is how many dead letters of channels that are not there for a key
// are passed over for one page.
const maxPassed = 5000

// dead lists up to n dead letters of a channel, or of those that are there for who
// makes the request, newest first. next 0 = there are no more; a page may be
// shorter than n before that.
func (s *server) dead(ctx context.Context, channel int64, why ledger.Reason, before ledger.MessageID, n int) (page []ledger.Heading, next ledger.MessageID, err error) {
	sees, err := s.sees(ctx)
	if err != nil {
		return nil, 0, s.fault(err, "dead letters")
	}
	for read := 0; read < maxPassed; {
		found, err := s.Store.Dead(ctx, channel, why, before, n)
		if err != nil {
			return nil, 0, s.fault(err, "dead letters")
		}
		for _, e := range found {
			if before = e.ID; sees(e.Channel) {
				if page = append(page, e); len(page) == n {
					return page, before, nil
				}
			}
		}
		if len(found) < n {
			return page, 0, nil
		}
		read += len(found)
	}
	return page, before, nil
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
