package hub_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// queueModel is one channel of a real hub on a real store, of which the test has all in
// hand that the queue waits for: the disk, what adapters take and say, and the time,
// which is a bubble's. Between two steps everything that can go on has gone on.
type queueModel struct {
	store *sqlite.Store
	gate  *gate
	hub   *hub.Hub
	row   ledger.Channel
	convs int

	mu     sync.Mutex
	logf   func(format string, args ...any)
	faults []string
	moment int // counts what is written
	fars   int // that there were
	far    *far
	sent   map[string]*sent
	count  []int    // of a conversation's messages
	newest []int    // of a conversation's messages, the newest that was shown
	later  []func() // what the host is told later of adapters that went
}

// sent is a message that was sent, as the model knows it.
type sent struct {
	conv, n  int
	back     bool // Send has returned …
	err      error
	shown    bool
	refusals int    // for now, that were heard
	ended    string // why nothing more may come of it
	lost     bool   // maybe, with an adapter that does not acknowledge
}

// Limits of the model's channel.
const (
	modelAttempts = 3
	modelTTL      = 30 * time.Second
)

func (m *queueModel) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// check says whether something has happened that must not.
func (m *queueModel) check(t modelTest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

// shown notes that a user sees a message. The mutex must be held.
func (m *queueModel) shown(f *far, name string) {
	s := m.sent[name]
	conv := fmt.Sprint(s.conv)
	if s.back && s.err != nil {
		m.fault("%s was shown, though it was refused: %v", name, s.err)
	}
	if last, any := f.newest[conv]; any && last >= s.n {
		m.fault("%s was shown at %s behind %s.%d", name, f, conv, last)
	}
	f.newest[conv] = s.n
	if !s.shown && m.newest[s.conv] > s.n {
		m.fault("%s was shown first behind %s.%d", name, conv, m.newest[s.conv])
	}
	s.shown = true
	m.newest[s.conv] = max(m.newest[s.conv], s.n)
}

// heard notes what the host hears of a message in flight. The mutex must be held.
func (m *queueModel) heard(f *far, v verdict) {
	s := m.sent[v.name]
	conv := fmt.Sprint(s.conv)
	switch {
	case v.kind == notNow:
		s.refusals++
		if s.refusals >= modelAttempts {
			s.ended = string(ledger.ReasonRetriesExhausted)
		}
		m.moment++
		f.refusal[conv] = m.moment
		delete(f.out, conv) // what left behind it is not taken either
		return
	case v.kind == never:
		s.ended = string(ledger.ReasonRejected)
	case v.kind == uncertain:
		s.ended = string(ledger.ReasonUnknownOutcome)
	case v.last:
		s.ended = ledger.Delivered.String()
	default:
		return
	}
	delete(f.out[conv], v.name)
}

// modelTest is what testing's and rapid's tests have in common.
type modelTest interface {
	Helper()
	Context() context.Context
	Cleanup(f func())
	Fatal(args ...any)
	Logf(format string, args ...any)
}

// openModel makes a model with so many conversations; ttl 0 = messages wait for a day.
func openModel(t modelTest, dir string, convs int, ttl time.Duration) *queueModel {
	t.Helper()
	m := &queueModel{sent: map[string]*sent{}, convs: convs}
	m.count, m.newest = make([]int, m.convs), make([]int, m.convs)
	now := func() time.Time { return time.Now().AddDate(30, 0, 0) } // ids are younger than a bubble's beginning
	var err error
	if m.store, err = sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{Now: now, Names: attach.Names}); err != nil {
		t.Fatal(err)
	}
	files, err := attach.Open(dir, attach.Options{Base: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.store.Close(), files.Close()); err != nil {
			t.Fatal(err)
		}
	})
	m.row = ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true, Agent: hub.AgentNone, Queue: true}
	m.row.Limits.Attempts, m.row.Limits.TTLSeconds = modelAttempts, int(ttl/time.Second)
	if m.row, err = m.store.CreateChannel(t.Context(), m.row, nil, ledger.Change{Actor: "test", Action: "channel.create"}); err != nil {
		t.Fatal(err)
	}
	m.gate = newGate(m.store)
	m.gate.log, m.logf = t.Logf, t.Logf
	m.hub = hub.New(hub.Options{Store: m.gate, Attachments: files, Agents: hub.Fixed{}, Commands: command.New(), AckTimeout: 24 * time.Hour, Now: now})
	t.Cleanup(func() {
		m.gate.release()
		m.hub.Close()
	})
	return m
}

