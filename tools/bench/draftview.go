package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/agent"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// draftWord is what each draft has more than the one before.
const draftWord = " draft"

// draftText is an answer as far as n drafts have come; whole is what it says in the end,
// which no draft does.
func draftText(question string, n int) string { return question + strings.Repeat(draftWord, n) }
func wholeDraft(question string, drafts int) string {
	return draftText(question, drafts) + "."
}

// answerInDrafts is an agent's handler.
func answerInDrafts(drafts int, pace time.Duration) agent.Handler {
	return func(ctx context.Context, t *agent.Turn) error {
		question := t.Message.Parts[0].Plain()
		err := atPace(ctx, drafts, pace, func(i int) error {
			t.Stream(draftText(question, i+1))
			return nil
		})
		if err != nil {
			return err
		}
		_, err = t.Reply(ctx, wholeDraft(question, drafts))
		return err
	}
}

// atPace calls fn for 0 to n-1, one each pace; 0 = without a pause.
func atPace(ctx context.Context, n int, pace time.Duration, fn func(i int) error) error {
	for i, begun := 0, time.Now(); i < n; i++ {
		if err := fn(i); err != nil {
			return err
		}
		if pace > 0 {
			select {
			case <-time.After(time.Until(begun.Add(time.Duration(i+1) * pace))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// draftsRun is one measurement.
type draftsRun struct {
	Sample
	taken float64 // drafts that were written, a second
	gaps
}

// gaps are the ms between two frames of one answer.
type gaps struct {
	first   []float64 // between its first frame, which edits change, and the next
	between []float64 // between later ones
	last    []float64 // before its last
}

func (g *gaps) add(o gaps) {
	g.first, g.between, g.last = append(g.first, o.first...), append(g.between, o.between...), append(g.last, o.last...)
}

// show asks a question over each connection, and looks at what is shown of the answers.
func (l *draftsLoad) show(ctx context.Context, t target, round int) (r draftsRun, err error) {
	viewers := make([]*viewer, l.Streams)
	defer func() {
		for _, v := range viewers {
			if v != nil {
				_ = v.ws.Close()
			}
		}
	}()
	err = each(l.Streams, dialers, func(i int) (err error) {
		viewers[i], err = l.attach(ctx, t, i, round)
		return err
	})
	if err != nil {
		return r, err
	}
	before, began := usageOf(t.pid), now()
	err = each(l.Streams, l.Streams, func(i int) error { return viewers[i].ask(began, l.patience()) })
	after, took := usageOf(t.pid), now()-began
	if err != nil {
		return r, err
	}
	if err := each(l.Streams, l.Streams, func(i int) error { return viewers[i].linger() }); err != nil {
		return r, err
	}
	tallies := make([]*tally, len(viewers))
	frames := 0
	for i, v := range viewers {
		tallies[i] = &v.tally
		frames += v.frames
		r.add(v.gaps)
	}
	r.Sample = sampleOf(tallies, took, before, after)
	r.count(l, frames, took, before, after)
	return r, nil
}

// count fills in the figures of frames and drafts, of which there are more than answers.
func (r *draftsRun) count(l *draftsLoad, frames int, took time.Duration, before, after usage) {
	written := float64(l.Streams * (l.Drafts + 1))
	r.Throughput, r.taken = float64(frames)/took.Seconds(), written/took.Seconds()
	if after.known {
		cpu := Micros(after.server-before.server) / written
		r.ServerCPU = &cpu
	}
	r.OwnCPU = Micros(after.own-before.own) / written
}

// viewer is an adapter that looks at one answer while it is made.
type viewer struct {
	ws              *websocket.Conn
	conn            *corked
	question, whole string
	edits           bool
	tally           // of the answer, number 0
	gaps
	frames int
	newest int // draft that was shown
	at     time.Duration
}

func (l *draftsLoad) attach(ctx context.Context, t target, i, round int) (*viewer, error) {
	as := wire.Register{Protocol: wire.V11.String(), Capabilities: []string{"text", "stream"}}
	if l.edits {
		as.Capabilities = []string{"text", "update_message", "ack"}
		as.Profile = &wire.Profile{EditIntervalMS: int(l.EditInterval.Milliseconds())}
	}
	ws, conn, err := connectAs(ctx, t.url, t.tokens[i], as)
	if err != nil {
		return nil, fmt.Errorf("adapter %d: %w", i, err)
	}
	question := fmt.Sprintf("question %d of round %d:", i, round)
	return &viewer{
		ws: ws, conn: conn, question: question, whole: wholeDraft(question, l.Drafts), edits: l.edits, newest: -1,
		tally: tally{last: make([]int, 1)},
	}, nil
}

// ask asks, and looks until the last frame of the answer is there. None is counted as
// lost.
func (v *viewer) ask(began, patience time.Duration) error {
	in := wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, UserID: "u", Text: v.question}
	if err := v.ws.WriteMessage(websocket.TextMessage, in.Append(nil)); err != nil {
		return err
	}
	v.sent = 1
	err := v.watch(patience, func() bool { return v.answered > 0 })
	if v.answered > 0 {
		v.counted++
		v.latency.add(now() - began)
	}
	return err
}

// lingering is how long something may come behind an answer's last frame.
const lingering = 100 * time.Millisecond

func (v *viewer) linger() error {
	return v.watch(lingering, func() bool { return false })
}

// watch reads frames until done, or for so long.
func (v *viewer) watch(patience time.Duration, done func() bool) error {
	_ = v.ws.SetReadDeadline(time.Now().Add(patience))
	for !done() {
		_, frame, err := v.ws.ReadMessage()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return v.conn.flush()
		}
		if err != nil {
			return err
		}
		if err := v.take(frame); err != nil {
			return err
		}
	}
	return v.conn.flush()
}

// take looks at one frame.
func (v *viewer) take(frame []byte) error {
	at := now()
	out, err := wire.DecodeOutbound(frame)
	if err != nil {
		return err
	}
	last := true
	switch out.Type {
	case wire.TypeStream:
		last = false
	case wire.TypeUpdateMessage:
		last = out.MessageID != ""
	case wire.TypeSend:
		last = !v.edits || v.frames > 0 || out.Text == v.whole
	case wire.TypeStreamEnd:
	case wire.TypeError:
		return fmt.Errorf("host answers %.200s", frame)
	default:
		return nil
	}
	if v.edits && out.MessageID != "" {
		ack := wire.Inbound{Type: wire.TypeMessageAck, MessageID: out.MessageID, Later: &wire.Later{OK: true, PreviewHandle: "shown"}}
		if err := v.ws.WriteMessage(websocket.TextMessage, ack.Append(nil)); err != nil {
			return err
		}
	}
	v.judge(out.Text, last, at)
	return nil
}

// judge counts a frame: its text must be the answer as far as some draft, and never less
// than was shown before; the last one's is the whole.
func (v *viewer) judge(text string, last bool, at time.Duration) {
	since := float64(at-v.at) / float64(time.Millisecond)
	v.frames++
	if last {
		if v.frames > 1 && v.answered == 0 {
			v.gaps.last = append(v.gaps.last, since)
		}
		if text != v.whole {
			v.wrong(text)
		}
		v.note(0)
		return
	}
	n := (len(text) - len(v.question)) / len(draftWord)
	switch {
	case n < 0 || text != draftText(v.question, n):
		v.wrong(text)
	case v.answered > 0 || n < v.newest:
		v.disordered++
	}
	switch {
	case v.frames == 2:
		v.first = append(v.first, since)
	case v.frames > 2:
		v.between = append(v.between, since)
	}
	v.newest, v.at = n, at
}

func (v *viewer) wrong(text string) {
	v.stray++
	if v.refusal == "" {
		v.refusal = fmt.Sprintf("wrong text: %.200q", text)
	}
}

// patience is how long an answer may take.
func (l *draftsLoad) patience() time.Duration { return grace + time.Duration(l.Drafts)*l.pace }

// showBare writes the frames of all answers over one connection, as an agent does, and
// waits until all have come back.
func (l *draftsLoad) showBare(ctx context.Context, t target) (r draftsRun, err error) {
	ws, conn, err := dial(ctx, t.url, "")
	if err != nil {
		return r, err
	}
	defer func() { _ = ws.Close() }()
	var writing sync.Mutex
	written := make(chan error, 1)
	before, began := usageOf(t.pid), now()
	go func() { // awaited below
		written <- each(l.Streams, l.Streams, func(i int) error {
			question := fmt.Sprintf("question %d of round %d:", i, 0)
			return atPace(ctx, l.Drafts+1, l.pace, func(n int) error {
				f := wire.Frame{Type: wire.TypeStream, MessageID: strconv.Itoa(i), Text: draftText(question, n+1)}
				payload := f.Append(nil, wire.Routing{ConversationID: "c"})
				writing.Lock()
				defer writing.Unlock()
				_, err := conn.Conn.Write(append(clientHeader(len(payload)), payload...)) // beside the reader, which writes nothing
				return err
			})
		})
	}()
	count := tally{sent: l.Streams * (l.Drafts + 1), last: make([]int, 1)}
	_ = ws.SetReadDeadline(time.Now().Add(l.patience()))
	for count.answered < count.sent {
		if _, _, err := ws.ReadMessage(); err != nil {
			return r, fmt.Errorf("after %d of %d frames: %w", count.answered, count.sent, err)
		}
		count.note(count.answered)
	}
	after, took := usageOf(t.pid), now()-began
	r.Sample = sampleOf([]*tally{&count}, took, before, after)
	r.count(l, count.answered, took, before, after)
	return r, <-written
}
