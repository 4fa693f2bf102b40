package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Desk is where an agent that dials in gets its turns, over one connection at a
// time: a newer one takes over what the older had not ended.
type Desk struct {
	host   *Sockets
	row    ledger.Agent
	config SocketConfig
	window chan struct{} // one for each turn that has not ended
	closed chan struct{} // closed by Close, which is called once

	mu      sync.Mutex // guards what follows
	link    *link      // nil = the agent is gone
	left    time.Time  // when it went last, or this desk was made
	came    bool       // it was here, or may have been when the host stopped
	changed chan struct{}
	turns   map[string]*task // that have not ended, by turn_id
	ended   []string         // turn_ids of those that have, oldest first; at most maxEnded
	unseen  ledger.MessageID // the newest turn that ended while the agent was away, or before this desk
	sent    sent
}

// maxEnded is how many turns that are over are remembered: what still comes for
// them is late, not wrong.
const maxEnded = 256

var (
	_ hub.Agent    = (*Desk)(nil)
	_ hub.Presence = (*Desk)(nil)
	_ Keyed        = (*Desk)(nil)
	_ Returning    = (*Desk)(nil)
)

func newDesk(s *Sockets, row ledger.Agent, config SocketConfig) *Desk {
	return &Desk{host: s, row: row, config: config, window: make(chan struct{}, agentwire.Window), closed: make(chan struct{}), changed: make(chan struct{}), left: time.Now(), turns: map[string]*task{}}
}

// Expect implements Returning: the grace begins now.
func (d *Desk) Expect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.came, d.left = true, time.Now()
}

// Close implements io.Closer.
func (d *Desk) Close() error {
	close(d.closed)
	d.host.shutDesk(d)
	return nil
}

// Revoke implements Keyed.
func (d *Desk) Revoke(key int64) {
	d.host.each(func(l *link) bool { return l.desk == d && l.key == key }, func(l *link) { l.shut(wire.CloseRevoked, "key revoked") })
}

// Expire implements Keyed.
func (d *Desk) Expire(but int64, at time.Time) {
	d.host.each(func(l *link) bool {
		if l.desk != d || l.key == but {
			return false
		}
		if l.expires.IsZero() || at.Before(l.expires) {
			l.expires = at
		}
		return true
	}, func(l *link) { l.pulse(time.Now()) })
}

// enter makes a link the agent's connection, and hands over what has not ended,
// and what has waited for the agent.
func (d *Desk) enter(l *link, hello *agentwire.FromAgent) bool {
	if !d.admit(l, hello) {
		return false
	}
	d.host.Hub.AgentBack(d.row.Name)
	return true
}

func (d *Desk) admit(l *link, hello *agentwire.FromAgent) bool {
	if code, _ := l.queue.Closed(); code != 0 { // revoked meanwhile: it must not replace anybody
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link != nil {
		d.link.shut(wire.CloseReplaced, "replaced by a newer connection")
	}
	d.link, d.came = l, true
	open := make([]*task, 0, len(d.turns))
	for _, t := range d.turns {
		if hello.Resume == "" || t.id > hello.Resume || !t.acked { // ids sort as they were given
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b *task) int { return int(a.given.ID - b.given.ID) })
	ack := &agentwire.HelloAck{
		OK: true, Protocol: agentwire.Protocol, Agent: d.row.Name,
		Limits: &wire.Limits{MaxFrameBytes: wire.MaxFrame, PingIntervalMS: int(d.host.PingInterval.Milliseconds()), Window: agentwire.Window},
	}
	if hello.Resume != "" {
		ack.Resume = d.resumed(hello.Resume, open)
	}
	l.send(&agentwire.FromHost{Type: agentwire.TypeHelloAck, HelloAck: ack})
	for _, t := range open {
		l.sendBytes(t.frame(t.handed || t.given.Repeated))
		t.handed, t.acked = true, false
	}
	d.signal()
	return true
}

// resumed says what an agent missed that had turns up to the one with the id. The
// mutex must be held.
func (d *Desk) resumed(last string, open []*task) *agentwire.Resumed {
	r := new(agentwire.Resumed)
	if len(open) > 0 {
		r.From = open[0].id
	}
	id, err := ledger.ParseMessageID(last)
	switch {
	case err != nil:
		r.Gap = "the turn_id is none of this host's"
	case id < d.unseen:
		r.Gap = "turns ended while the agent was away"
	case !slices.Contains(d.ended, last) && d.turns[last] == nil:
		r.Gap = "the turn is not remembered: the host was restarted, or it is too long ago"
	}
	return r
}

// leave ends a link's time as the agent's connection, if it is still that. If no
// other comes within the grace the agent is away.
func (d *Desk) leave(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link != l {
		return
	}
	d.link, d.left = nil, time.Now()
	d.signal()
	changed := d.changed
	d.host.wg.Go(func() { // the link that leaves is waited for by the same
		late := time.NewTimer(d.host.Grace)
		defer late.Stop()
		select {
		case <-changed:
		case <-d.closed: // the name may be another's by now
		case <-d.host.ctx.Done():
		case <-late.C:
			if _, away := d.Away(); away {
				d.host.Hub.AgentGone(d.row.Name)
			}
		}
	})
}

// signal wakes the turns, which look at the connection. The mutex must be held.
func (d *Desk) signal() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Connected reports whether the agent is there.
func (d *Desk) Connected() bool {
	there, _, _ := d.presence()
	return there
}

// Away implements hub.Presence: an agent that went just now may be about to come
// back.
func (d *Desk) Away() (since time.Time, away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left, d.link == nil && (!d.came || time.Since(d.left) >= d.host.Grace)
}

// presence is whether the agent is connected, else how long it may still be gone, and
// what is closed when that changes.
func (d *Desk) presence() (there bool, grace time.Duration, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link != nil, d.host.Grace - time.Since(d.left), d.changed
}

// send writes to the agent, if it is there.
func (d *Desk) send(f *agentwire.FromHost) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link != nil {
		d.link.send(f)
	}
}

