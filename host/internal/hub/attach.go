package hub

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Port is the outward face of whatever is attached to a channel. None of its
// methods blocks, and all but Room and Settled are called with the channel's
// mutex held.
type Port interface {
	// Offer takes a parcel to be written; false if it can't any more.
	Offer(p Parcel) bool
	// Retire makes Offer refuse from now on and returns the durable parcels
	// that were surely not written, in order.
	Retire() []Parcel
	// Room returns a channel that is closed once there is room for many more
	// durable parcels, or Offer refuses for good.
	Room() <-chan struct{}
	// Admitted tells what the adapter may be sent and where it reads on, before
	// the first parcel.
	Admitted(v wire.View, cursor string)
	// Settled tells how the commit of a received frame went. ref is the
	// frame's message_id; err is nil or what the adapter is told.
	Settled(ref string, err *wire.Error)
	// Overdue ends the connection: the adapter acknowledges nothing any more.
	Overdue()
	// Flush writes what was offered; see ledger.Flusher.
	ledger.Flusher
}

// Parcel is what a port writes: the frames of one message, or of a passing
// state such as typing. It is data alone: what it belongs to, the hub finds by its
// ids.
type Parcel struct {
	ID      ledger.MessageID // 0 = lossy
	Key     string           // of a lossy one: what it is a state of; only the newest counts
	ReplyTo ledger.MessageID // of a durable one: the message that it answers; 0 = none
	Routing wire.Routing
	Frames  []wire.Frame

	Size    int              // of a durable one: bytes that it holds, roughly
	Message *message.Message // of a durable one: what its frames show, as it is stored; see Hub.Shown
	View    int64            // of a durable one: the attachment whose view the frames were made for; 0 = that of nobody
	Tracked bool             // one frame of a message in flight, to be acknowledged
	Late    time.Duration    // after its id was given, it could be sent: of an answer that was shown while it was made
}

// Lossy reports whether the parcel may be dropped.
func (p *Parcel) Lossy() bool { return p.ID == 0 }

// Info is what an adapter said of itself, and where it came from.
type Info struct {
	Transport string
	Platform  string
	Protocol  wire.Protocol
	Names     []string // declared, also those that don't count
	Declared  wire.Caps
	Unknown   []string // of Names: not known here, or not in its protocol
	Profile   wire.Profile
	Remote    string
	Local     bool   // on this machine
	Away      string // what a user is told whose agent is away; "" = what all are told
	Since     time.Time
	Token     int64            // id of the channel's token that it came with; 0 = it needed none
	Order     int64            // of its register among all: who asked later has the slot
	Heard     func() time.Time // when the adapter was last heard

	Frames    func() (in, out uint64) // read and written since it attached; nil = not counted
	RoundTrip func() time.Duration    // of the latest ping; nil or 0 = not known
}

// Attachment is one stay of an adapter in a channel's slot. It counts only
// while it is the channel's current one.
type Attachment struct {
	Info
	channel *Channel
	port    Port
	id      int64     // of all attachments of the process; never 0
	view    wire.View // guarded by the channel's mutex
	refused bool      // guarded by the channel's mutex; the port takes no more and is about to go

	platform PlatformStatus // guarded by the channel's mutex

	// Guarded by the channel's mutex; see learn.
	named      bool // it said of a message what it calls it
	handleless bool // it never did, also of a draft's beginning

	inFlight int // messages of a conversation, as it was told when it came; 0 = one

	compared int         // guarded by the channel's mutex: repeats, see repeat
	warned   atomic.Bool // of a repeat that says something else
}

// Attach puts a port into the channel's slot. What the one before had not
// written goes to the new one first. The caller closes the one before, if any.
// ErrOutdated: another one has the slot that asked for it later.
func (h *Hub) Attach(ctx context.Context, row ledger.Channel, p Port, i Info) (a *Attachment, before Port, err error) {
	c, err := h.channel(ctx, row)
	if err != nil {
		return nil, nil, err
	}
	a = &Attachment{Info: i, channel: c, port: p, id: h.attachments.Add(1)}
	ch := c.lock()
	if ch.attached != nil && ch.attached.Order > i.Order {
		ch.unlock()
		return nil, nil, ErrOutdated
	}
	var left []Parcel
	if ch.attached != nil {
		before = ch.attached.port
		left = ch.takeBack(ch.attached)
	}
	a.view = ch.policy.view(i)
	a.inFlight = a.view.Profile.InFlight
	ch.attached = a
	ch.queue.loaded = ch.queue.backlog == 0 // else drain fills the lanes
	p.Admitted(a.view, c.tail.Cursor())
	ch.returned(left)
	ch.queue.drain()
	ch.turns.unpark()
	ch.unlock()
	p.Flush()
	h.Events.publish(Event{Type: EventAttached, ChannelID: row.ID, ChannelName: row.Name, Attachment: a.summary()})
	return a, before, nil
}

