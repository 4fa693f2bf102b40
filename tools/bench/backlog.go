package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// backlogRate lets an adapter say as much as the host takes.
const backlogRate = 1_000_000

// backlogWindow is how many questions of a backlog wait for the disk: more than one
// commit takes.
const backlogWindow = 2048

// backlogChannel is a channel in which so many messages may wait.
func backlogChannel(length int, agent string) map[string]any {
	return map[string]any{"agent": agent, "queue": true, "rate_limit": backlogRate, "queue_limits": map[string]any{"length": length}}
}

// backlog is an adapter whose messages wait for somebody: their answers for the adapter,
// which acknowledges none while it asks, or they themselves for their agent. It knows
// what it asked over connections.
type backlog struct {
	peer *peer
	t    target
	s    Scenario
}

// fillBacklog asks n questions on one connection, lets all of them be committed, and
// goes away.
func fillBacklog(ctx context.Context, t target, s Scenario, run, n int) (*backlog, error) {
	b := &backlog{t: t, s: s}
	if err := b.attach(ctx, run); err != nil {
		return nil, err
	}
	defer func() { _ = b.peer.ws.Close() }()
	p := b.peer
	for committed := 0; committed < n; {
		if p.sent < n && p.sent < committed+backlogWindow {
			if err := p.question(); err != nil {
				return nil, err
			}
			continue
		}
		ok, err := p.committed()
		if err != nil {
			return nil, fmt.Errorf("after %d of %d questions: %w", committed, n, err)
		}
		if ok {
			committed++
		}
	}
	return b, p.ws.Close()
}

// waiting waits until nobody is attached to a channel any more, and says how many of its
// messages wait for an adapter.
func (r *rest) waiting(ctx context.Context, channel string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		var found struct {
			Health struct {
				Attached    bool `json:"attached"`
				QueueLength int  `json:"queue_length"`
			} `json:"health"`
		}
		if err := r.call(ctx, http.MethodGet, "/channels/"+channel, nil, &found); err != nil || !found.Health.Attached {
			return found.Health.QueueLength, err
		}
		select {
		case <-time.After(10 * time.Millisecond): // between two polls
		case <-ctx.Done():
			return 0, fmt.Errorf("adapter of %s stays attached: %w", channel, context.Cause(ctx))
		}
	}
}

// attach opens the connection, and keeps what was counted over the one before.
func (b *backlog) attach(ctx context.Context, run int) error {
	p, err := newPeer(ctx, b.t, b.s, run, 0)
	if err != nil {
		return err
	}
	if b.peer != nil {
		p.template, p.tally = b.peer.template, b.peer.tally
	}
	b.peer = p
	return nil
}

// question sends the next message.
func (p *peer) question() error {
	_, err := p.conn.Write(p.message(p.sent))
	p.sent++
	return err
}

// committed reads a frame; true = it says that a message is on the host's disk.
// Answers are left without an acknowledgement, and so come again.
func (p *peer) committed() (bool, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(grace))
	frame, err := p.read()
	if err != nil {
		return false, err
	}
	switch out, err := wire.DecodeOutbound(frame); {
	case err != nil:
		return false, err
	case out.Type == wire.TypeError:
		return false, fmt.Errorf("host refuses a question: %.200s", frame)
	case out.MessageAck != nil && !out.MessageAck.OK:
		return false, fmt.Errorf("host refuses a question: %.200s", frame)
	default:
		return out.MessageAck != nil, nil
	}
}

// take acknowledges answers until n have come or none comes any more. What does not
// come is left to be counted. The latency of each counts from now.
func (b *backlog) take(n int, patience time.Duration) error {
	p, st, began := b.peer, &stage{}, now()
	for want := p.answered + n; p.answered < want; {
		_ = p.conn.SetReadDeadline(time.Now().Add(patience))
		before := p.answered
		if _, err := p.take(st); err != nil {
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				return err
			}
			p.refusal = fmt.Sprintf("no answer came for %s", patience)
			return nil
		}
		if p.answered > before {
			p.counted++
			p.latency.add(now() - began)
		}
	}
	return nil
}
