package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/wallclock"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// EventType names what happened.
type EventType string

// The events of the stream.
const (
	EventCreated  EventType = "message.created"
	EventState    EventType = "message.state"
	EventAttached EventType = "adapter.attached"
	EventDetached EventType = "adapter.detached"
	EventPlatform EventType = "adapter.platform" // its platform is in another state
	EventPlugin   EventType = "plugin.state"

	// EventStreaming is how far an answer has come that is being made. It comes as
	// often as the far end is shown it, to subscribers that want it by SubscribeTo.
	EventStreaming EventType = "message.streaming"

	EventAgentAttached EventType = "agent.attached"
	EventAgentDetached EventType = "agent.detached"
)

// Event is one thing that happened. Which fields count follows from Type.
type Event struct {
	Type        EventType
	ChannelID   string
	ChannelName string
	// Conversation is whose message it is: created, state, streaming.
	Conversation string
	Message      ledger.Entry // created; state, if what it says is known only now
	ID           ledger.MessageID
	State        ledger.State
	Reason       ledger.Reason
	Attachment   Summary
	Plugin       string // its new state; its name is the channel's
	Agent        string
	Since        time.Time // of an agent: that it is there, or away
	Text         string    // streaming: all that there is of the answer

	shared *encoded // nil = it was not published
}

// encoded is an event as readers are sent it. It is made once for all who want it.
type encoded struct {
	mu   sync.Mutex // guards what follows
	made bool
	text string // "" = it is too long to be kept
}

// moreEncoded is how much longer than twice its event a text may be that is kept with
// it: so what waits for subscribers stays bounded by what their events hold.
const moreEncoded = 1 << 10

// Encoded is what encode makes of the event. For one that was published it is called
// once, whoever asks, and must make the same for all; a text that is much longer than
// the event is made anew for each.
func (ev *Event) Encoded(encode func(*Event) string) string {
	if ev.shared == nil {
		return encode(ev)
	}
	e := ev.shared
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made && e.text != "" {
		return e.text
	}
	text := encode(ev)
	if e.made = true; len(text) <= 2*ev.Size()+moreEncoded {
		e.text = text
	}
	return text
}

// Events hands events to subscribers. A subscriber that does not keep up is
// cut off: its channel is closed, and it reads what it missed from history.
type Events struct {
	any  atomic.Int32                // subscribers; spares the happy path the mutex
	mu   sync.Mutex                  // guards subs
	subs map[chan *Event]*subscriber // by where its events go
}

// eventBuffer and eventBytes are how far a subscriber may fall behind: in events, and
// in bytes of the messages in them.
const (
	eventBuffer = 1024
	eventBytes  = 4 << 20

	allEventBytes   = 64 << 20  // of all subscribers: the more there are, the less each may fall behind …
	leastEventBytes = 256 << 10 // … but as far as this
)

// subscriber knows how much waits in its channel. Events.mu guards it.
type subscriber struct {
	want  func(*Event) bool // nil = all but EventStreaming
	sizes [eventBuffer]int  // of what was sent last: a ring
	first int               // the oldest of them that waits
	n     int               // how many wait
	bytes int               // of them together
}

// room reports whether one more event may wait in ch, where no more than so many bytes
// may.
func (s *subscriber) room(ch chan *Event, size, most int) bool {
	for waiting := len(ch); s.n > waiting; s.n-- { // what was taken meanwhile
		s.bytes -= s.sizes[s.first]
		s.first = (s.first + 1) % eventBuffer
	}
	return s.n == 0 || s.n < eventBuffer && s.bytes+size <= most
}

// sent counts an event that waits in the channel now.
func (s *subscriber) sent(size int) {
	s.sizes[(s.first+s.n)%eventBuffer] = size
	s.n++
	s.bytes += size
}

// Size is how many bytes of a message an event holds.
func (ev *Event) Size() int {
	if ev.Message.ID == 0 {
		return len(ev.Text)
	}
	return len(ev.Text) + ev.Message.Size()
}

// Subscribe returns a channel of all events but EventStreaming, and what ends it. All
// subscribers get the same events: nobody may change one.
func (e *Events) Subscribe() (<-chan *Event, func()) { return e.SubscribeTo(nil) }

// SubscribeTo is Subscribe for the events that are wanted; nil = all. want must
// not block.
func (e *Events) SubscribeTo(want func(*Event) bool) (<-chan *Event, func()) {
	ch := make(chan *Event, eventBuffer)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subs == nil {
		e.subs = map[chan *Event]*subscriber{}
	}
	e.subs[ch] = &subscriber{want: want}
	e.any.Add(1)
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.drop(ch)
	}
}

func (e *Events) drop(ch chan *Event) {
	if _, ok := e.subs[ch]; ok {
		delete(e.subs, ch)
		close(ch)
		e.any.Add(-1)
	}
}

// Subscribers is how many listen.
func (e *Events) Subscribers() int { return int(e.any.Load()) }

// wanted reports whether anybody listens.
func (e *Events) wanted() bool { return e.any.Load() > 0 }

// PluginState tells of a plugin's new state. It does not block.
func (e *Events) PluginState(name, state, reason string) {
	e.publish(Event{Type: EventPlugin, ChannelName: name, Plugin: state, Reason: ledger.Reason(reason)})
}

