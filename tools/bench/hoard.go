package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// hoard is a data directory full of what waits, and an empty one beside it.
type hoard struct {
	MemoryConfig
	name          string
	n             int
	agent         string
	conversations int
	turns         bool // wait for an agent; else messages for the adapter do
	dir           string
	key           string // of the agent that is away
	*backlog
}

func (h *hoard) with() string    { return filepath.Join(h.dir, "with") }
func (h *hoard) without() string { return filepath.Join(h.dir, "without") }

const hoardChannel = "hoard"

func (h *hoard) measure(ctx context.Context) (r MemoryLoad, err error) {
	r.Name = h.name
	var tokens [2]string // without, with
	for i, data := range []string{h.without(), h.with()} {
		h.Progress.say(fmt.Sprintf("%s: %s", h.name, filepath.Base(data)))
		if tokens[i], err = h.prepare(ctx, data, &r); err != nil {
			return r, err
		}
	}
	var looks [2][]startLook
	var longer []float64
	for round := range h.Rounds {
		h.Progress.say(fmt.Sprintf("%s: round %d of %d", h.name, round+1, h.Rounds))
		for i := range looks {
			i = (i + round) % len(looks)
			data, take := h.without(), h.attachIdle
			if i == 1 {
				data, take = h.with(), h.attachAndTake
			}
			look, err := h.look(ctx, data, tokens[i], take)
			if err != nil {
				return r, err
			}
			looks[i] = append(looks[i], look)
		}
		longer = append(longer, looks[1][round].start-looks[0][round].start)
	}
	if h.turns {
		if err := h.answerAll(ctx, tokens[1]); err != nil {
			return r, err
		}
	}
	r.Without.of(looks[0])
	r.With.of(looks[1])
	r.Longer = SpreadOf(longer)
	r.Count = h.counted()
	return r, nil
}

// counted is what became of the messages that should have come.
func (h *hoard) counted() Count {
	c := h.peer.count()
	if !h.turns {
		c.Sent = h.Taken * h.Rounds
		c.Lost = max(c.Sent-c.Answered, 0)
	}
	return c
}

// prepare makes the channel and its agent on a fresh disk, and all that waits, if this
// is the disk with it.
func (h *hoard) prepare(ctx context.Context, data string, r *MemoryLoad) (token string, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", fmt.Errorf("make data directory: %w", err)
	}
	host, err := startHost(ctx, h.Exe, data)
	if err != nil {
		return "", err
	}
	defer host.stop()
	api, err := host.rest()
	if err != nil {
		return "", err
	}
	defer api.close()
	if h.turns {
		if h.key, err = api.newAgent(ctx, h.agent, "websocket", map[string]any{}); err != nil {
			return "", err
		}
	}
	settings := backlogChannel(min(2*h.n, maxQueued), h.agent) // users are told of an agent that is away
	tokens, err := provisionAs(ctx, host, hoardChannel, 1, settings)
	if err != nil {
		return "", err
	}
	if data == h.without() {
		return tokens[0], nil
	}
	began := now()
	s := Scenario{Conns: 1, Window: 1, Conversations: h.conversations, Size: h.Size, Acks: 16}
	if h.backlog, err = fillBacklog(ctx, target{"host", host.bridge(), tokens, host.pid()}, s, 1, h.n); err != nil {
		return "", fmt.Errorf("fill the disk: %w", err)
	}
	r.Fill = (now() - began).Seconds()
	if found, err := api.waiting(ctx, channelName(hoardChannel, 0)); err != nil || !h.turns && found != h.n {
		return "", fmt.Errorf("found %d messages that wait for the adapter, expected %d: %w", found, h.n, err)
	}
	r.Database = sizeOf(data)
	return tokens[0], nil
}

// sizeOf is how many bytes a directory has, those of its directories aside.
func sizeOf(dir string) (n int64) {
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// look starts a host on data, and looks at its memory: at once, after a while, and after
// an adapter did its part.
func (h *hoard) look(ctx context.Context, data, token string, part func(context.Context, target) error) (l startLook, err error) {
	began := now()
	host, err := startHost(ctx, h.Exe, data)
	if err != nil {
		return l, err
	}
	defer host.stop()
	l.start = (now() - began).Seconds()
	l.started = residentMB(host)
	if err := h.settle(ctx); err != nil {
		return l, err
	}
	l.settled = residentMB(host)
	if err := part(ctx, target{"host", host.bridge(), []string{token}, host.pid()}); err != nil {
		return l, err
	}
	l.attached = residentMB(host)
	return l, nil
}

func residentMB(host *child) float64 { return float64(memoryOf(host.pid()).RSS) / (1 << 20) }

func (h *hoard) settle(ctx context.Context) error {
	select {
	case <-time.After(h.Settle):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attachIdle is an adapter for which nothing waits.
func (h *hoard) attachIdle(ctx context.Context, t target) error {
	ws, _, err := connectAs(ctx, t.url, t.tokens[0], acking(16))
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	return h.settle(ctx)
}

// attachAndTake attaches the adapter that filled the disk. It takes its part of what
// waits for it, or hears what its users are told.
func (h *hoard) attachAndTake(ctx context.Context, t target) error {
	h.t = t
	if err := h.attach(ctx, 1); err != nil {
		return err
	}
	defer h.peer.close()
	if h.turns {
		return h.hear(max(h.Settle, time.Second))
	}
	return h.take(h.Taken, drainPatience)
}

// answerAll lets the agent come back: each of its turns must be answered, once.
func (h *hoard) answerAll(ctx context.Context, token string) error {
	h.Progress.say(h.name + ": the agent comes back")
	host, err := startHost(ctx, h.Exe, h.with())
	if err != nil {
		return err
	}
	defer host.stop()
	agent, err := spawnAgent(ctx, h.key, "websocket", host.url)
	if err != nil {
		return err
	}
	defer agent.stop()
	h.t = target{"host", host.bridge(), []string{token}, host.pid()}
	if err := h.attach(ctx, 1); err != nil {
		return err
	}
	defer h.peer.close()
	return h.hear(drainPatience)
}

// hear acknowledges whatever comes, and counts the answers among it: the others tell
// users that the agent is away. It ends when all are answered, or nothing comes any more.
func (h *hoard) hear(patience time.Duration) error {
	for p := h.peer; p.answered < p.sent; {
		_ = p.conn.SetReadDeadline(time.Now().Add(patience))
		frame, err := p.read()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d answers: %w", p.answered, err)
		}
		out, err := wire.DecodeOutbound(frame)
		if err != nil {
			return err
		}
		if out.MessageID == "" {
			continue
		}
		if err := p.acknowledge([]byte(out.MessageID)); err != nil {
			return err
		}
		if seq, ok := p.sequence(value(frame, keyReplyCtx)); ok && seq < p.sent && out.Text == p.textOf(seq) {
			p.note(seq)
		}
	}
	return nil
}