var errTooLarge = fmt.Errorf("the message with its envelope is larger than a frame of %d bytes", wire.MaxFrame)

// Handle implements hub.Agent: the turn is the agent's until it ends it, or is
// gone for longer than the grace.
func (d *Desk) Handle(ctx context.Context, given hub.Turn, r hub.Reply) error {
	if _, away := d.Away(); away {
		return fmt.Errorf("%w: %s is not connected", hub.ErrAway, d.row.Name)
	}
	select {
	case d.window <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-d.window }()
	t, err := d.describe(given)
	if err != nil {
		return err
	}
	d.begin(t)
	defer d.end(t)
	return t.run(ctx, r)
}

// describe makes the turn as its agent sees it.
func (d *Desk) describe(given hub.Turn) (*task, error) {
	t := newTask(d, given)
	t.wire = *turnFrame(&given)
	t.first = t.frame(given.Repeated)
	if len(t.first)+len(`,"repeated":true`) > wire.MaxFrame {
		return nil, errTooLarge
	}
	return t, nil
}

// begin hands the turn over, if the agent is there.
func (d *Desk) begin(t *task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turns[t.id] = t
	if d.link != nil {
		d.link.sendBytes(t.first)
		t.handed = true
	}
	t.first = nil // whoever comes next gets one of their own
}

// gave reports whether the agent was given the turn.
func (d *Desk) gave(t *task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return t.handed
}

// end takes note that the turn is over.
func (d *Desk) end(t *task) {
	close(t.over)
	d.note(t)
	t.refuseRest()
}

func (d *Desk) note(t *task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.turns, t.id)
	if d.link == nil {
		d.unseen = max(d.unseen, t.given.ID)
	}
	if len(d.ended) >= maxEnded {
		d.ended = d.ended[1:]
	}
	d.ended = append(d.ended, t.id)
}

// acked notes that the agent has a turn; one that is over needs no word.
func (d *Desk) acked(turn string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.turns[turn]; t != nil {
		t.acked = true
	}
}

// take passes a frame of the agent's on to its turn, or to who sends what belongs
// to none. It waits for whoever is behind; what came over a connection that was
// replaced does not count.
func (d *Desk) take(l *link, f *agentwire.FromAgent) {
	d.mu.Lock()
	if d.link != l {
		d.mu.Unlock()
		return
	}
	if own := ownID(f); own != "" {
		if was, repeated := d.sent.begin(own); repeated {
			if was.done { // else it is answered once more when that is known
				l.send(ackOf(f, was.id))
			}
			d.mu.Unlock()
			return
		}
	}
	t := d.turns[f.TurnID]
	if t != nil {
		t.putting.Add(1)
	}
	late := t == nil && slices.Contains(d.ended, f.TurnID)
	d.mu.Unlock()
	switch {
	case f.TurnID == "":
		select {
		case l.errands <- f:
		case <-d.host.ctx.Done():
		}
	case t == nil && late && (f.Lossy() || f.Type == agentwire.TypeTurnEnd):
	case t == nil && late: // perhaps its last answer is not stored yet
		d.answer(f, 0, notOpen(f.TurnID))
	case t == nil:
		d.answer(f, 0, d.unknown(f.TurnID))
	case !t.put(f):
		d.answer(f, 0, notOpen(f.TurnID))
	}
}

