package hub_test

import (
	"context"
	"errors"
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

// draftModel is one conversation with an agent that shows its answers while it makes
// them, to adapters that edit, stream or do neither. The disk, the agent, the adapters
// and the time are in the test's hand, as in queueModel. The n-th turn of the agent says
// "n:1", "n:2" and so on, and in the end "n:end".
type draftModel struct {
	life
	files *attach.Store
	row   ledger.Channel
	edits bool // all adapters edit

	mu       sync.Mutex
	logf     func(format string, args ...any)
	faults   []string
	fars     int
	far      *draftFar
	platform platform
	asked    int
	said     int // plain messages
	turns    int // that there were
	turn     *draftTurn
	known    map[string]bool     // handles that the host has heard of
	last     map[int]draftMoment // what was offered last, by turn
	ended    map[int]bool        // turns whose end was offered
	upTo     map[int]int         // what of a turn was shown, how far
	shown    map[string]bool     // ids
	named    map[int]string      // what the host knew that a turn's beginning is called, when it ended
	over     map[ledger.MessageID]ledger.State
}

// draftTurn is a turn of the agent that runs.
type draftTurn struct {
	n, k int
	do   chan func(context.Context, hub.Reply) error
}

type draftMoment struct {
	at       time.Time
	interval time.Duration
}

var errTurnEnds = errors.New("the turn ends")

// Handle implements hub.Agent.
func (m *draftModel) Handle(ctx context.Context, _ hub.Turn, r hub.Reply) error {
	m.mu.Lock()
	m.turns++
	turn := &draftTurn{n: m.turns, do: make(chan func(context.Context, hub.Reply) error, 1000)}
	m.turn = turn
	m.mu.Unlock()
	for {
		select {
		case do := <-turn.do:
			if err := do(ctx, r); errors.Is(err, errTurnEnds) {
				return nil
			} else if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *draftModel) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

func (m *draftModel) check(t modelTest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

// committed takes note of what is on the disk.
func (m *draftModel) committed(u *ledger.Unit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range u.Out {
		if u.Out[i].Status == ledger.StatusStreaming { // it is as old as its beginning
			m.shown[u.Out[i].ID.String()] = true
		}
	}
	for _, s := range u.Settle {
		if was, over := m.over[s.ID]; over {
			m.fault("%s becomes %s, and is %s", s.ID, s.State, was)
		}
		if final(s.State) {
			m.over[s.ID] = s.State
		}
	}
}

// offered looks at what the host offers. The mutex must be held.
func (m *draftModel) offered(f *draftFar, one *draftFrame) {
	n, end := attemptOf(one.Text)
	if n == 0 {
		return
	}
	before, any := m.last[n]
	since := time.Since(before.at)
	switch {
	case !one.tracked && m.ended[n]:
		m.fault("%q was offered behind its end", one.Text)
	case one.Type == wire.TypeUpdateMessage && !m.known[one.PreviewHandle]:
		m.fault("%q changes %q, of which the host has not heard", one.Text, one.PreviewHandle)
	case one.Type == wire.TypeUpdateMessage && any && since < before.interval:
		m.fault("%q came %s behind the one before, expected %s", one.Text, since, before.interval)
	case one.Type == wire.TypeStream && any && since < min(f.interval, before.interval):
		m.fault("%q came %s behind the one before, expected %s", one.Text, since, f.interval)
	}
	m.ended[n] = m.ended[n] || end
	m.last[n] = draftMoment{time.Now(), f.interval}
}

// seen looks at what users see. The mutex must be held.
func (m *draftModel) seen(one *draftFrame, handle string) {
	if n, end := attemptOf(one.Text); n > 0 {
		k := 1 << 30
		if !end {
			_, _ = fmt.Sscanf(one.Text, "%d:%d", &n, &k)
		}
		if k < m.upTo[n] && m.platform.posts[handle] != "" && one.Type != wire.TypeSend {
			m.fault("%q was shown behind what came later", one.Text)
		}
		m.upTo[n] = max(m.upTo[n], k)
	}
}

// decided looks at the order of what is there for good, or never will be. The mutex must
// be held.
func (m *draftModel) decided(one *draftFrame) {
	id := one.MessageID
	if one.Type == wire.TypeStreamEnd || m.shown[id] {
		return
	}
	m.shown[id] = true
	if id < m.platform.newest {
		m.fault("%q was shown first behind a later one", one.Text)
	}
	m.platform.newest = max(m.platform.newest, id)
}

// openDrafts makes a model.
func openDrafts(t modelTest, dir string, edits bool) *draftModel {
	t.Helper()
	m := &draftModel{
		edits: edits, logf: t.Logf, platform: platform{posts: map[string]string{}, of: map[string]string{}},
		known: map[string]bool{}, last: map[int]draftMoment{}, ended: map[int]bool{}, upTo: map[int]int{}, shown: map[string]bool{},
		named: map[int]string{}, over: map[ledger.MessageID]ledger.State{},
	}
	var err error
	if m.files, err = attach.Open(blank.Dir(t, dir), attach.Options{Base: func() string { return "" }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.files.Close() })
	m.row = ledger.Channel{ID: "c", Name: "c", Kind: "bridge", Enabled: true, Agent: "a", Queue: true}
	m.start(t, filepath.Join(dir, "0"))
	return m
}

func (m *draftModel) start(t modelTest, dir string) {
	t.Helper()
	m.life = live(t, dir, m.files, hub.Fixed{"a": m}, &m.row, m.committed)
}

// Whatever comes between, an answer that is shown while it is made ends as it should,
// once, and is not changed more often than its far end wants.
func TestDraftModel(t *testing.T) {
	t.Parallel()
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	root := t.TempDir()
	often := budget{most: 10}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		often.run(func() {
			rapid.SyncTest(t, func(t *rapid.T) {
				m := openDrafts(t, dir, rapid.Bool().Draw(t, "all edit"))
				t.Repeat(m.steps(rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "restarts")))
				if m.far == nil || rapid.Bool().Draw(t, "to another adapter") {
					m.attach(t, m.draw(t))
				}
				m.finish(t)
			})
		})
	})
}

// compare says whether what became of each message is what should have.
func (m *draftModel) compare(t modelTest) {
	all, err := m.store.Before(t.Context(), ledger.Scope{Channel: m.row.Key}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	answers := map[ledger.MessageID]int{}
	for i := range all {
		e := &all[i]
		if e.Direction == ledger.In {
			if e.State != ledger.Handled || answers[e.ID] != 1 { // answers come first
				m.fault("%s is %s in the end, with %d answers", e.Text, e.State, answers[e.ID])
			}
			continue
		}
		if n, end := attemptOf(e.Text); n > 0 && end {
			answers[e.ReplyTo]++
			m.compareEnd(e, n)
		}
		if e.State != ledger.Delivered && e.State != ledger.Failed && (e.Status != ledger.StatusError || e.State != ledger.Sent) {
			m.fault("%q is %s %s in the end", e.Text, e.State, e.Status)
		}
	}
	if a, _ := m.hub.Attached(m.row.Key); a.Queue != 0 {
		m.fault("%d wait in the end", a.Queue)
	}
	if len(m.faults) > 0 {
		t.Fatal(strings.Join(m.faults, "\n"))
	}
}

// compareEnd says whether users see the end of an answer, once.
func (m *draftModel) compareEnd(e *ledger.Entry, n int) {
	meta, _, _ := message.ReadMeta(e.Meta)
	handle := meta.String(message.MetaPreviewHandle)
	if want := m.named[n]; want != "" && handle != want {
		m.fault("%q changes %q, expected %q", e.Text, handle, want)
	}
	if e.State != ledger.Delivered {
		return
	}
	var at []string
	for h, text := range m.platform.posts {
		if text == e.Text {
			at = append(at, h)
		}
	}
	slices.Sort(at)
	// Adapters that show it in ways of their own may each do so, if the host does not hear of it.
	if len(at) == 0 || m.edits && len(at) != 1 || m.edits && handle != "" && at[0] != handle {
		m.fault("%q stands at %q, and should at %q", e.Text, at, handle)
	}
	if m.upTo[n] != 1<<30 {
		m.fault("%q is not what is seen last: %d", e.Text, m.upTo[n])
	}
}

// finish lets the adapter that is attached take all that is there, and compares.
func (m *draftModel) finish(t modelTest) {
	t.Helper()
	for idle, rounds := 0, 0; idle < 16; rounds++ { // idle seconds: more than the end of an answer waits
		m.check(t)
		if rounds == 1000 {
			t.Fatal("it goes on for ever")
		}
		busy := m.commitAll()
		if m.turn != nil {
			m.end()
			busy = true
		}
		for m.hear() || m.look(taken, true) {
			busy = true
		}
		if idle++; busy {
			idle = 0
		} else {
			time.Sleep(time.Second) // of the bubble
		}
		synctest.Wait()
	}
	m.compare(t)
}
