// Package hub routes: one ordered path from a channel's far end to an agent,
// and one back. It owns channels, conversations and turns; bytes, storage and
// rendering are others' work.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Limits of what one channel may hold in memory or leave behind.
const (
	maxConversations = 4096 // idle ones beyond this are forgotten and read again
	maxWaitingTurns  = 256  // of one conversation
	maxResting       = 1024 // goroutines that wait for the next turn
)

// TypingDelay is how long a turn runs before the user is shown that it does.
const TypingDelay = 300 * time.Millisecond

// RecoverGrace is how long turns left over from before a restart wait for their
// adapter.
const RecoverGrace = 30 * time.Second

// DefaultRate is how many frames a second a channel's adapter may send, and at once.
const DefaultRate = 20_000

// AgentNone is the name that routes a channel to nobody: store only.
const AgentNone = "none"

// Turn is one message handed to an agent.
type Turn struct {
	ID           ledger.MessageID
	Index        int64 // of the turn in its conversation
	Repeated     bool  // handed over before, when the host stopped
	Late         int   // attempts that the agent did not answer in time, see IsLate
	Channel      string
	Conversation string
	UserID       string
	UserName     string
	Message      message.Message // of a pressed button: its value, with metadata action
	Caps         wire.Caps       // what the far end shows

	past past
}

// Agent answers turns. Handle returns when the turn is over; what it sent by
// then was the answer. It must end soon after ctx does.
type Agent interface {
	Handle(ctx context.Context, t Turn, r Reply) error
}

// Pure is implemented by an agent that can answer some turns without I/O and
// state: question and answer are then one commit. false leaves the turn to
// Handle. Neither the turn nor what it refers to may be kept.
type Pure interface {
	Answer(t *Turn) ([]message.Message, bool)
}

// Reply takes an agent's answers to one turn.
type Reply interface {
	// Send commits the message and sends it; the id is that of history.
	Send(ctx context.Context, m message.Message) (ledger.MessageID, error)
	// Last sends what ends the turn, and does not wait for its commit: the
	// conversation's next turn may begin. stored, if not nil, is called once
	// after the commit, or with the error that nothing came of it; it must not
	// block. With an error of Last itself it is not called. Nothing can be sent
	// afterwards.
	Last(ctx context.Context, m message.Message, stored func(ledger.MessageID, error)) error
	// Stream shows the text accumulated so far where the far end can; lossy.
	Stream(text string)
	// Typing shows that work goes on, also before TypingDelay.
	Typing(on bool)
	// Transfer hands the conversation over: a part says so, and the user's next
	// message goes to that agent. ErrTransfer if it can't. A message that is sent
	// with an agent-transfer part does the same.
	Transfer(ctx context.Context, agent, reason string) error
}

// Errors of the hub.
var (
	ErrNotAttached = errors.New("no adapter is attached and the channel has no queue")
	ErrQueueFull   = errors.New("the channel's queue is full")
	ErrTooLarge    = fmt.Errorf("session_key and reply_ctx leave no room in a frame, or the far end's max_text would cut the message into more than %d frames", render.MaxFrames)
	ErrContent     = errors.New("the message can't be sent")
	ErrClosed      = errors.New("the host is stopping")
	ErrOutdated    = errors.New("replaced by a newer connection")
)

// Options of a hub. Store, Attachments, Agents and Commands are needed.
type Options struct {
	Store       Ledger
	Attachments *attach.Store
	Agents      Roster
	Commands    *command.Registry
	Log         *slog.Logger  // nil = none
	TypingDelay time.Duration // 0 = TypingDelay

	RecoverGrace time.Duration // 0 = RecoverGrace
	AckTimeout   time.Duration // 0 = delivery.AckTimeout
	TTL          time.Duration // of what waits for an adapter or an agent; 0 = delivery.DefaultTTL
	AwayRetry    time.Duration // 0 = AwayRetry
	Rate         int           // frames a second that a channel's adapter may send; 0 = DefaultRate

	Now func() time.Time // the wall clock; nil = time.Now

	// The steady clock, by which streams are shown: nil = time.Now and time.AfterFunc.
	Steady func() time.Time
	After  func(time.Duration, func()) (stop func() bool)
}

// Hub is the routing of one host.
type Hub struct {
	Options
	Events Events
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	absences absences

	rested  chan func() // to goroutines that have done their work
	resting atomic.Int32

	replays    sync.Mutex // held while a message is replayed
	replayings replayings

	agents agentTallies
	pasts  *pasts

	leading ledger.Leading     // the Store, if it is one; else nil
	opening singleflight.Group // of channels: one that is owned a second time fences what the first owner appends

	attachments atomic.Int64 // that there were
	kept        atomic.Int64 // bytes of messages that wait and are kept in memory, see queue.keep

	mu       sync.Mutex // guards channels, unused and closed
	channels map[int64]*Channel
	unused   map[int64]ledger.Channel // changed before their first use: whoever opens one may have read it before
	closed   bool
}

