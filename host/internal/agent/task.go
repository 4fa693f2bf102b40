package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
)

// maxTurnFrames is how many frames of one turn are read ahead.
const maxTurnFrames = 16

// task is a turn of an agent that dials in, until it ends. The goroutine that
// runs it owns what is not marked otherwise.
type task struct {
	desk   *Desk
	id     string
	given  hub.Turn
	wire   agentwire.Turn
	first  []byte // frame, until it was begun
	frames chan *agentwire.FromAgent
	over   chan struct{} // closed at its end

	putting sync.WaitGroup // of put; begun while Desk.mu is held and the desk has the turn

	shown  bool // something of an answer
	handed bool // to the agent, once at least; guarded by Desk.mu
	acked  bool // the agent has it; guarded by Desk.mu
}

func newTask(d *Desk, given hub.Turn) *task {
	return &task{desk: d, id: given.ID.String(), given: given, frames: make(chan *agentwire.FromAgent, maxTurnFrames), over: make(chan struct{})}
}

// frame is the turn as it is handed over.
func (t *task) frame(repeated bool) []byte {
	w := t.wire
	w.Repeated = repeated
	return (&agentwire.FromHost{Type: agentwire.TypeTurn, Turn: &w}).Append(nil)
}

// put passes a frame to the turn; false if it is over.
func (t *task) put(f *agentwire.FromAgent) bool {
	defer t.putting.Done()
	select {
	case t.frames <- f:
		return true
	case <-t.over:
		return false
	}
}

var errLost = errors.New("the agent was lost in the middle of its answer")

// run takes the agent's frames until the turn ends.
func (t *task) run(ctx context.Context, r hub.Reply) error {
	var giveUp <-chan time.Time // nil = the agent is there, as it mostly is
	for {
		there, grace, changed := t.desk.presence()
		if there {
			giveUp = nil
		} else if giveUp == nil {
			giveUp = time.After(grace)
		}
		select {
		case f := <-t.frames:
			if ended, err := t.take(ctx, f, r); ended {
				return err
			}
		case <-changed:
		case <-giveUp:
			if t.shown {
				return errLost
			}
			why := hub.ErrAway // it never had the turn
			if t.desk.gave(t) {
				why = hub.ErrLeft
			}
			return fmt.Errorf("%w: %s was gone for %s", why, t.desk.row.Name, t.desk.host.Grace)
		case <-ctx.Done():
			t.cancel(ctx)
			return context.Cause(ctx)
		}
	}
}

// refuseRest answers what came too late to be taken, when nobody finds the turn
// any more.
func (t *task) refuseRest() {
	t.putting.Wait()
	for {
		select {
		case f := <-t.frames:
			if !f.Lossy() && f.Type != agentwire.TypeTurnEnd { // else it is late, not wrong
				t.desk.answer(f, 0, notOpen(t.id))
			}
		default:
			return
		}
	}
}

// cancel tells the agent that nobody waits for the answer any more.
func (t *task) cancel(ctx context.Context) {
	why := agentwire.CancelEnded
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, hub.ErrStopped):
		why = agentwire.CancelStopped
	case errors.Is(cause, context.Canceled):
		why = agentwire.CancelDraining
	}
	t.desk.send(&agentwire.FromHost{Type: agentwire.TypeCancel, Cancel: &agentwire.Cancel{TurnID: t.id, Reason: why}})
}

// take acts on one frame; ended reports that it was the turn's last.
func (t *task) take(ctx context.Context, f *agentwire.FromAgent, r hub.Reply) (ended bool, err error) {
	switch f.Type {
	case agentwire.TypeTurnEnd:
		if f.Error != "" {
			return true, hub.Quote(fmt.Errorf("the agent says: %.500s", f.Error))
		}
		return true, nil
	case agentwire.TypeTyping:
		r.Typing(f.On == nil || *f.On)
		return false, nil
	case agentwire.TypeStream:
		m, err := contentOf(f)
		if err != nil {
			t.desk.answer(f, 0, err)
			return false, nil
		}
		t.shown = true
		r.Stream(m.Text)
		return false, nil
	}
	id, posted, err := t.say(ctx, f, r)
	if posted {
		return true, nil
	}
	if err != nil && ctx.Err() != nil {
		t.desk.answer(f, 0, notOpen(t.id))
		t.cancel(ctx)
		return true, context.Cause(ctx)
	}
	t.desk.answer(f, id, err)
	if err != nil {
		return false, nil // the agent was told, and may say it otherwise
	}
	t.shown = true
	return f.Last(), nil
}

// say commits and sends what the frame says. posted: the turn is over, and the
// agent is answered when its last message is stored.
func (t *task) say(ctx context.Context, f *agentwire.FromAgent, r hub.Reply) (id ledger.MessageID, posted bool, err error) {
	if f.Type == agentwire.TypeTransfer { // first, so that nothing is said if it can't be
		if err := r.Transfer(ctx, f.Agent, f.Reason); err != nil || f.Text == nil && len(f.Parts) == 0 {
			return 0, false, err
		}
	}
	var row ledger.Channel // read only for what is about another message
	if f.Update != nil || f.ReplyTo != "" && f.ReplyTo != t.id {
		if row, err = t.desk.host.Store.Channel(ctx, t.given.Channel); err != nil {
			return 0, false, err
		}
	}
	if f.ReplyTo != "" && f.ReplyTo != t.id {
		id, err = t.desk.sendOwn(ctx, row, t.given.Conversation, f)
		return id, false, err
	}
	m, err := t.desk.message(ctx, row, f)
	if err != nil {
		return 0, false, err
	}
	if f.Last() {
		err = r.Last(ctx, m, func(id ledger.MessageID, err error) { t.desk.answer(f, id, err) })
		return 0, err == nil, err
	}
	id, err = r.Send(ctx, m)
	return id, false, err
}
