package sdk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ids makes ids of frames that nobody else has, in this process or another.
type ids struct {
	prefix string
	last   atomic.Uint64
}

func newIDs() *ids { return &ids{prefix: "sdk-" + strings.ToLower(rand.Text()) + "-"} }

func (i *ids) next() string { return i.prefix + strconv.FormatUint(i.last.Add(1), 36) }

// Deliver hands one event to the host and returns nil once the event is on the
// host's disk. It waits until then: for a slow host, for the connection to come
// back, for a host whose disk is full. What a lost connection left without an
// answer is delivered again under the same id, and what the host refuses for now
// after a back-off, so that the host has it once.
//
// Events delivered one after the other keep their order. Of those that are
// delivered at the same time, the host's window (64) are under way at once.
//
// An error means that no repetition cures it (RejectedError, or what is wrong
// with the event itself), that the adapter stops (ErrStopped), or that ctx ended:
// then the host may have the event or not. With an ID it can be delivered again,
// and is still taken once. ctx bounds the waiting and not the writing, and an event
// that is written gets a second more for its answer: so what Run delivers last,
// with a ctx that has ended, still arrives.
//
// Where the host does not speak protocol 1.1, or does not acknowledge, nil says
// that the event was written to the connection, and what a connection took whole
// just before it broke may not have arrived. Protocol 1.0 has no ID, Cursor,
// Parts and Attachments: the text says what can be said of the latter two. What
// else the host has not granted is an error.
func (h *Host) Deliver(ctx context.Context, e Event) error {
	id := e.ID
	if id == "" {
		id = h.ids.next()
	}
	if l := h.links.present(); l == nil || l.protocol != newest.protocol { // what is wrong is said at once, not when the host is back
		if _, err := encode(&e, "", newest); err != nil {
			return fmt.Errorf("deliver event: %w", err)
		}
	}
	d := delivery{host: h, event: &e, id: id}
	wait := h.timing.backoff()
	for {
		again, err := d.try(ctx)
		if err == nil {
			return nil
		}
		if !again {
			return fmt.Errorf("deliver event: %w", err)
		}
		pause := wait.NextBackOff()
		h.Log.Debug("host refused an event for now, will try again", "err", err, "in", pause)
		if !sleep(ctx, pause) {
			return fmt.Errorf("deliver event: %w: %w", err, context.Cause(ctx))
		}
	}
}

// delivery is one event on its way to the host.
type delivery struct {
	host  *Host
	event *Event
	id    string
	frame []byte // for links of this dialect
	as    dialect
}

// try delivers the event until the host has answered; again = it may take it later.
func (d *delivery) try(ctx context.Context) (again bool, err error) {
	for {
		l, err := d.host.links.wait(ctx)
		if err != nil {
			return false, err
		}
		if d.frame == nil || d.as != l.dialect {
			if d.frame, err = encode(d.event, d.id, l.dialect); err != nil {
				return false, err
			}
			d.as = l.dialect
		}
		if !l.has(wire.CapAck) {
			err = l.write(ctx, d.frame)
		} else {
			var a answer
			if a, err = l.ask(ctx, d.answeredAs(), d.frame); err == nil {
				return d.outcome(a)
			}
		}
		switch {
		case err == nil:
			return false, nil
		case errors.Is(err, errNoTurn), errors.Is(err, errNoAnswer):
			return false, err
		}
		d.host.links.drop(l)
	}
}

// answeredAs is the id that the host's answer has: that of the frame.
func (d *delivery) answeredAs() string {
	switch e := d.event; {
	case e.Edits != "":
		return e.Edits
	case e.Deletes != "":
		return e.Deletes
	case e.Reaction != nil:
		return e.Reaction.To
	}
	return d.id
}

func (d *delivery) outcome(a answer) (again bool, err error) {
	switch {
	case a.refuse != nil:
		return a.refuse.Retryable(), &RejectedError{Reason: a.refuse.Error(), Retryable: a.refuse.Retryable()}
	case !a.ack.OK:
		return a.ack.Retryable, &RejectedError{Reason: a.ack.Error, Retryable: a.ack.Retryable}
	}
	if d.event.Cursor != "" {
		d.host.links.committed(d.event.Cursor)
	}
	return false, nil
}
