package agui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What may wait for a client that reads slowly.
const (
	maxWaiting      = 256
	maxWaitingBytes = 8 << 20 // roughly
)

// Errors of Begin beside *Bad, the *wire.Error of a message that the hub refused,
// *Failure and those of storage: with any of them nothing was stored.
var (
	ErrDisabled = errors.New("the channel " + Kind + " is disabled")
	ErrBusy     = errors.New("too many runs at once")
)

// Run is one client that waits for what is answered to its message. Stream shows
// it; Close must be called.
type Run struct {
	front        *Front
	holder       auth.Holder
	in           input
	conversation string
	turn         *turn

	wake   chan struct{} // capacity 1: something waits
	failed chan struct{} // closed with failure

	mu      sync.Mutex // guards what follows
	queue   []hub.Parcel
	bytes   int
	failure *Failure // that ends the run; nil = none
}

// Begin takes a run: its message is stored, and its turn begun, when Begin
// returns. A message that was stored before is not stored again.
func (f *Front) Begin(ctx context.Context, h auth.Holder, body []byte) (*Run, error) {
	return f.begin(ctx, h, &intake.Body{JSON: body})
}

// begin is Begin for a body that was read. Its room is given back once the message
// is stored.
func (f *Front) begin(ctx context.Context, h auth.Holder, body *intake.Body) (*Run, error) {
	defer body.Close()
	in, err := decode(ctx, body)
	if err != nil {
		return nil, err
	}
	r := &Run{front: f, holder: h, in: in, wake: make(chan struct{}, 1), failed: make(chan struct{})}
	inbox, err := f.enter(r)
	if err != nil {
		return nil, err
	}
	if err := r.say(ctx, inbox); err != nil {
		r.Close()
		return nil, err
	}
	r.in.message = message.Message{ID: r.in.message.ID} // the turn has it: a run may take long
	return r, nil
}

// enter counts the run.
func (f *Front) enter(r *Run) (front.Inbox, error) {
	f.heard.Store(time.Now().UnixMilli())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inbox == nil {
		return nil, ErrDisabled
	}
	n := 0
	for other := range f.open {
		if other.holder.ID == r.holder.ID {
			n++
		}
	}
	if n >= f.MaxRuns {
		return nil, fmt.Errorf("%w: found %d of this key, expected at most that: wait until one is over", ErrBusy, n)
	}
	f.open[r] = struct{}{}
	return f.inbox, nil
}

// Close ends the run for whoever reads it. Its turn goes on.
func (r *Run) Close() {
	f := r.front
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, r)
	if r.turn != nil && r.turn.run == r {
		r.turn.run = nil
	}
}

// say gives the message to the hub, and waits until it is stored.
func (r *Run) say(ctx context.Context, inbox front.Inbox) error {
	f := r.front
	if err := f.admitFiles(r.holder, &r.in); err != nil {
		return err
	}
	var err error
	channel := f.key()
	if r.conversation, err = f.Store.OpenThread(ctx, channel, r.holder.ID, r.in.thread); err != nil {
		return err
	}
	if !r.join() {
		if ok, most := inbox.Allow(time.Now()); !ok {
			f.Settled(r.turn.ref, &wire.Error{Code: wire.CodeRateLimited, Message: fmt.Sprintf("more than %d messages a second: send it again later", most)})
		} else {
			inbox.Say(&wire.Inbound{
				Routing: wire.Routing{SessionKey: r.conversation, ConversationID: r.conversation, ReplyCtx: r.turn.replyCtx()},
				UserID:  r.holder.Ref(), UserName: r.holder.Name, MessageID: r.turn.ref,
			}, r.in.message)
		}
	}
	select {
	case <-r.turn.stored:
	case <-r.failed:
		return r.fallen()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.turn.refused != nil {
		return r.turn.refused
	}
	// What deletes old messages may have forgotten meanwhile whose this is.
	_, err = f.Store.OpenThread(ctx, channel, r.holder.ID, r.in.thread)
	return err
}

// join finds the turn of the message if it is under way; else it makes it, to be
// shown by this run.
func (r *Run) join() bool {
	f := r.front
	ref := refOf(r.conversation, r.in.message.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.turns[ref]; t != nil {
		r.turn = t
		return true
	}
	r.turn = newTurn(ref, r)
	f.turns[ref] = r.turn
	return false
}

func (f *Front) key() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channel.Key
}

// refOf is what the hub knows a client's message by: its id counts within its
// conversation. Neither holds a control character.
func refOf(conversation, id string) string { return conversation + refMark + id }

const refMark = "\x1f"

// offer takes what is to be shown. Front.mu is held.
func (r *Run) offer(p hub.Parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return
	}
	if p.Lossy() {
		for i := range r.queue {
			if r.queue[i].Lossy() && r.queue[i].Key == p.Key {
				r.queue[i] = p // the newest counts
				return
			}
		}
	}
	size := 0
	for i := range p.Frames {
		size += len(p.Frames[i].Text) + len(p.Frames[i].Parts)
	}
	if len(r.queue) >= maxWaiting || r.bytes+size > maxWaitingBytes {
		r.fall(errSlow)
		return
	}
	r.bytes += size
	r.queue = append(r.queue, p)
	r.stir()
}

func (r *Run) stir() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (r *Run) take() []hub.Parcel {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queue
	r.queue, r.bytes = nil, 0
	return queue
}

// fail ends the run with an error to its client.
func (r *Run) fail(why *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fall(why)
}

// fall is fail. The mutex must be held.
func (r *Run) fall(why *Failure) {
	if r.failure == nil {
		r.failure = why
		close(r.failed)
	}
}

// fallen is the failure of the run; nil = none.
func (r *Run) fallen() *Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// reasons are what a client is told of a message that failed.
var reasons = map[ledger.Reason]string{
	ledger.ReasonRejected:       "this key may not speak in the channel: see its allow_users",
	ledger.ReasonAgentAway:      "the agent is away",
	ledger.ReasonAgentTimeout:   "the agent did not answer in time",
	ledger.ReasonAgentRefused:   "the agent refused the turn",
	ledger.ReasonAgentFailed:    "the agent failed",
	ledger.ReasonUnknownOutcome: "the agent failed", // of a host of before
}

// failureOf is the failure of a turn; nil = it did not fail.
func failureOf(why ledger.Reason) *Failure {
	if why == "" {
		return nil
	}
	text, ok := reasons[why]
	if !ok {
		text = "the message was not handled"
	}
	return &Failure{string(why), text}
}