func (e *Events) publish(ev Event) {
	if !e.wanted() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	size, one := ev.Size(), new(Event)
	*one = ev
	one.shared = new(encoded)
	most := min(eventBytes, max(leastEventBytes, allEventBytes/max(1, len(e.subs))))
	for ch, sub := range e.subs {
		if sub.want == nil && ev.Type == EventStreaming || sub.want != nil && !sub.want(one) {
			continue
		}
		if !sub.room(ch, size, most) {
			e.drop(ch)
			continue
		}
		ch <- one // has room: nobody else sends
		sub.sent(size)
	}
}

// created publishes committed rows; in.ID 0 = there is no inbound one.
func (h *Hub) created(c *Channel, conv *conversation, in ledger.Row, out []ledger.Row) {
	ch := c.lock()
	row := ch.policy.Channel
	ch.unlock()
	one := func(r ledger.Row) {
		e, err := h.Store.Entry(r, conv.Conversation)
		if err != nil {
			h.Log.Error("event not made", "message", r.ID, "error", err)
			return
		}
		h.Events.publish(Event{Type: EventCreated, ChannelID: row.ID, ChannelName: row.Name, Conversation: conv.Key, ID: r.ID, Message: e})
	}
	if in.ID != 0 {
		one(in)
	}
	for i := range out {
		one(out[i])
	}
}

// stateChanged publishes a message's new state.
func (ch *locked) stateChanged(conv *conversation, id ledger.MessageID, s ledger.State, why ledger.Reason) {
	if s == ledger.Sent && ch.taker().acked() { // its adapter is still to say what became of it
		ch.c.hub.replayings.moved(id, ledger.Queued)
	} else {
		ch.c.hub.replayings.moved(id, s)
	}
	ch.c.hub.Events.publish(Event{Type: EventState, ChannelID: ch.policy.ID, ChannelName: ch.policy.Name, Conversation: conv.Key, ID: id, State: s, Reason: why})
}

// ended publishes that an answer is made, with what it says.
func (ch *locked) ended(conv *conversation, row ledger.Row) {
	h := ch.c.hub
	if !h.Events.wanted() {
		return
	}
	e, err := h.Store.Entry(row, conv.Conversation)
	if err != nil {
		h.Log.Error("event not made", "message", row.ID, "error", err)
		return
	}
	h.Events.publish(Event{
		Type: EventState, ChannelID: ch.policy.ID, ChannelName: ch.policy.Name, Conversation: conv.Key, ID: row.ID, State: row.State, Reason: row.Reason, Message: e,
	})
}

// written publishes how far an answer has come.
func (s *showing) written() {
	h := s.c.hub
	if !h.Events.wanted() {
		return
	}
	ch := s.c.lock()
	id, name := ch.policy.ID, ch.policy.Name
	ch.unlock()
	h.Events.publish(Event{Type: EventStreaming, ChannelID: id, ChannelName: name, Conversation: s.routing.ConversationID, ID: s.id, Text: s.text})
}

// Summary is an attachment as operators see it.
type Summary struct {
	Transport string
	Platform  string
	Protocol  string
	Declared  []string
	Unknown   []string
	Effective wire.Caps
	Remote    string
	Token     int64 // see Info
	Since     time.Time
	LastFrame time.Time
	Queue     int
	FramesIn  uint64
	FramesOut uint64
	RoundTrip time.Duration // 0 = not known
	Status    PlatformStatus
}

// summary describes the attachment.
func (a *Attachment) summary() Summary {
	ch := a.channel.lock()
	defer ch.unlock()
	s := Summary{
		Transport: a.Transport, Platform: a.Platform, Protocol: a.Protocol.String(), Declared: a.Names, Unknown: a.Unknown, Effective: a.view.Caps,
		Remote: a.Remote, Token: a.Token, Since: a.Since, LastFrame: wallclock.At(a.Heard(), time.Now()), Queue: ch.queue.backlog,
		Status: a.platform,
	}
	if a.Frames != nil {
		s.FramesIn, s.FramesOut = a.Frames()
	}
	if a.RoundTrip != nil {
		s.RoundTrip = a.RoundTrip()
	}
	return s
}

// Waiting is how many messages of a channel wait in its queue.
func (h *Hub) Waiting(ctx context.Context, key int64) (int, error) {
	if c := h.known(key); c != nil {
		ch := c.lock()
		defer ch.unlock()
		return ch.queue.backlog, nil
	}
	n, err := h.Store.CountPending(ctx, key)
	return int(n), err
}

// Attached describes who is attached to a channel; false if nobody is.
func (h *Hub) Attached(key int64) (Summary, bool) {
	c := h.known(key)
	if c == nil {
		return Summary{}, false
	}
	ch := c.lock()
	a := ch.attached
	ch.unlock()
	if a == nil {
		return Summary{}, false
	}
	return a.summary(), true
}

// Left is when the last adapter of a channel went; zero = none did in this process.
func (h *Hub) Left(key int64) time.Time {
	c := h.known(key)
	if c == nil {
		return time.Time{}
	}
	ch := c.lock()
	defer ch.unlock()
	return ch.left
}

// LastSent is when a message of the channel was last written to an adapter;
// zero = never in this process.
func (h *Hub) LastSent(key int64) time.Time {
	c := h.known(key)
	if c == nil {
		return time.Time{}
	}
	ch := c.lock()
	defer ch.unlock()
	return ch.outbox.lastSent
}
