package hub_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// queueModel is one channel of a real hub on a real store, of which the test has all in
// hand that the queue waits for: the disk, what adapters take and say, and the time,
// which is a bubble's. Between two steps everything that can go on has gone on.
type queueModel struct {
	life
	files *attach.Store
	row   ledger.Channel
	convs int

	mu      sync.Mutex
	logf    func(format string, args ...any)
	faults  []string
	moment  int // counts what is written
	fars    int // that there were
	far     *far
	sent    map[string]*sent
	names   map[ledger.MessageID]string
	count   []int     // of a conversation's messages
	newest  []int     // of a conversation's messages, the newest that was shown
	later   []func()  // what the host is told later of adapters that went
	trouble time.Time // when somebody waited for the disk last
	back    bool      // some went back to the queue
}

// sent is a message that was sent, as the model knows it.
type sent struct {
	conv, n  int
	back     bool // Send has returned …
	err      error
	cut      bool // or its host was killed before
	shown    bool
	refusals int    // for now, that were heard
	ended    string // why nothing more may come of it
	lost     bool   // maybe, with an adapter that does not acknowledge

	id    ledger.MessageID // 0 = it is not on the disk
	state ledger.State     // on the disk
	flies bool             // it is sent, and to be acknowledged
	born  time.Time        // there
}

// Limits of the model's channel.
const (
	modelAttempts = 3
	modelTTL      = 4 * time.Second
	modelLength   = 3
)

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
	row := ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true, Agent: hub.AgentNone, Queue: true}
	row.Limits.TTLSeconds = int(ttl / time.Second)
	return openModelOf(t, dir, convs, row)
}

func openModelOf(t modelTest, dir string, convs int, row ledger.Channel) *queueModel {
	t.Helper()
	m := &queueModel{sent: map[string]*sent{}, names: map[ledger.MessageID]string{}, convs: convs, logf: t.Logf}
	m.count, m.newest = make([]int, m.convs), make([]int, m.convs)
	row.Limits.Attempts = modelAttempts
	m.row = row
	blank.Dir(t, dir)
	var err error
	if m.files, err = attach.Open(dir, attach.Options{Base: func() string { return "" }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.files.Close(); err != nil {
			t.Fatal(err)
		}
	})
	m.life = live(t, filepath.Join(dir, "0"), m.files, hub.Fixed{}, &m.row, m.committed)
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
	h, row := m.hub, m.row
	go func() { // ends with its commit
		_, err := h.Send(t.Context(), row, hub.Outgoing{Conversation: fmt.Sprint(conv), Message: message.Text(name + long + " $")})
		m.returned(name, err)
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
	if f.window > 0 {
		info.Declared |= wire.CapAck
		info.Profile.InFlight = f.window
	}
	if f.short {
		info.Profile.MaxText = 16
	}
	m.mu.Lock()
	before := m.far
	m.far = f
	f.may(&m.row)
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

// Whatever happens while messages are being committed as sent, each is delivered in
// order, and none twice but where it is not known whether it was.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	root := t.TempDir()
	often := budget{most: 75}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		often.run(func() {
			rapid.SyncTest(t, func(t *rapid.T) {
				row := ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true, Agent: hub.AgentNone, Queue: true}
				row.Limits.TTLSeconds = rapid.SampledFrom([]int{0, 0, int(modelTTL / time.Second)}).Draw(t, "ttl")
				row.Limits.Length = rapid.SampledFrom([]int{0, 0, modelLength}).Draw(t, "length")
				m := openModelOf(t, dir, rapid.IntRange(1, 3).Draw(t, "conversations"), row)
				t.Repeat(m.steps(rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "restarts")))
				for m.tellLater() {
				}
				if row.Limits.TTLSeconds > 0 && rapid.Bool().Draw(t, "nobody comes") {
					m.expireAll(t)
				}
				if m.far == nil || m.far.refused || m.far.retired || rapid.Bool().Draw(t, "to another adapter") {
					m.attach(t, m.draw(t))
				}
				m.finish(t)
			})
		})
	})
}