// New makes a hub. Close must be called.
func New(o Options) *Hub {
	h := &Hub{Options: o, channels: map[int64]*Channel{}, unused: map[int64]ledger.Channel{}, rested: make(chan func()), pasts: newPasts()}
	h.leading, _ = o.Store.(ledger.Leading)
	if h.Log == nil {
		h.Log = slog.New(slog.DiscardHandler)
	}
	if h.TypingDelay == 0 {
		h.TypingDelay = TypingDelay
	}
	if h.RecoverGrace == 0 {
		h.RecoverGrace = RecoverGrace
	}
	if h.AckTimeout == 0 {
		h.AckTimeout = delivery.AckTimeout
	}
	if h.TTL == 0 {
		h.TTL = delivery.DefaultTTL
	}
	if h.Now == nil {
		h.Now = time.Now
	}
	if h.Steady == nil {
		h.Steady = time.Now
	}
	if h.After == nil {
		h.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	h.Rate = cmp.Or(h.Rate, DefaultRate)
	h.AwayRetry = cmp.Or(h.AwayRetry, AwayRetry)
	h.ctx, h.cancel = context.WithCancel(context.Background())
	ages := newAges(h.Now)
	h.wg.Go(func() { h.clock(ages) })
	return h
}

// Close stops the running turns and waits for them. Turns that did not end are
// handed over again after the next start.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.wg.Wait()
}

// spawn runs fn in a goroutine that Close waits for; false when closing.
func (h *Hub) spawn(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	select {
	case h.rested <- fn:
	default:
		h.wg.Go(func() { h.work(fn) })
	}
	return true
}

// work runs fn and what spawn passes on later, on a stack that has grown already.
func (h *Hub) work(fn func()) {
	for {
		fn()
		fn = nil
		if h.resting.Add(1) > maxResting {
			h.resting.Add(-1)
			return
		}
		select {
		case fn = <-h.rested:
			h.resting.Add(-1)
		case <-h.ctx.Done():
			return
		}
	}
}

// channel finds a channel, or makes it on first use.
func (h *Hub) channel(ctx context.Context, row ledger.Channel) (*Channel, error) {
	if c := h.known(row.Key); c != nil {
		return c, nil
	}
	c, err, _ := h.opening.Do(strconv.FormatInt(row.Key, 36), func() (any, error) {
		return h.open(context.WithoutCancel(ctx), row) // for all who wait for it
	})
	if err != nil {
		return nil, err
	}
	return c.(*Channel), nil
}

// open makes a channel, unless another one was faster.
func (h *Hub) open(ctx context.Context, row ledger.Channel) (*Channel, error) {
	if c := h.known(row.Key); c != nil {
		return c, nil
	}
	tail, err := h.Store.Own(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	backlog, err := h.Store.CountPending(ctx, row.Key)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if changed, ok := h.unused[row.Key]; ok {
		delete(h.unused, row.Key)
		if changed.Version > row.Version {
			row = changed
		}
	}
	c := newChannel(h, tail, row, int(backlog))
	h.channels[row.Key] = c
	return c, nil
}

// known is the channel if it was used in this process.
func (h *Hub) known(key int64) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.channels[key]
}

// Update makes a changed policy take effect immediately; one that is older than what
// was told before changes nothing.
func (h *Hub) Update(row ledger.Channel) {
	h.mu.Lock()
	c := h.channels[row.Key]
	if c == nil && h.unused[row.Key].Version < row.Version {
		h.unused[row.Key] = row
	}
	h.mu.Unlock()
	if c != nil {
		c.update(row)
		c.reroute()
		c.reclaimAll()
	}
}

// Remove forgets a deleted channel, and ends its turns. Its sessions must be closed by their owner.
func (h *Hub) Remove(key int64) {
	h.mu.Lock()
	c := h.channels[key]
	delete(h.channels, key)
	delete(h.unused, key)
	h.mu.Unlock()
	if c != nil {
		c.abandon()
	}
}

// Recover hands over again what was received but not handled when the host
// stopped: when the channel's adapter is back, so that the answer finds it, or
// after RecoverGrace. Call it once, before anything attaches.
func (h *Hub) Recover(ctx context.Context) (int, error) {
	if err := h.openQueues(ctx); err != nil {
		return 0, err
	}
	open, err := h.Store.Unanswered(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range open {
		row, err := h.Store.ChannelByKey(ctx, e.Channel)
		if errors.Is(err, ledger.ErrNotFound) {
			h.Store.Handled(e.ID) // deleted, about to be swept
			continue
		}
		if err != nil {
			return n, err
		}
		c, err := h.channel(ctx, row)
		if err != nil {
			return n, err
		}
		conv, err := c.hold(ctx, e.Conversation)
		if err != nil {
			return n, err
		}
		job, err := h.recovered(ctx, e)
		if err != nil {
			return n, err
		}
		ch := c.lock()
		conv.turns++
		if job.told {
			conv.told = ch.agentName(conv)
		}
		if ch.policy.Queue {
			ch.turns.start(conv, job)
		} else {
			ch.turns.parked = append(ch.turns.parked, parkedTurn{conv, job})
		}
		ch.unlock()
		n++
	}
	h.spawn(h.unparkAll)
	return n, nil
}

// openQueues makes the clock look after the channels with messages that wait, whether
// or not anybody uses them: what has waited for too long expires.
func (h *Hub) openQueues(ctx context.Context) error {
	keys, err := h.Store.PendingChannels(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		row, err := h.Store.ChannelByKey(ctx, key)
		if errors.Is(err, ledger.ErrNotFound) { // deleted, about to be swept
			continue
		}
		if err == nil {
			_, err = h.channel(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all lists the channels that were used in this process.
func (h *Hub) all() []*Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*Channel, 0, len(h.channels))
	for _, c := range h.channels {
		all = append(all, c)
	}
	return all
}

// unparkAll starts the turns of channels whose adapter did not come back in time.
func (h *Hub) unparkAll() {
	select {
	case <-time.After(h.RecoverGrace):
	case <-h.ctx.Done():
		return
	}
	for _, c := range h.all() {
		ch := c.lock()
		ch.turns.unpark()
		ch.unlock()
	}
}
