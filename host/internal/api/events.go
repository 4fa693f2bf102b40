package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// keepAlive is how often an idle event stream shows that it lives.
const keepAlive = 15 * time.Second

// maxResume bounds what a reader that comes back is sent again; one further
// behind is told that there is a gap.
const maxResume = 5000

// maxChanged is how far back a reader that comes back is told of states that have
// changed.
const maxChanged = 1000

// maxGather is how many events may wait for one write.
const maxGather = 256

// only is of what a reader of events wants to know: all, what concerns a channel,
// or a conversation of it.
type only struct {
	channel      *ledger.Channel // nil = all
	conversation *string         // nil = all
	streaming    bool            // also the text of answers while they are written
}

// only reads the query of the stream; false if it has answered.
func (s *server) only(w http.ResponseWriter, r *http.Request) (only, bool) {
	q := r.URL.Query()
	o := only{streaming: q.Get("streaming") == "true"}
	if ref := q.Get("channel"); ref != "" {
		row, err := s.find(r.Context(), ref)
		if err != nil {
			s.refuse(w, err)
			return o, false
		}
		o.channel = &row
	}
	if q.Has("conversation") {
		if o.channel == nil {
			problem(w, http.StatusUnprocessableEntity, "query conversation: found no channel, expected the channel that it is of")
			return o, false
		}
		key := q.Get("conversation")
		o.conversation = &key
	}
	return o, true
}

// wants is for hub.Events. Of the channel of a conversation it is also told who
// attaches.
func (o only) wants(ev *hub.Event) bool {
	switch {
	case ev.Type == hub.EventStreaming && !o.streaming:
		return false
	case o.channel == nil:
		return true
	case ev.Type == hub.EventPlugin:
		return ev.ChannelName == o.channel.Name
	case ev.ChannelID != o.channel.ID:
		return false
	}
	return o.conversation == nil || !ofMessage(ev.Type) || ev.Conversation == *o.conversation
}

func ofMessage(t hub.EventType) bool {
	return t == hub.EventCreated || t == hub.EventState || t == hub.EventStreaming
}

// events is the SSE stream of what happens, to all or to those that are asked for. The id of a message.created event
// is the message's; with Last-Event-ID the stream starts behind it, or says
// with a gap event that it can't. With streaming=true it also has the text of
// answers while they are written.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	r, h, ok := s.enter(w, r, auth.ScopeRead, byChannel)
	if !ok {
		return
	}
	leave, ok := s.readers.enter(h.Ref())
	if !ok {
		w.Header().Set("Retry-After", "10")
		problem(w, http.StatusTooManyRequests, fmt.Sprintf("found %d event streams of one key, expected at most that: end one, or try again once one has ended", maxReaders))
		return
	}
	defer leave()
	ctx, end := s.lease(r.Context())
	defer end()
	r = r.WithContext(ctx)
	var last ledger.MessageID
	if h := r.Header.Get("Last-Event-ID"); h != "" {
		var err error
		if last, err = ledger.ParseMessageID(h); err != nil {
			problem(w, http.StatusUnprocessableEntity, "header Last-Event-ID: "+err.Error())
			return
		}
	}
	filter, ok := s.only(w, r)
	if !ok {
		return
	}
	if last != 0 { // it will read much: not if there is no room now
		share, err := s.Pages.Hold(ctx, paging.Chunk)
		if err != nil {
			s.refuse(w, s.fault(err, "events"))
			return
		}
		share.Release()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	e := &stream{sse: newSSE(w), s: s, holder: h, last: last, only: filter}
	defer e.endWith(ctx)()
	if err := e.run(r); errors.Is(err, os.ErrDeadlineExceeded) {
		s.Log.Info("event stream ended: its reader took nothing", "remote", r.RemoteAddr, "within", takeIn)
	} else if err != nil {
		s.Log.Debug("event stream ended", "remote", r.RemoteAddr, "error", err)
	}
}

// stream is one reader of events.
type stream struct {
	*sse
	s      *server
	holder auth.Holder
	last   ledger.MessageID // newest message that the reader has
	only   only
	wrote  time.Time // when events were sent last
}

