package bridle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// ForeignClient begins the clientId of somebody who is no browser, but came by
// another channel: no browser's id may.
const ForeignClient = "pontoon:"

// maxClients is how many clients of other channels an agent is remembered to have
// heard of, so that it may write to them on its own.
const maxClients = 4096

// Agent is one agent of the kind. It is away while it is not connected.
type Agent struct {
	agents *Agents
	row    ledger.Agent

	mu      sync.Mutex    // guards what follows
	link    *link         // nil = it is away
	entered chan struct{} // closed when another link enters
	since   time.Time     // when the link came or went
	closed  bool
	turns   map[string]*turn // that are under way, by client
	clients map[string]place
	order   []string // theirs, oldest first
}

// place is where a client is reached.
type place struct{ channel, conversation string }

// turn is one message that the agent is to answer.
type turn struct {
	frames   chan frame
	over     chan struct{}
	answered bool // the whole answer is among the frames; guarded by Agent.mu
}

var (
	_ hub.Agent    = (*Agent)(nil)
	_ hub.Presence = (*Agent)(nil)
	_ agent.Keyed  = (*Agent)(nil)
	_ io.Closer    = (*Agent)(nil)
)

func newAgent(s *Agents, row ledger.Agent) *Agent {
	return &Agent{agents: s, row: row, entered: make(chan struct{}), since: time.Now(), turns: map[string]*turn{}, clients: map[string]place{}}
}

// Connected reports whether the agent is there.
func (a *Agent) Connected() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link != nil
}

// Away implements hub.Presence.
func (a *Agent) Away() (since time.Time, away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since, a.link == nil
}

// Close implements io.Closer: the row has changed or gone.
func (a *Agent) Close() error {
	a.agents.forget(a)
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cut(func(*link) bool { return true }, "the agent was changed or deleted")
	return nil
}

// Revoke implements agent.Keyed.
func (a *Agent) Revoke(key int64) {
	a.cut(func(l *link) bool { return l.key == key && key != 0 }, "the key was revoked")
}

// Expire implements agent.Keyed.
func (a *Agent) Expire(but int64, at time.Time) {
	a.mu.Lock()
	if l := a.link; l != nil && l.key != 0 && l.key != but && (l.expires.IsZero() || at.Before(l.expires)) {
		l.expires = at
	}
	a.mu.Unlock()
	a.expire(time.Now())
}

// expire ends the connection if its key has ended.
func (a *Agent) expire(now time.Time) {
	a.cut(func(l *link) bool { return !l.expires.IsZero() && !now.Before(l.expires) }, "the key has expired")
}

// cut ends the agent's connection if it matches.
func (a *Agent) cut(match func(*link) bool, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.link; l != nil && match(l) {
		a.link, a.since = nil, time.Now()
		l.fail(CodeInvalidToken, why, "")
		l.socket.Close()
	}
}

// enter makes a link the agent's connection; an older one goes.
func (a *Agent) enter(l *link) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	if before := a.link; before != nil {
		before.fail(CodeReplaced, "replaced by a newer connection of this agent", "")
		before.socket.Close()
	}
	a.link, a.since = l, time.Now()
	close(a.entered)
	a.entered = make(chan struct{})
	return true
}