// unknown is what is wrong with a turn that is not open here: one that a host
// before this one had handed over is open as soon as it is handed over again. Of a turn
// that is another agent's nobody learns whether it is open.
func (d *Desk) unknown(turn string) error {
	if d.mayCome(turn) {
		return wire.Refuse(wire.CodeStorageUnavailable, "turn_id: found %s, which the host has not handed over since it started: send it again later", turn)
	}
	return notOpen(turn)
}

// mayCome reports whether a turn that is not open here waits for this agent.
func (d *Desk) mayCome(turn string) bool {
	id, err := ledger.ParseMessageID(turn)
	if err != nil {
		return false
	}
	e, err := d.host.Store.Message(d.host.ctx, id)
	if err != nil || e.Direction != ledger.In || e.State != ledger.Received {
		return false
	}
	who, err := d.host.Hub.Answerer(d.host.ctx, e)
	return err == nil && who == d.row.Name
}

// ownID is the id by which a frame is acknowledged; "" = it is not.
func ownID(f *agentwire.FromAgent) string {
	if f.Lossy() || f.Type == agentwire.TypeTurnEnd {
		return ""
	}
	return f.MessageID
}

func notOpen(turn string) error {
	return wire.Refuse(wire.CodeNotSupported, "turn_id: found %.40q, which is no open turn of this agent: a message ends its turn unless it says \"more\": true", turn)
}

// answer tells the agent what became of a frame: in an acknowledgement if it has
// an id, else only what is wrong.
func (d *Desk) answer(f *agentwire.FromAgent, id ledger.MessageID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := ownID(f)
	if err == nil {
		answers := d.sent.end(own, id)
		if own != "" && d.link != nil {
			for range answers {
				d.link.send(ackOf(f, id))
			}
		}
		return
	}
	answers := d.sent.forget(own)
	werr := d.fault(f, err)
	switch {
	case d.link == nil:
	case own == "":
		d.link.error(werr)
	default:
		for range answers {
			d.link.send(&agentwire.FromHost{Type: agentwire.TypeMessageAck, Ack: &agentwire.Ack{MessageID: own, Error: werr.Error(), Retryable: werr.Retryable()}})
		}
	}
}

func ackOf(f *agentwire.FromAgent, id ledger.MessageID) *agentwire.FromHost {
	a := &agentwire.Ack{MessageID: f.MessageID, OK: true}
	if id != 0 {
		a.ID = id.String()
	}
	return &agentwire.FromHost{Type: agentwire.TypeMessageAck, Ack: a}
}

// fault is an error as the agent is told it; what is the host's own business is
// logged.
func (d *Desk) fault(f *agentwire.FromAgent, err error) *wire.Error {
	var werr *wire.Error
	switch {
	case errors.As(err, &werr):
		werr.Ref = f.MessageID
		return werr
	case errors.Is(err, hub.ErrContent):
		return &wire.Error{Code: wire.CodeWrongType, Message: err.Error(), Ref: f.MessageID}
	case errors.Is(err, hub.ErrTooLarge):
		return &wire.Error{Code: wire.CodeTooLarge, Message: err.Error(), Ref: f.MessageID}
	case errors.Is(err, hub.ErrTransfer):
		return &wire.Error{Code: wire.CodeNotSupported, Message: "agent: " + err.Error(), Ref: f.MessageID}
	case errors.Is(err, hub.ErrNotAttached), errors.Is(err, hub.ErrQueueFull):
		return &wire.Error{Code: wire.CodeNotSupported, Message: "conversation_id: " + err.Error(), Ref: f.MessageID}
	case ledger.Failing(err):
		return &wire.Error{Code: wire.CodeStorageUnavailable, Message: "nothing was stored: send it again later", Ref: f.MessageID}
	}
	d.host.Log.Error("agent's frame not taken", "agent", d.row.Name, "type", f.Type, "error", err)
	return &wire.Error{Code: wire.CodeInternal, Message: "the frame was not taken", Ref: f.MessageID}
}
