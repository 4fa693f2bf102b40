package hub

import (
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/render"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Channel is the unit of ownership: one mutex over everything that is mutable
// in one channel. Nothing blocks while it is held.
type Channel struct {
	hub   *Hub
	chain *sqlite.Chain
	owner string // of its attachments: the channel's id

	frames  *rate.Limiter // that its adapter may send: of all connections together, one after the other
	limited atomic.Uint64 // of them, those over the rate

	mu            sync.Mutex // guards what follows
	policy        *policy
	attached      *Attachment // nil = nobody
	conversations map[string]*conversation
	idle          list.List // of *conversation, least recently used first
	backlog       int       // queued messages, committed or about to be
	requeuing     int       // of them, those that were sent and go back: not committed yet
	requeued      bool      // some went back since drainOnce began
	draining      bool      // drainAll runs …
	again         bool      // … and must look once more
	lastSent      time.Time
	lastAck       time.Time
	looked        time.Time // through the queue, for what is too old

	// While an adapter is attached that acknowledges.
	lanes   map[string]*lane // by conversation
	flights map[ledger.MessageID]*lane
	ready   []*lane // that may have something to send
	loaded  bool    // the lanes hold all that is queued
	drafts  map[ledger.MessageID]*draft

	parked []parkedTurn // left over from before a restart

	absent map[*conversation]struct{} // those whose turns wait for their agent
	gaveUp time.Time                  // looked for turns that have waited for too long

	stuck map[ledger.MessageID][]change // that the disk did not take yet

	tally     *Tally      // nil = nothing happened yet, as in most channels of a large host
	peak      int         // the longest queue since TakePeaks
	lastAgent *AgentTally // of the last turn; nil = there was none
}

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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy.Name
}

func (c *Channel) update(row ledger.Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = newPolicy(row)
	most := c.policy.rate(c.hub.Rate)
	c.frames.SetLimit(rate.Limit(most))
	c.frames.SetBurst(most)
	if a := c.attached; a != nil {
		was := a.acked()
		a.view = c.policy.view(a.Info)
		if was && !a.acked() {
			c.ground()
		}
		c.drain()
	}
}

// view is what an adapter may be sent. Of what it can show the operator knows best.
func (p *policy) view(i Info) wire.View {
	return wire.View{Protocol: i.Protocol, Caps: wire.Effective(i.Declared, p.allow), Profile: i.Profile.With(p.Profile), Local: i.Local}
}

// conversation is what is remembered of a conversation while it is in use.
// The channel's mutex guards it.
type conversation struct {
	*sqlite.Conversation
	settings ledger.Settings
	latest   ledger.Origin // of the newest inbound message: where an unsolicited send goes
	offer    render.Offer  // the newest
	held     int           // uncommitted units and unfinished turns
	place    *list.Element // in Channel.idle, while held is 0

	turns   int                     // received and not over: what comes now waits its turn
	waiting []turnJob               // committed, and to be run
	running bool                    // runTurns runs
	cancel  context.CancelCauseFunc // of the running turn; nil between turns
	asked   string                  // the agent of the running turn

	absent string // the agent that the turns wait for; "" = none. It is in Channel.absent, and nothing runs
	told   string // the agent that the user was told is away

	stopNext bool // /stop came before the turn that it means

	// Last answers: see Reply.
	posted   int           // not over
	newest   *sqlite.Unit  // begun last and not committed; nil = none
	unstored []*lastAnswer // that the disk did not take yet, in order
	mending  bool          // storeUnstored runs
}

// hold finds or recalls a conversation and keeps it in memory until release.
// It may read the database, so the mutex must not be held.
func (c *Channel) hold(ctx context.Context, key string) (*conversation, error) {
	c.mu.Lock()
	conv := c.conversations[key]
	if conv == nil {
		c.mu.Unlock()
		recalled, err := c.hub.Store.Conversation(ctx, c.chain, key)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if conv = c.conversations[key]; conv == nil {
			conv = &conversation{Conversation: recalled.Conversation, settings: recalled.Settings, latest: recalled.Latest}
			if recalled.Offer != nil {
				m := restore(*recalled.Offer)
				conv.offer = render.OfferOf(&m)
			}
			c.conversations[key] = conv
		}
	}
	if conv.place != nil {
		c.idle.Remove(conv.place)
		conv.place = nil
	}
	conv.held++
	c.mu.Unlock()
	return conv, nil
}

// release undoes one hold. The mutex must be held.
func (c *Channel) release(conv *conversation) {
	if conv.held--; conv.held > 0 {
		return
	}
	conv.place = c.idle.PushBack(conv)
	if c.idle.Len() > maxConversations {
		oldest := c.idle.Remove(c.idle.Front()).(*conversation)
		delete(c.conversations, oldest.Key)
	}
}

// agentName is who answers in a conversation.
func (c *Channel) agentName(conv *conversation) string {
	if a := conv.settings.Agent; a != "" && c.hub.mayChoose(c.policy, a) {
		return a
	}
	return c.policy.Agent
}

// restore makes the message of a stored row.
func restore(e ledger.Entry) message.Message {
	m := message.Message{ID: e.ID.String(), Role: message.RoleAgent, Status: e.Status, Text: e.Text}
	if e.Direction == ledger.In {
		m.Role = message.RoleUser
	}
	// What was stored was valid; a row that some other hand broke shows its text.
	m.Parts, _ = message.ParseParts(e.Parts)
	_ = json.Unmarshal(e.Meta, &m.Meta)
	return m
}
