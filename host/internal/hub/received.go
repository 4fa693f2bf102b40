package hub

import (
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// done runs on the writer after the commit.
func (f *inbound) done(r ledger.Result) {
	c := f.a.channel
	kept := r.Err == nil || errors.Is(r.Err, ledger.ErrDuplicate)
	if kept { // acknowledged, then answered
		f.a.port.Settled(f.ref, nil)
		f.follow(r.Err != nil)
	}
	ch := c.lock()
	for i := range f.sent {
		ch.outbox.settle(f.conv, &f.sent[i], &f.unit.Out[i], r)
	}
	if r.Err == nil {
		ch.count().Received++
		ch.count().failed(Outcome{ledger.In, f.row.State, f.row.Reason})
		if f.turn != nil {
			f.turn.id, f.turn.index = f.row.ID, f.row.Turn
			ch.turns.interrupt(f.conv)
			ch.turns.start(f.conv, *f.turn)
		} else {
			ch.over(f.row.ID, f.row.Reason)
			ch.release(f.conv)
		}
	} else {
		f.unpass()
		if f.turn != nil {
			f.conv.turns--
			f.conv.stopComing = max(0, f.conv.stopComing-1) // they come in their order
		}
		if kept {
			f.repeat(ch)
		} else {
			ch.count().Refused++
		}
		ch.release(f.conv)
	}
	if r.Err == nil && f.unit.Set != nil {
		ch.turns.reclaim(f.conv)
	}
	ch.unlock()
	if r.Err == nil && f.unit.Set != nil {
		c.reroute()
	}
	if !kept {
		f.a.port.Settled(f.ref, refusal())
		return
	}
	if p, ok := f.a.port.(Repeater); ok && r.Err != nil {
		p.Repeated(f.ref)
	}
	r.Later(f.a.port)
	if c.hub.Events.wanted() {
		c.hub.created(c, f.conv, f.row, f.unit.Out)
	}
	if r.Err == nil {
		f.free()
	}
}