// Messages that are long.
const (
	inParts = " in two parts or three" // where a text is short
	large   = " large"                 // which are too many there
)

// send sends a message, and does not wait for it.
func (m *queueModel) send(t modelTest, conv int, long string) {
	if long == large {
		long = strings.Repeat(large, 60_000)
	}
	m.mu.Lock()
	m.count[conv]++
	s := &sent{conv: conv, n: m.count[conv]}
	name := fmt.Sprintf("%d.%d", s.conv, s.n)
	m.sent[name] = s
	m.mu.Unlock()
	go func() { // ends with its commit
		_, err := m.hub.Send(t.Context(), m.row, hub.Outgoing{Conversation: fmt.Sprint(conv), Message: message.Text(name + long + " $")})
		m.mu.Lock()
		defer m.mu.Unlock()
		s.back, s.err = true, err
	}()
	synctest.Wait()
}

// draw makes an adapter whose port has all room.
func (m *queueModel) draw(t *rapid.T) *far {
	f := newFar(m, rapid.SampledFrom([]int{4, 1, 0}).Draw(t, "in flight"))
	f.short = rapid.IntRange(0, 2).Draw(t, "short") == 0
	return f
}

// attach lets an adapter come, in place of another if there is one.
func (m *queueModel) attach(t modelTest, f *far) {
	t.Helper()
	info := hub.Info{Heard: time.Now, Protocol: wire.V11, Declared: wire.CapText, Order: int64(f.n)}
	if f.acks {
		info.Declared |= wire.CapAck
		info.Profile.InFlight = f.window
	}
	if f.short {
		info.Profile.MaxText = 16
	}
	m.mu.Lock()
	before := m.far
	m.far = f
	m.mu.Unlock()
	a, _, err := m.hub.Attach(t.Context(), m.row, f, info)
	if err != nil {
		t.Fatal(err)
	}
	f.a = a
	if before != nil {
		m.later = append(m.later, before.a.Detach)
		m.went(before)
	}
	synctest.Wait()
}

// went sees to it that the host is told the rest of an adapter that went.
func (m *queueModel) went(f *far) {
	if len(f.lost) > 0 {
		m.later = append(m.later, func() { f.a.Broken(f.lost) })
	}
	for range f.said {
		m.later = append(m.later, f.hear)
	}
}

// leave ends the adapter's stay.
func (m *queueModel) leave() {
	f := m.far
	f.a.Detach()
	m.mu.Lock()
	m.far = nil
	m.mu.Unlock()
	m.went(f)
	synctest.Wait()
}

// cut ends the adapter's connection, which the host does not know yet: of some of what
// waits it is unknown whether it was written.
func (m *queueModel) cut(t *rapid.T) {
	m.mu.Lock()
	f := m.far
	if f.retired {
		m.mu.Unlock()
		t.Skip("it is cut already")
	}
	n := rapid.IntRange(0, len(f.waiting)).Draw(t, "lost")
	f.lost = slices.Clone(f.waiting[:n])
	f.waiting = f.waiting[n:]
	f.retired = true
	f.makeRoom()
	arrived := rapid.IntRange(0, n).Draw(t, "arrived")
	for i := range f.lost {
		name, _ := nameOf(&f.lost[i])
		m.sent[name].lost = m.sent[name].lost || !f.acks
		if i < arrived {
			f.arrive(&f.lost[i])
		}
	}
	m.mu.Unlock()
	synctest.Wait()
}