// Detach takes the port out of the slot if it is still in it. What it had not
// written is queued or fails.
func (a *Attachment) Detach() {
	c := a.channel
	ch := c.lock()
	left := ch.takeBack(a)
	current := ch.attached == a
	if current {
		ch.attached, ch.left = nil, time.Now()
	}
	ch.returned(left)
	row := ch.policy.Channel
	ch.unlock()
	if current {
		c.hub.Events.publish(Event{Type: EventDetached, ChannelID: row.ID, ChannelName: row.Name, Attachment: a.summary()})
	}
}

// Allow counts a frame that was received at a time: not before that of the frame
// before, or what passed between them counts twice, up to a burst. It is false if
// there were too many: most is how many a second there may be.
func (a *Attachment) Allow(at time.Time) (ok bool, most int) {
	if a.channel.frames.AllowN(at, 1) {
		return true, 0
	}
	a.channel.limited.Add(1)
	return false, a.channel.frames.Burst()
}

// Remember commits where the adapter reads on, of a frame that leaves nothing else.
func (a *Attachment) Remember(cursor string) {
	a.channel.hub.Store.Append(&ledger.Unit{Tail: a.channel.tail, Cursor: cursor}, nil)
}

// takeBack ends what an attachment may write, and returns what it surely has
// not. What is to be acknowledged waits again.
func (ch *locked) takeBack(a *Attachment) []Parcel {
	left := a.port.Retire()
	if a.acked() && ch.attached == a {
		ch.queue.ground()
	}
	return slices.DeleteFunc(left, func(p Parcel) bool { return p.Tracked })
}

// returned delivers parcels once more that a port gave back.
func (ch *locked) returned(parcels []Parcel) {
	var strange []Parcel
	for _, p := range parcels {
		if conv := ch.conversations[p.Routing.ConversationID]; conv != nil {
			ch.outbox.deliver(conv, p, time.Now())
		} else {
			strange = append(strange, p)
		}
	}
	if len(strange) == 0 {
		return
	}
	ch.queue.requeuing++ // what comes later must not overtake them
	ch.c.hub.spawn(func() {
		ch.c.recall(strange, func(ch *locked, conv *conversation, p Parcel) { ch.outbox.deliver(conv, p, time.Now()) })
		ch := ch.c.lock()
		defer ch.unlock()
		ch.queue.requeuing--
		ch.queue.drain()
	})
}

// recall does something for each parcel with its conversation, which may be one that
// was forgotten. It may read the database.
func (c *Channel) recall(parcels []Parcel, do func(*locked, *conversation, Parcel)) {
	for _, p := range parcels {
		conv, err := retry(c.hub.ctx, func() (*conversation, error) { return c.hold(c.hub.ctx, p.Routing.ConversationID) })
		if err != nil { // the next start finds the message as it is
			c.hub.Log.Error("conversation not read", "channel", c.name(), "message", p.ID, "error", err)
			continue
		}
		ch := c.lock()
		do(ch, conv, p)
		ch.release(conv)
		ch.unlock()
	}
}

// Broken fails delivered parcels of which it is unknown whether they were
// written. What is to be acknowledged is sent again.
func (a *Attachment) Broken(parcels []Parcel) {
	a.channel.recall(slices.DeleteFunc(parcels, func(p Parcel) bool { return p.Tracked }), func(ch *locked, conv *conversation, p Parcel) {
		ch.queue.settle(conv, p.ID, ledger.Failed, ledger.ReasonUnknownOutcome)
	})
}

// number is the attachment's id; 0 of nobody.
func (a *Attachment) number() int64 {
	if a == nil {
		return 0
	}
	return a.id
}

// Caps is what the adapter may be sent now.
func (a *Attachment) Caps() wire.Caps {
	defer a.channel.lock().unlock()
	return a.view.Caps
}

// taker is who takes messages now; nil = nobody.
func (ch *locked) taker() *Attachment {
	if ch.attached == nil || ch.attached.refused {
		return nil
	}
	return ch.attached
}
