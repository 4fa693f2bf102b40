package hub_test

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// draw makes an adapter.
func (m *draftModel) draw(t *rapid.T) *draftFar {
	caps := []wire.Caps{wire.CapAck | wire.CapUpdateMessage}
	if !m.edits {
		caps = append(caps, wire.CapAck|wire.CapUpdateMessage, wire.CapAck|wire.CapStream, wire.CapAck)
	}
	return m.newFar(rapid.SampledFrom(caps).Draw(t, "capabilities"), rapid.SampledFrom([]int{4, 1}).Draw(t, "in flight"),
		rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 2500 * time.Millisecond}).Draw(t, "interval"))
}

func (m *draftModel) newFar(caps wire.Caps, window int, interval time.Duration) *draftFar {
	m.fars++
	return &draftFar{m: m, n: m.fars, caps: caps, window: window, interval: interval}
}

// attach lets an adapter come, in place of another if there is one.
func (m *draftModel) attach(t modelTest, f *draftFar) {
	t.Helper()
	m.leave(false)
	info := hub.Info{Heard: time.Now, Protocol: wire.V11, Declared: wire.CapText | f.caps, Order: int64(f.n)}
	info.Profile.InFlight, info.Profile.EditIntervalMS = f.window, int(f.interval/time.Millisecond)
	switch {
	case f.interval == 0 && f.caps.Has(wire.CapStream):
		f.interval = 50 * time.Millisecond
	case f.interval == 0:
		f.interval = time.Second
	}
	a, _, err := m.hub.Attach(t.Context(), m.row, f, info)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	f.a, m.far = a, f
	m.mu.Unlock()
	synctest.Wait()
}

// leave ends the adapter's stay, if there is one; users may see what it has, of which the
// host does not hear.
func (m *draftModel) leave(seen bool) {
	f := m.far
	if f == nil {
		return
	}
	f.a.Detach()
	m.gone(seen)
	synctest.Wait()
}

// gone forgets the adapter.
func (m *draftModel) gone(seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.far
	m.far = nil
	if f == nil {
		return
	}
	f.gone = true
	for seen && len(f.came) > 0 {
		f.look(taken, true)
	}
}

// restart ends the host, and starts another one on what it left.
func (m *draftModel) restart(t modelTest, killed, seen bool) {
	t.Helper()
	m.logf("the host ends, killed: %v", killed)
	if !killed {
		m.leave(seen)
	}
	dir := m.life.end(t, killed, func() { m.gone(seen) })
	m.mu.Lock()
	m.turn = nil
	clear(m.last) // it does not remember when it wrote
	m.mu.Unlock()
	m.start(t, dir)
	if _, err := m.hub.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// ask lets a user ask.
func (m *draftModel) ask() {
	m.asked++
	m.far.a.Receive(&wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, UserID: "u", Text: fmt.Sprint("q", m.asked)})
	synctest.Wait()
}

// say sends a message that is none's answer.
func (m *draftModel) say(t modelTest) {
	m.said++
	text := fmt.Sprint("plain ", m.said)
	h, row := m.hub, m.row
	go func() { _, _ = h.Send(t.Context(), row, hub.Outgoing{Conversation: "c", Message: message.Text(text)}) }()
	synctest.Wait()
}

// show lets the agent say more.
func (m *draftModel) show() {
	turn := m.turn
	turn.k++
	text := fmt.Sprintf("%d:%d", turn.n, turn.k)
	turn.do <- func(_ context.Context, r hub.Reply) error { r.Stream(text); return nil }
	synctest.Wait()
}

// end lets the agent end its answer.
func (m *draftModel) end() {
	m.mu.Lock()
	turn := m.turn
	m.turn = nil
	m.mu.Unlock()
	turn.do <- func(ctx context.Context, r hub.Reply) error {
		if _, err := r.Send(ctx, message.Text(fmt.Sprintf("%d:end", turn.n))); err != nil {
			return err
		}
		return errTurnEnds
	}
	synctest.Wait()
}

func (m *draftModel) look(kind string, named bool) (any bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.far == nil || len(m.far.came) == 0 {
		return false
	}
	m.far.look(kind, named)
	return true
}

func (m *draftModel) hear() (any bool) {
	if m.far == nil || len(m.far.said) == 0 {
		return false
	}
	m.far.hear()
	synctest.Wait()
	return true
}

func (m *draftModel) commitAll() (any bool) {
	above, untold := m.gate.count()
	m.gate.commit(above, func(*ledger.Unit) bool { return false })
	m.gate.tell(above + untold)
	synctest.Wait()
	return above+untold > 0
}

// steps are what may happen, and so many restarts.
func (m *draftModel) steps(restarts int) map[string]func(*rapid.T) {
	when := func(can func() bool, step func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if !can() {
				t.Skip("not now")
			}
			step(t)
		}
	}
	attached := func() bool { return m.far != nil }
	runs := func() bool { return m.turn != nil }
	show := when(runs, func(*rapid.T) { m.show() })
	look := when(func() bool { return m.far != nil && len(m.far.came) > 0 }, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{taken, taken, taken, taken, notNow, never, uncertain}).Draw(t, "verdict")
		m.look(kind, rapid.IntRange(0, 4).Draw(t, "named") > 0)
		if rapid.Bool().Draw(t, "heard") {
			m.hear()
		}
	})
	all := func(t *rapid.T) {
		if !m.commitAll() {
			t.Skip("nothing is under way")
		}
	}
	return map[string]func(*rapid.T){
		"":       func(t *rapid.T) { m.check(t) },
		"ask":    when(attached, func(*rapid.T) { m.ask() }),
		"say":    func(t *rapid.T) { m.say(t) },
		"show":   show,
		"show 2": show,
		"end":    when(runs, func(*rapid.T) { m.end() }),
		"come":   func(t *rapid.T) { m.attach(t, m.draw(t)) },
		"leave":  when(attached, func(t *rapid.T) { m.leave(rapid.Bool().Draw(t, "seen")) }),
		"look":   look,
		"look 2": look,
		"hear":   when(attached, func(*rapid.T) { m.hear() }),
		"all":    all,
		"all 2":  all,
		"commit": func(t *rapid.T) { m.commit(t) },
		"restart": when(func() bool { return restarts > 0 }, func(t *rapid.T) {
			restarts--
			m.restart(t, rapid.Bool().Draw(t, "killed"), rapid.Bool().Draw(t, "seen"))
		}),
		"time": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) // of the bubble
			synctest.Wait()
		},
	}
}

// commit moves units to the disk, or refuses them, and tells the hub of some.
func (m *draftModel) commit(t *rapid.T) {
	above, untold := m.gate.count()
	if above+untold == 0 {
		t.Skip("nothing is under way")
	}
	n := rapid.IntRange(0, above).Draw(t, "to the disk")
	m.gate.commit(n, func(*ledger.Unit) bool { return rapid.IntRange(0, 7).Draw(t, "refused") == 7 })
	m.gate.tell(rapid.IntRange(0, untold+n).Draw(t, "told"))
	synctest.Wait()
}