// look lets the far end look at a frame, and the host perhaps hear of it.
func (m *queueModel) look(t *rapid.T) {
	m.mu.Lock()
	var convs []string
	for conv, frames := range m.far.came {
		if len(frames) > 0 {
			convs = append(convs, conv)
		}
	}
	if len(convs) == 0 {
		m.mu.Unlock()
		t.Skip("nothing came")
	}
	slices.Sort(convs)
	conv := rapid.SampledFrom(convs).Draw(t, "conversation")
	m.far.look(conv, rapid.SampledFrom([]string{taken, taken, taken, notNow, notNow, never, uncertain}).Draw(t, "verdict"))
	m.mu.Unlock()
	if len(m.far.said) > 0 && rapid.IntRange(0, 3).Draw(t, "heard") > 0 {
		m.hear()
	}
}

// hear lets the host hear all that the far end said.
func (m *queueModel) hear() {
	for len(m.far.said) > 0 {
		m.far.hear()
	}
	synctest.Wait()
}

// commit moves units to the disk, or refuses them, and tells the hub of some.
func (m *queueModel) commit(t *rapid.T) {
	above, untold := m.gate.count()
	if above+untold == 0 {
		t.Skip("nothing is under way")
	}
	n := rapid.IntRange(0, above).Draw(t, "to the disk")
	m.gate.commit(n, func(*ledger.Unit) bool { return rapid.IntRange(0, 7).Draw(t, "refused") == 7 })
	m.gate.tell(rapid.IntRange(0, untold+n).Draw(t, "told"))
	synctest.Wait()
}

func (m *queueModel) steps() map[string]func(*rapid.T) {
	attached := func(step func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if m.far == nil {
				t.Skip("nobody is attached")
			}
			step(t)
		}
	}
	send := func(t *rapid.T) {
		conv := rapid.IntRange(0, m.convs-1).Draw(t, "conversation")
		m.send(t, conv, rapid.SampledFrom([]string{"", "", "", inParts, large}).Draw(t, "long"))
	}
	return map[string]func(*rapid.T){
		"":       func(t *rapid.T) { m.check(t) },
		"send":   send,
		"send 2": send,
		"come": func(t *rapid.T) {
			f := m.draw(t)
			f.room = rapid.SampledFrom([]int{-1, -1, -1, 0, 1, 3}).Draw(t, "room")
			f.crowded, f.lazy = rapid.Bool().Draw(t, "crowded"), rapid.Bool().Draw(t, "lazy")
			m.attach(t, f)
		},
		"leave":   attached(func(*rapid.T) { m.leave() }),
		"cut":     attached(m.cut),
		"commit":  m.commit,
		"commit2": m.commit,
		"commit all": func(t *rapid.T) {
			if !m.commitAll() {
				t.Skip("nothing is under way")
			}
		},
		"write": attached(func(t *rapid.T) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.far.waiting) == 0 {
				t.Skip("nothing waits")
			}
			m.far.write(rapid.IntRange(1, len(m.far.waiting)).Draw(t, "written"))
		}),
		"look":   attached(m.look),
		"look 2": attached(m.look),
		"hear":   attached(func(*rapid.T) { m.hear() }),
		"room": attached(func(t *rapid.T) {
			m.mu.Lock()
			m.far.crowded = !m.far.crowded
			if !m.far.crowded {
				m.far.makeRoom()
			}
			m.mu.Unlock()
			synctest.Wait()
		}),
		"later": func(t *rapid.T) {
			if !m.tellLater() {
				t.Skip("nothing is to be told")
			}
		},
		"slow": func(t *rapid.T) {
			m.gate.slowly(rapid.Bool().Draw(t, "slow"))
			synctest.Wait()
		},
		"read": func(t *rapid.T) {
			if m.gate.reading() == 0 {
				t.Skip("nobody reads")
			}
			var err error
			if rapid.IntRange(0, 7).Draw(t, "refused") == 7 {
				err = ledger.ErrUnavailable
			}
			m.gate.read(err)
			synctest.Wait()
		},
		"time": func(t *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond) // of the bubble
			synctest.Wait()
		},
	}
}

