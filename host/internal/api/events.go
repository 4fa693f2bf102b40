package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
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
	w.Header().Set("Content-Type", "text/event-stream")
	e := &stream{sse: newSSE(w), s: s, holder: h, last: last, only: filter}
	if err := e.run(r); err != nil {
		s.Log.Debug("event stream ended", "remote", r.RemoteAddr, "error", err)
	}
}

// sse writes server-sent events to one reader.
type sse struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newSSE(w http.ResponseWriter) *sse { return &sse{w, http.NewResponseController(w)} }

// write sends text at once; a reader that takes nothing for 10 s is given up.
func (e *sse) write(text string) error {
	if err := e.gather(text); err != nil {
		return err
	}
	return e.c.Flush()
}

// gather is write, but that the text may wait for the next Flush.
func (e *sse) gather(text string) error {
	_ = e.c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, err := e.w.Write([]byte(text))
	return err
}

// stream is one reader of events.
type stream struct {
	*sse
	s      *server
	holder auth.Holder
	last   ledger.MessageID // newest message that the reader has
	only   only
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
			if err := e.event(ev); err != nil {
				return err
			}
			if err := e.pending(events); err != nil {
				return err
			}
		}
	}
}

// pending sends what has gathered meanwhile with the event before, at once: a
// write for each event would cost all others when much happens.
func (e *stream) pending(events <-chan hub.Event) error {
	for n := 0; n < maxGather && len(events) > 0; n++ {
		ev, ok := <-events
		if !ok {
			break // run sees it too
		}
		if err := e.event(ev); err != nil {
			return err
		}
	}
	return e.c.Flush()
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
		entries, err := e.s.Store.After(r.Context(), e.last, 500)
		if err != nil {
			return err
		}
		for _, m := range entries {
			if n++; n > maxResume {
				return e.write("event: gap\ndata: {\"reason\":\"too far behind\"}\n\n")
			}
			row, err := e.s.Store.ChannelByKey(r.Context(), m.Channel)
			if err != nil { // deleted meanwhile
				e.last = m.ID
				continue
			}
			if err := e.event(hub.Event{Type: hub.EventCreated, ID: m.ID, ChannelID: row.ID, ChannelName: row.Name, Message: m}); err != nil {
				return err
			}
		}
		if err := e.c.Flush(); err != nil || len(entries) < 500 {
			return err
		}
	}
}

// resumeOnly is resume for a reader of one channel, whatever happened in the
// others.
func (e *stream) resumeOnly(ctx context.Context) error {
	scope := ledger.Scope{Channel: e.only.channel.Key, Conversation: e.only.conversation}
	var missed []ledger.Entry
	for before, more := ledger.MessageID(0), true; more; {
		page, err := e.s.Store.Before(ctx, scope, before, 500)
		if err != nil {
			return err
		}
		more = ledger.PageFull(page, 500)
		for _, m := range page {
			if before = m.ID; m.ID <= e.last {
				more = false
				break
			}
			missed = append(missed, m)
		}
		if len(missed) > maxResume {
			return e.write("event: gap\ndata: {\"reason\":\"too far behind\"}\n\n")
		}
	}
	for i, m := range slices.Backward(missed) {
		if err := e.event(hub.Event{Type: hub.EventCreated, ID: m.ID, ChannelID: e.only.channel.ID, ChannelName: e.only.channel.Name, Message: m}); err != nil {
			return err
		}
		e.s.pace(i)
	}
	return e.c.Flush()
}

// changed tells what became of the messages that a reader had which comes back.
func (e *stream) changed(ctx context.Context, last ledger.MessageID) error {
	entries, err := e.s.Store.ChangedSince(ctx, last, maxChanged)
	if err != nil {
		return err
	}
	for _, m := range entries {
		row, err := e.s.Store.ChannelByKey(ctx, m.Channel)
		if err != nil { // deleted meanwhile
			continue
		}
		ev := hub.Event{
			Type: hub.EventState, ChannelID: row.ID, ChannelName: row.Name, Conversation: m.Conversation, ID: m.ID, State: m.State, Reason: m.Reason, Message: m,
		}
		if !e.only.wants(&ev) {
			continue
		}
		if err := e.event(ev); err != nil {
			return err
		}
	}
	return e.c.Flush()
}

func (e *stream) event(ev hub.Event) error {
	if !e.sees(ev) {
		return nil
	}
	var data any
	id := ""
	switch ev.Type {
	case hub.EventCreated:
		if ev.ID <= e.last {
			return nil // came with the history
		}
		e.last = ev.ID
		id = "id: " + ev.ID.String() + "\n"
		data = struct {
			ChannelID string  `json:"channel_id"`
			Channel   string  `json:"channel"`
			Message   Message `json:"message"`
		}{ev.ChannelID, ev.ChannelName, e.s.showMessage(ev.Message)}
	case hub.EventState:
		state := struct {
			ChannelID string   `json:"channel_id"`
			Channel   string   `json:"channel"`
			ID        string   `json:"id"`
			State     string   `json:"state"`
			Reason    string   `json:"reason,omitempty"`
			Message   *Message `json:"message,omitempty"` // if what it says is known only now
		}{ev.ChannelID, ev.ChannelName, ev.ID.String(), ev.State.String(), string(ev.Reason), nil}
		if ev.Message.ID != 0 {
			shown := e.s.showMessage(ev.Message)
			state.Message = &shown
		}
		data = state
	case hub.EventStreaming:
		data = struct {
			ChannelID string `json:"channel_id"`
			Channel   string `json:"channel"`
			ID        string `json:"id"`
			Text      string `json:"text"` // all of it so far
		}{ev.ChannelID, ev.ChannelName, ev.ID.String(), ev.Text}
	case hub.EventPlugin:
		data = struct {
			ChannelID string `json:"channel_id,omitempty"`
			Name      string `json:"name"`
			State     string `json:"state"`
			Reason    string `json:"reason,omitempty"`
		}{ev.ChannelID, ev.ChannelName, ev.Plugin, string(ev.Reason)}
	case hub.EventAgentAttached, hub.EventAgentDetached:
		data = struct {
			Agent string `json:"agent"`
			Since *Time  `json:"since" nullable:"true"`
		}{ev.Agent, when(ev.Since)}
	default:
		data = showAdapter(ev.ChannelID, ev.ChannelName, ev.Attachment)
	}
	return e.gather(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, ev.Type, mustJSON(data)))
}

// sees reports whether what happened is there for the reader: what is about the
// whole host is not for one who is limited to channels.
func (e *stream) sees(ev hub.Event) bool {
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
		"What happens, as server-sent events: message.created, message.state, adapter.attached, adapter.detached, plugin.state, agent.attached, agent.detached, and gap", http.StatusOK))
	op.Parameters = []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "Go on behind this event, the id of a message.created", Schema: &huma.Schema{Type: huma.TypeString}}}
	op.Responses = responses("text/event-stream", 401, 403, 422)
	s.api.OpenAPI().AddOperation(&op)
}
