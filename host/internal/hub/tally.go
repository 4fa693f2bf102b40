package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/tally"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Outcome is what can become of a message, as it is counted. The list is closed.
type Outcome struct {
	Direction ledger.Direction
	State     ledger.State
	Reason    ledger.Reason // "" = it did not fail
}

// Outcomes lists them; Tally.Outcomes has the same order. Sent are those written
// to an adapter that does not acknowledge.
var Outcomes = [...]Outcome{
	{ledger.Out, ledger.Sent, ""},
	{ledger.Out, ledger.Delivered, ""},
	{ledger.Out, ledger.Failed, ledger.ReasonNotAttached},
	{ledger.Out, ledger.Failed, ledger.ReasonQueueFull},
	{ledger.Out, ledger.Failed, ledger.ReasonFrameTooLarge},
	{ledger.Out, ledger.Failed, ledger.ReasonRejected},
	{ledger.Out, ledger.Failed, ledger.ReasonRetriesExhausted},
	{ledger.Out, ledger.Failed, ledger.ReasonUnknownOutcome},
	{ledger.Out, ledger.Expired, ledger.ReasonTTL},
	{ledger.In, ledger.Failed, ledger.ReasonRejected},
	{ledger.In, ledger.Failed, ledger.ReasonAgentAway},
	{ledger.In, ledger.Failed, ledger.ReasonAgentTimeout},
	{ledger.In, ledger.Failed, ledger.ReasonAgentRefused},
	{ledger.In, ledger.Failed, ledger.ReasonAgentFailed},
}

// The places of Outcomes that nearly every message has.
const (
	outcomeSent = iota
	outcomeDelivered
)

// Tally is what happened in a channel since the process began.
type Tally struct {
	Received, Sent uint64 // messages that were committed, from the far end and to it
	Refused        uint64 // received and not stored: the disk did not take them
	Limited        uint64 // frames over the rate
	Repeated       uint64 // received and not stored: the channel has had a message of their id
	Ignored        uint64 // acknowledgements of what was not in flight
	Outcomes       [len(Outcomes)]uint64
	Latency        tally.Counts // of messages that were sent or delivered: since they were stored
	Said           Said         // by adapters, of messages
}

// count is the channel's tally, to be added to.
func (ch *locked) count() *Tally {
	if ch.tally == nil {
		ch.tally = new(Tally)
	}
	return ch.tally
}

// failed counts what became of a message that was neither sent nor delivered.
func (t *Tally) failed(o Outcome) {
	if o.State != ledger.Failed && o.State != ledger.Expired {
		return
	}
	if i := slices.Index(Outcomes[:], o); i >= 0 {
		t.Outcomes[i]++
	}
}

// settled counts a message's new state, once it is committed.
func (t *Tally) settled(d ledger.Direction, s ledger.State, why ledger.Reason) {
	if s == ledger.Delivered {
		t.Outcomes[outcomeDelivered]++
		return
	}
	t.failed(Outcome{d, s, why})
}

// arrived notes how long a message took to the far end: from when it could be
// sent to now. One that took longer than it may wait was sent again, or the clock
// was set.
func (ch *locked) arrived(p *Parcel, now time.Time) {
	if took := now.Sub(p.ID.Time()) - p.Late; took <= ch.policy.ttl(ch.c.hub.TTL) {
		ch.count().Latency.Observe(&tally.Delays, int64(took))
	}
}

// AgentTally is what an agent did since the process began, and does now. Turns that a pure
// agent answers in the message's own commit are not counted.
type AgentTally struct {
	name   string
	places places
	turns  [len(TurnEnds)]atomic.Uint64
	took   tally.Histogram
	first  tally.Histogram // until a turn's first streamed text
	active atomic.Int64

	mu   sync.Mutex // guards what follows
	row  int        // turns that failed since the last that did not
	last AgentFailure
}

// AgentFailure is a turn that failed.
type AgentFailure struct {
	At     time.Time // zero = none has
	Reason ledger.Reason
	Why    string // in the agent's words where it had some
}

// TurnEnds are how a turn can end, as it is counted.
var TurnEnds = [...]string{"answered", "failed", "away", "stopped"}

// begin counts a turn that is handed over; end its end.
func (t *AgentTally) begin() time.Time {
	t.active.Add(1)
	return time.Now()
}

