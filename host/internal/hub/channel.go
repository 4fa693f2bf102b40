package hub

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Channel is the unit of ownership: one mutex over everything that is mutable
// in one channel. Nothing blocks while it is held.
type Channel struct {
	hub   *Hub
	tail  *ledger.Tail
	owner string // of its attachments: the channel's id

	frames  *rate.Limiter // that its adapter may send: of all connections together, one after the other
	limited atomic.Uint64 // of them, those over the rate

	mu    sync.Mutex
	state locked // had by lock alone
}

// locked is what changes in a channel. Only lock gives it, so that whoever has
// it holds the channel's mutex, until unlock: nothing of it may be used after
// that. The methods that need the mutex are its own, or those of its outbox,
// queue and turns.
type locked struct {
	c *Channel

	policy        *policy
	attached      *Attachment // nil = nobody
	conversations map[string]*conversation
	idle          *list.List // of *conversation, least recently used first; nil = there was none yet
	left          time.Time  // when the last adapter that is not attached any more went; zero = none did in this process
	tally         *Tally     // nil = nothing happened yet, as in most channels of a large host

	outbox outbox
	queue  queue
	turns  turns
}

func newChannel(h *Hub, tail *ledger.Tail, row ledger.Channel, backlog int) *Channel {
	c := &Channel{hub: h, tail: tail, owner: row.ID}
	ch := &c.state
	ch.c, ch.policy, ch.conversations = c, newPolicy(row), map[string]*conversation{}
	ch.outbox.locked = ch
	ch.queue.locked, ch.queue.backlog = ch, backlog
	ch.turns.locked = ch
	most := ch.policy.rate(h.Rate)
	c.frames = rate.NewLimiter(rate.Limit(most), most)
	return c
}

// lock waits for the channel's mutex. unlock must follow soon.
func (c *Channel) lock() *locked {
	c.mu.Lock()
	return &c.state
}

// unlock ends what lock began.
func (ch *locked) unlock() { ch.c.mu.Unlock() }

// policy is a channel's row with its sets made ready; it never changes.
type policy struct {
	ledger.Channel
	allow wire.Caps
}

func newPolicy(row ledger.Channel) *policy {
	allow, _ := wire.ParseCapsFor(wire.V11.String(), row.Accept) // an adapter declares what of it counts
	if len(row.Accept) > 0 {
		allow |= wire.CapText // a list of unknown names alone must not mean "all"
	}
	return &policy{Channel: row, allow: allow}
}

// length is how many messages may wait for an adapter.
func (p *policy) length() int { return cmp.Or(p.Limits.Length, delivery.DefaultLength) }

// attempts is how often a message is tried.
func (p *policy) attempts() int { return cmp.Or(p.Limits.Attempts, delivery.DefaultAttempts) }

// ttl is how long a message may wait; or says so of all channels.
func (p *policy) ttl(or time.Duration) time.Duration {
	return cmp.Or(time.Duration(p.Limits.TTLSeconds)*time.Second, or)
}

// rate is how many frames a second the adapter may send; or says so of all channels.
func (p *policy) rate(or int) int { return cmp.Or(p.Rate, or) }

func (p *policy) maySpeak(user string) bool {
	return len(p.Users) == 0 || slices.Contains(p.Users, user)
}

// agents are the names that a conversation may choose from.
func (p *policy) agents(all func() []string) []string {
	if len(p.Agents) == 0 {
		return all()
	}
	return p.Agents
}

func (c *Channel) name() string {
	ch := c.lock()
	defer ch.unlock()
	return ch.policy.Name
}

// update makes a row count, unless it is older than the one that does: of two changes
// at once the older may be told of last.
func (c *Channel) update(row ledger.Channel) {
	ch := c.lock()
	defer ch.unlock()
	if row.Version < ch.policy.Version {
		return
	}
	ch.policy = newPolicy(row)
	most := ch.policy.rate(c.hub.Rate)
	c.frames.SetLimit(rate.Limit(most))
	c.frames.SetBurst(most)
	if a := ch.attached; a != nil {
		was := a.acked()
		a.view = ch.policy.view(a.Info)
		if was && !a.acked() {
			ch.queue.ground()
		}
		ch.queue.lookAnew()
		ch.queue.drain()
	}
}