func (e *stream) run(r *http.Request) error {
	// Subscribed first, so that nothing falls between history and now.
	events, cancel := e.s.Hub.Events.SubscribeTo(e.only.wants)
	defer cancel()
	if err := e.write(": pontoon\n\n"); err != nil {
		return err
	}
	if last := e.last; last != 0 {
		if err := e.resume(r); err != nil {
			return err
		}
		if err := e.changed(r.Context(), last); err != nil {
			return err
		}
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-e.s.stop.Done():
			return nil
		case <-tick.C:
			if err := e.write(": alive\n\n"); err != nil {
				return err
			}
		case ev, ok := <-events:
			if !ok { // too slow: it comes back with the last id it has
				return e.write("event: gap\ndata: {\"reason\":\"too slow\"}\n\n")
			}
			if err := e.rest(r.Context()); err != nil {
				return err
			}
			if err := e.event(r.Context(), ev); err != nil {
				return err
			}
			if err := e.pending(r.Context(), events); err != nil {
				return err
			}
		}
	}
}

// eventPause is how soon after a write the next one of a stream may follow: an event
// that comes alone is sent at once, and when much happens one write has many.
const eventPause = 10 * time.Millisecond

// rest waits until the stream may write again.
func (e *stream) rest(ctx context.Context) error {
	left := eventPause - time.Since(e.wrote)
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.s.stop.Done(): // run sees it once it has sent what is there
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// pending sends what has gathered meanwhile with the event before, at once: a
// write for each event would cost all others when much happens.
func (e *stream) pending(ctx context.Context, events <-chan *hub.Event) error {
	defer func() { e.wrote = time.Now() }()
	for n := 0; n < maxGather && len(events) > 0; n++ {
		ev, ok := <-events
		if !ok {
			break // run sees it too
		}
		if err := e.event(ctx, ev); err != nil {
			return err
		}
	}
	return e.flush()
}

func (e *stream) resume(r *http.Request) error {
	gone, err := e.s.Store.NewestGone(r.Context())
	if err != nil {
		return err
	}
	if gone > e.last {
		if err := e.write("event: gap\ndata: {\"reason\":\"messages were deleted\"}\n\n"); err != nil {
			return err
		}
	}
	if e.only.channel != nil {
		return e.resumeOnly(r.Context())
	}
	for n := 0; ; {
		list, err := e.s.Store.HeadingsAfter(r.Context(), e.last, 500)
		if err != nil || len(list) == 0 {
			return err
		}
		if n += len(list); n > maxResume {
			return e.tooFar()
		}
		if err := e.created(r.Context(), list); err != nil {
			return err
		}
		e.last = list[len(list)-1].ID // also if it is deleted, or of no channel
	}
}

func (e *stream) tooFar() error {
	return e.write("event: gap\ndata: {\"reason\":\"too far behind\"}\n\n")
}

// resumeOnly is resume for a reader of one channel, whatever happened in the
// others.
func (e *stream) resumeOnly(ctx context.Context) error {
	scope := ledger.Scope{Channel: e.only.channel.Key, Conversation: e.only.conversation}
	var missed []ledger.Heading
	for before, more := ledger.MessageID(0), true; more; {
		list, err := e.s.Store.Headings(ctx, scope, before, 500)
		if err != nil {
			return err
		}
		more = len(list) == 500
		for _, m := range list {
			if before = m.ID; m.ID <= e.last {
				more = false
				break
			}
			missed = append(missed, m)
		}
		if len(missed) > maxResume {
			return e.tooFar()
		}
	}
	slices.Reverse(missed)
	return e.created(ctx, missed)
}

// created tells of messages that a reader missed.
func (e *stream) created(ctx context.Context, list []ledger.Heading) error {
	return e.each(ctx, list, func(m *ledger.Entry, row ledger.Channel) *hub.Event {
		return &hub.Event{Type: hub.EventCreated, ID: m.ID, ChannelID: row.ID, ChannelName: row.Name, Conversation: m.Conversation, Message: *m}
	})
}

// each sends an event for each message of a list, while it is read.
func (e *stream) each(ctx context.Context, list []ledger.Heading, event func(*ledger.Entry, ledger.Channel) *hub.Event) error {
	names, n := e.s.channelNames(), 0
	for {
		page, err := e.s.Pages.OpenList(ctx, list)
		if err == nil {
			err = page.Each(ctx, e.hold, func(m *ledger.Entry) error {
				row, there, err := names.of(ctx, m.Channel)
				if err != nil || !there { // deleted meanwhile
					return err
				}
				e.s.pace(n)
				n++
				return e.show(event(m, row))
			})
			if err == nil {
				err = e.flush() // while there is room for what it holds
			}
			e.until = time.Time{}
			list = page.Left()
			page.Close()
		}
		if err == nil {
			return e.flush()
		}
		if !errors.Is(err, paging.ErrFull) {
			return err
		}
		if err := e.write(": alive\n\n"); err != nil { // who waits for room may wait for long
			return err
		}
	}
}

// changed tells what became of the messages that a reader had which comes back.
func (e *stream) changed(ctx context.Context, last ledger.MessageID) error {
	list, err := e.s.Store.ChangedSince(ctx, last, maxChanged)
	if err != nil {
		return err
	}
	if e.only.channel != nil {
		list = slices.DeleteFunc(list, func(h ledger.Heading) bool { return h.Channel != e.only.channel.Key })
	}
	return e.each(ctx, list, func(m *ledger.Entry, row ledger.Channel) *hub.Event {
		return &hub.Event{
			Type: hub.EventState, ChannelID: row.ID, ChannelName: row.Name, Conversation: m.Conversation, ID: m.ID, State: m.State, Reason: m.Reason, Message: *m,
		}
	})
}

// largeEvent is of how many bytes of a message on an event waits for room: what is
// shorter has passed by then.
const largeEvent = 16 << 10

// event sends what happened now.
func (e *stream) event(ctx context.Context, ev *hub.Event) error {
	size := ev.Size()
	if size < largeEvent {
		return e.show(ev)
	}
	for {
		share, err := e.s.Pages.Hold(ctx, size)
		if err == nil {
			e.hold(int64(size))
			if err = e.show(ev); err == nil {
				err = e.flush()
			}
			e.until = time.Time{}
			share.Release()
		}
		if !errors.Is(err, paging.ErrFull) {
			return err
		}
	}
}

// show gathers an event, if the reader wants it.
func (e *stream) show(ev *hub.Event) error {
	if !e.sees(ev) || !e.only.wants(ev) {
		return nil
	}
	if ev.Type == hub.EventCreated {
		if ev.ID <= e.last {
			return nil // came with the history
		}
		e.last = ev.ID
	}
	if ev.Size() >= largeEvent { // none is kept beyond the room that there is for it
		return e.gather(e.s.encodeEvent(ev))
	}
	return e.gather(ev.Encoded(e.s.encodeEvent))
}

// sees reports whether what happened is there for the reader: what is about the
// whole host is not for one who is limited to channels.
func (e *stream) sees(ev *hub.Event) bool {
	if !e.holder.Limited() {
		return true
	}
	if ev.ChannelID == "" {
		return ev.Type == hub.EventPlugin && e.s.seesNamed(e.s.stop, e.holder, ev.ChannelName)
	}
	return e.holder.Sees(ev.ChannelID)
}

// describeEvents adds the stream to the description.
func (s *server) describeEvents() {
	op := opens(auth.ScopeRead, byChannel, operation("GET", "/events", "stream-events",
		"What happens, as server-sent events: message.created, message.state, adapter.attached, adapter.detached, adapter.platform, plugin.state, agent.attached, agent.detached, and gap", http.StatusOK))
	op.Parameters = []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "Go on behind this event, the id of a message.created", Schema: &huma.Schema{Type: huma.TypeString}}}
	op.Responses = responses("text/event-stream", 401, 403, 422, 429)
	s.api.OpenAPI().AddOperation(&op)
}