func (t *AgentTally) end(ctx context.Context, began time.Time, err error) {
	t.active.Add(-1)
	end := 0
	switch cause := context.Cause(ctx); {
	case errors.Is(err, ErrAway):
		end = 2
	case err != nil:
		end = 1
	case errors.Is(cause, ErrStopped), errors.Is(cause, ErrReplaced), errors.Is(cause, ErrChannelGone):
		end = 3
	}
	t.turns[end].Add(1)
	t.judge(end, err)
	if end != 2 { // it was not there: that says nothing of how long it takes
		t.took.Took(began)
	}
}

// judge keeps whether the agent fails. One that is away, or was stopped, is not judged.
func (t *AgentTally) judge(end int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch end {
	case 0:
		t.row = 0
	case 1:
		t.row++
		t.last = AgentFailure{time.Now(), reasonOf(err), inShort(err)}
	}
}

// agentTallies are those of all agents that were asked.
type agentTallies struct {
	mu  sync.Mutex // guards all
	all map[string]*AgentTally
}

func (a *agentTallies) of(name string) *AgentTally {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.all[name]
	if t == nil {
		if a.all == nil {
			a.all = map[string]*AgentTally{}
		}
		t = &AgentTally{name: name}
		a.all[name] = t
	}
	return t
}

// tallyOf is the agent's tally: nearly always that of the channel's last turn.
func (t *turns) tallyOf(agent string) *AgentTally {
	if t.lastAgent == nil || t.lastAgent.name != agent {
		t.lastAgent = t.c.hub.agents.of(agent)
	}
	return t.lastAgent
}

// AgentCounts is an AgentTally at one moment; Turns has the order of TurnEnds.
type AgentCounts struct {
	Name   string
	Turns  [len(TurnEnds)]uint64
	Took   tally.Counts
	First  tally.Counts
	Active int64

	InARow int          // turns that failed since the last that did not
	Last   AgentFailure // the newest
}

// AgentTallies lists what the agents did, by name: of those that there are.
func (h *Hub) AgentTallies() []AgentCounts {
	h.agents.mu.Lock()
	defer h.agents.mu.Unlock()
	var out []AgentCounts
	for name, t := range h.agents.all {
		if _, ok := h.Agents.Agent(name); ok {
			out = append(out, t.counts())
		}
	}
	slices.SortFunc(out, func(a, b AgentCounts) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ChannelTally is a channel's Tally at one moment, and how it is then.
type ChannelTally struct {
	Tally
	Key      int64
	Attached bool
	Queue    int                // messages that wait for an adapter
	Flights  int                // sent, and not acknowledged yet
	Waiting  int                // conversations that wait for their agent
	Peak     int                // the longest queue since the last TakePeaks, looked at once a second
	Platform wire.PlatformState // of who is attached; "" = not known
}

// Tallies lists the channels that were used in this process.
func (h *Hub) Tallies() []ChannelTally { return h.tallies(false) }

// TakePeaks is Tallies, and lets the peaks begin anew. One alone may call it.
func (h *Hub) TakePeaks() []ChannelTally { return h.tallies(true) }

func (h *Hub) tallies(anew bool) []ChannelTally {
	all := h.all()
	out := make([]ChannelTally, len(all))
	for i, c := range all {
		out[i] = c.counted(anew)
	}
	slices.SortFunc(out, func(a, b ChannelTally) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

func (c *Channel) counted(anew bool) ChannelTally {
	ch := c.lock()
	defer ch.unlock()
	ch.queue.lookDeep()
	t := ChannelTally{
		Key: c.tail.Channel, Attached: ch.attached != nil, Queue: ch.queue.backlog, Flights: len(ch.queue.flights), Waiting: len(ch.turns.absent), Peak: ch.queue.peak,
	}
	if ch.tally != nil {
		t.Tally = *ch.tally
	}
	if ch.attached != nil {
		t.Platform = ch.attached.platform.State
	}
	t.Limited = c.limited.Load()
	if anew {
		ch.queue.peak = ch.queue.backlog
	}
	return t
}

// lookDeep notes how long the queue is.
func (q *queue) lookDeep() { q.peak = max(q.peak, q.backlog) }

// AgentTally is what an agent did; false if it was not asked since the process began.
func (h *Hub) AgentTally(name string) (AgentCounts, bool) {
	h.agents.mu.Lock()
	t := h.agents.all[name]
	h.agents.mu.Unlock()
	if t == nil {
		return AgentCounts{}, false
	}
	return t.counts(), true
}

func (t *AgentTally) counts() AgentCounts {
	n := AgentCounts{Name: t.name, Took: t.took.Counts(), First: t.first.Counts(), Active: t.active.Load()}
	for i := range t.turns {
		n.Turns[i] = t.turns[i].Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n.InARow, n.Last = t.row, t.last
	return n
}