func (m *queueModel) commitAll() (any bool) {
	above, untold := m.gate.count()
	m.gate.commit(above, func(*ledger.Unit) bool { return false })
	m.gate.tell(above + untold)
	synctest.Wait()
	return above+untold > 0
}

// tellLater tells the host the next that it does not know yet of adapters that went.
func (m *queueModel) tellLater() (any bool) {
	if len(m.later) == 0 {
		return false
	}
	tell := m.later[0]
	m.later = m.later[1:]
	tell()
	synctest.Wait()
	return true
}

// finish lets the adapter that is attached take all that is there, and compares.
func (m *queueModel) finish(t modelTest) {
	t.Helper()
	m.gate.slowly(false)
	m.mu.Lock()
	m.far.room, m.far.lazy = -1, false
	m.far.makeRoom()
	m.mu.Unlock()
	for idle, rounds := 0, 0; idle < 5; rounds++ { // idle seconds: more than any pause
		m.check(t)
		if rounds == 1000 {
			t.Fatal("commits go on for ever")
		}
		busy := m.tellLater()
		busy = m.commitAll() || busy
		m.far.Flush()
		m.mu.Lock()
		for conv := range m.far.came {
			for len(m.far.came[conv]) > 0 {
				m.far.look(conv, taken)
			}
		}
		busy = len(m.far.said) > 0 || busy
		m.mu.Unlock()
		m.hear()
		if idle++; busy {
			idle = 0
		} else {
			time.Sleep(time.Second) // of the bubble
		}
		synctest.Wait()
	}
	m.compare(t)
}

// compare says whether what became of each message is what should have.
func (m *queueModel) compare(t modelTest) {
	all, err := m.store.Before(t.Context(), ledger.Scope{Channel: m.row.Key}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[string]bool{}
	for i := range all {
		e := &all[i]
		name, _, _ := strings.Cut(e.Text, " ")
		there[name] = true
		m.compareOne(e, name)
	}
	for name, s := range m.sent {
		if !s.back || there[name] != (s.err == nil) {
			m.fault("%s: sent %v, %v, stored %v", name, s.back, s.err, there[name])
		}
	}
	if a, _ := m.hub.Attached(m.row.Key); a.Queue != 0 {
		m.fault("%d wait in the end", a.Queue)
	}
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

func (m *queueModel) compareOne(e *ledger.Entry, name string) {
	s := m.sent[name]
	switch {
	case e.State == ledger.Delivered:
		if s.ended != ledger.Delivered.String() {
			m.fault("%s is delivered, and not acknowledged: %q", name, s.ended)
		}
	case e.State == ledger.Sent:
		if !s.shown {
			m.fault("%s is sent, and was never shown", name)
		}
	case e.State == ledger.Expired:
		if m.row.Limits.TTLSeconds == 0 || s.ended != "" {
			m.fault("%s is expired, expected %q", name, s.ended)
		}
	case e.State == ledger.Failed && e.Reason == ledger.ReasonUnknownOutcome && s.lost, // with its adapter
		e.State == ledger.Failed && e.Reason == ledger.ReasonFrameTooLarge && len(e.Text) > 1000,
		e.State == ledger.Failed && s.ended == string(e.Reason):
	default:
		m.fault("%s is %s %s in the end, expected %q", name, e.State, e.Reason, s.ended)
	}
}

// Whatever happens while messages are being committed as sent, each is delivered in
// order, and none twice but where it is not known whether it was.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		rapid.SyncTest(t, func(t *rapid.T) {
			ttl := rapid.SampledFrom([]time.Duration{0, 0, 0, modelTTL}).Draw(t, "ttl")
			m := openModel(t, dir, rapid.IntRange(1, 3).Draw(t, "conversations"), ttl)
			t.Repeat(m.steps())
			for m.tellLater() {
			}
			if m.far == nil || m.far.refused || m.far.retired || rapid.Bool().Draw(t, "to another adapter") {
				m.attach(t, m.draw(t))
			}
			m.finish(t)
		})
	})
}