// next is the agent's connection after one that has gone: it has a while to come
// back.
func (a *Agent) next(ctx context.Context) (*link, error) {
	late := time.NewTimer(a.agents.Grace)
	defer late.Stop()
	for {
		a.mu.Lock()
		l, entered, closed := a.link, a.entered, a.closed
		a.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if closed {
			return nil, fmt.Errorf("%w: %s was changed or deleted", hub.ErrLeft, a.row.Name)
		}
		select {
		case <-entered:
		case <-late.C:
			return nil, fmt.Errorf("%w: %s has gone", hub.ErrLeft, a.row.Name)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// leave ends a link's time as the agent's connection, if it is still that.
func (a *Agent) leave(l *link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == l {
		a.link, a.since = nil, time.Now()
	}
}

// browsers is how the conversations of the agent's browsers begin.
func (a *Agent) browsers() string { return a.row.Name + "/" }

// clientOf is how the agent knows whose message it is.
func (a *Agent) clientOf(t *hub.Turn) string {
	if client, ok := strings.CutPrefix(t.Conversation, a.browsers()); ok && t.Channel == Kind {
		return client
	}
	return ForeignClient + t.Channel + "/" + t.Conversation
}

// Handle implements hub.Agent: the turn ends with the agent's first whole answer,
// or when nothing was heard of it for too long.
func (a *Agent) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	client := a.clientOf(&t)
	event, err := messageEvent(client, &t)
	if err != nil {
		return err
	}
	l, mine, err := a.begin(client, place{t.Channel, t.Conversation})
	if err != nil {
		return err
	}
	defer a.end(client, mine)
	l.socket.Emit(event)
	idle := time.NewTimer(a.agents.Patience)
	defer idle.Stop()
	for {
		select {
		case f := <-mine.frames:
			idle.Reset(a.agents.Patience)
			switch f.event {
			case eventTyping:
				r.Typing(true)
			case eventStream:
				r.Stream(f.message.Text)
			default:
				return a.last(ctx, r, f)
			}
		case <-l.gone:
			if l, err = a.next(ctx); err != nil {
				return err
			}
			l.socket.Emit(event) // the same id: it knows whether it has it
		case <-idle.C:
			return nil // what it says later goes on its own
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// last gives the answer, and tells the agent if it can't be sent.
func (a *Agent) last(ctx context.Context, r hub.Reply, f frame) error {
	err := r.Last(ctx, f.message, nil)
	if errors.Is(err, hub.ErrContent) {
		f.from.fail(CodeBadMessage, err.Error(), f.client)
	}
	return err
}

// begin opens a turn, if the agent is there.
func (a *Agent) begin(client string, at place) (*link, *turn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.link == nil {
		return nil, nil, fmt.Errorf("%w: %s is not connected", hub.ErrAway, a.row.Name)
	}
	if _, known := a.clients[client]; !known && strings.HasPrefix(client, ForeignClient) {
		if len(a.order) >= maxClients {
			delete(a.clients, a.order[0])
			a.order = a.order[1:]
		}
		a.clients[client], a.order = at, append(a.order, client)
	}
	t := &turn{frames: make(chan frame, maxFrames), over: make(chan struct{})}
	a.turns[client] = t
	return a.link, t, nil
}

func (a *Agent) end(client string, t *turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(t.over)
	if a.turns[client] == t {
		delete(a.turns, client)
	}
}

// take passes a frame on to its client's turn; false if there is none any more.
func (a *Agent) take(f frame) bool {
	a.mu.Lock()
	t := a.turns[f.client]
	answered := t != nil && t.answered
	if t != nil && !f.lossy() {
		t.answered = true
	}
	a.mu.Unlock()
	switch {
	case t == nil:
		return false
	case answered: // what comes behind the answer must not overtake it
		select {
		case <-t.over:
		case <-a.agents.ctx.Done():
		}
		return false
	case f.lossy():
		select {
		case t.frames <- f:
		default: // the next one says more
		}
		return true
	}
	select {
	case t.frames <- f:
		return true
	case <-t.over:
		return false
	}
}

// speak sends what belongs to no turn.
func (a *Agent) speak(ctx context.Context, f frame) error {
	row, conversation, err := a.find(ctx, f.client)
	if err != nil {
		return err
	}
	if f.event == eventTyping {
		return a.agents.Out.Typing(ctx, row, conversation, true)
	}
	_, err = a.agents.Out.Send(ctx, row, hub.Outgoing{Conversation: conversation, Message: f.message, Agent: a.row.Name})
	return err
}

var errUnknownClient = errors.New("no client of this agent has this id")

// find is where a client is reached: a browser's user who has spoken to this
// agent, or somebody else who has since the host began.
func (a *Agent) find(ctx context.Context, client string) (row ledger.Channel, conversation string, err error) {
	a.mu.Lock()
	at, foreign := a.clients[client]
	a.mu.Unlock()
	switch {
	case foreign:
		if row, err = a.agents.Store.Channel(ctx, at.channel); err == nil && !row.Enabled {
			err = errUnknownClient
		}
		conversation = at.conversation
	case strings.HasPrefix(client, ForeignClient):
		err = errUnknownClient
	default:
		conversation = a.browsers() + client
		if row, err = a.agents.Store.ChannelOfKind(ctx, Kind); err == nil {
			err = a.spoken(ctx, row, conversation)
		}
	}
	if errors.Is(err, ledger.ErrNotFound) {
		err = errUnknownClient
	}
	return row, conversation, err
}

// spoken is an error if nothing was ever said in the conversation: an agent makes
// none.
func (a *Agent) spoken(ctx context.Context, row ledger.Channel, conversation string) error {
	said, err := a.agents.Store.Before(ctx, ledger.Scope{Channel: row.Key, Conversation: &conversation}, 0, 1)
	if err == nil && len(said) == 0 {
		err = errUnknownClient
	}
	return err
}