// view is what an adapter may be sent. Of what it can show the operator knows best.
func (p *policy) view(i Info) wire.View {
	return wire.View{Protocol: i.Protocol, Caps: wire.Effective(i.Declared, p.allow), Profile: i.Profile.With(wire.Profile(p.Profile)), Local: i.Local}
}

// conversation is what is remembered of a conversation while it is in use.
// The channel's mutex guards it.
type conversation struct {
	*ledger.Conversation
	settings ledger.Settings
	latest   ledger.Origin // of the newest inbound message: where an unsolicited send goes
	offer    render.Offer  // the newest
	offered  int           // counts the offers, to tell them apart
	held     int           // uncommitted units and unfinished turns
	place    *list.Element // in Channel.idle, while held is 0

	turns   int                     // received and not over: what comes now waits its turn
	waiting []turnJob               // committed, and to be run
	running bool                    // runTurns runs
	cancel  context.CancelCauseFunc // of the running turn; nil between turns
	asked   string                  // the agent of the running turn

	line   *standing // where it waits for a place for its next turn; nil = it does not
	absent string    // the agent that the turns wait for; "" = none. It is in Channel.absent, and nothing runs
	told   string    // the agent that the user was told is away

	stopNext   bool // /stop came before the turn that it means
	stopComing int  // turns that are received and not committed, of which /stop meant all
	parking    bool // its turn ended without its agent, and is about to wait for it

	// Last answers: see Reply.
	posted   int           // not over
	newest   *ledger.Unit  // begun last and not committed; nil = none
	unstored []*lastAnswer // that the disk did not take yet, in order
	mending  bool          // storeUnstored runs
}

// hold finds or recalls a conversation and keeps it in memory until release.
// It may read the database, so the mutex must not be held.
func (c *Channel) hold(ctx context.Context, key string) (*conversation, error) {
	ch := c.lock()
	conv := ch.conversations[key]
	if conv == nil {
		ch.unlock()
		recalled, err := c.hub.Store.Conversation(ctx, c.tail, key)
		if err != nil {
			return nil, err
		}
		ch = c.lock()
		if conv = ch.conversations[key]; conv == nil {
			conv = &conversation{Conversation: recalled.Conversation, settings: recalled.Settings, latest: recalled.Latest}
			if recalled.Offer != nil {
				m := restore(*recalled.Offer)
				if conv.offer = render.OfferOf(&m); recalled.Passed {
					conv.offer = conv.offer.Passed()
				}
			}
			ch.conversations[key] = conv
		}
	}
	if conv.place != nil {
		ch.idle.Remove(conv.place)
		conv.place = nil
	}
	conv.held++
	ch.unlock()
	return conv, nil
}

// release undoes one hold.
func (c *Channel) release(conv *conversation) {
	ch := c.lock()
	defer ch.unlock()
	ch.release(conv)
}

// release undoes one hold.
func (ch *locked) release(conv *conversation) {
	if conv.held--; conv.held > 0 {
		return
	}
	if ch.idle == nil {
		ch.idle = list.New()
	}
	conv.place = ch.idle.PushBack(conv)
	if ch.idle.Len() > maxConversations {
		oldest := ch.idle.Remove(ch.idle.Front()).(*conversation)
		delete(ch.conversations, oldest.Key)
	}
}

// agentName is who answers in a conversation.
func (ch *locked) agentName(conv *conversation) string {
	if a := conv.settings.Agent; a != "" && ch.c.hub.mayChoose(ch.policy, a) {
		return a
	}
	return ch.policy.Agent
}

// restore makes the message of a stored row.
func restore(e ledger.Entry) message.Message {
	m := message.Message{ID: e.ID.String(), Role: message.RoleAgent, Status: message.Status(e.Status), Text: e.Text}
	if e.Direction == ledger.In {
		m.Role = message.RoleUser
	}
	// What was stored was valid; a row that some other hand broke shows its text.
	m.Parts, _ = message.ReadParts(e.Parts)
	if len(e.Meta) > 0 {
		m.Meta, _, _ = message.ReadMeta(e.Meta)
	}
	return m
}
