package delivery

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// model is a lane as its rules are told, with the far end behind it: one that takes a
// conversation's frames in order, and after one that it refused for now nothing until it
// is told that the conversation goes on.
type model struct {
	Lane
	window   int
	next     ledger.MessageID
	reserved []ledger.MessageID // to be committed as sent, in order
	on       []sent             // its way to the far end
	void     bool               // the far end takes nothing
	resumes  bool               // it is told so with the next frame
	shown    []ledger.MessageID
	ended    map[ledger.MessageID]bool // settled
	many     map[ledger.MessageID]bool
	due      map[ledger.MessageID]time.Time
	now      time.Time
}

type sent struct {
	id      ledger.MessageID
	frame   int
	resumed bool
}

const frames = 3 // of a message that has many

func (m *model) last(id ledger.MessageID) int {
	if m.many[id] {
		return frames - 1
	}
	return 0
}

func (m *model) fly(id ledger.MessageID) {
	m.on = append(m.on, sent{id, int(m.Flight(id).Frame), m.resumes})
	m.resumes = false
}

func (m *model) settle(id ledger.MessageID) {
	m.Settle(id)
	m.ended[id] = true
}

// take is what the hub does with a message that it takes, once it is planned.
func (m *model) take(t *rapid.T) {
	first, waits := m.First()
	got, ok := m.Take(m.now, m.window)
	if ok && (!waits || got.ID != first) {
		t.Fatalf("took %d, though %d waited first", got.ID, first)
	}
	if !ok {
		return
	}
	if m.now.Before(m.due[got.ID]) {
		t.Fatalf("%d was tried again too early", got.ID)
	}
	if m.many[got.ID] {
		if back, ok := m.Many(got.ID); !ok {
			if !slices.Contains(back, got.ID) {
				t.Fatalf("%d can't fly and was not taken back: %d", got.ID, back)
			}
			return
		}
	}
	m.fly(got.ID)
}

// arrive lets the far end look at the next frame, and the lane hear of it.
func (m *model) arrive(t *rapid.T) {
	f := m.on[0]
	m.on = m.on[1:]
	if m.void && !f.resumed {
		return
	}
	m.void = false
	switch rapid.IntRange(0, 5).Draw(t, "what becomes of it") {
	case 0: // not now
		m.void = true
		m.refused(t, f)
	case 1: // never
		if m.Acked(f.id, f.frame) {
			m.settle(f.id)
		}
	default:
		if f.frame == m.last(f.id) && !slices.Contains(m.shown, f.id) {
			m.shown = append(m.shown, f.id)
		}
		switch {
		case !m.Acked(f.id, f.frame):
			t.Fatalf("frame %d of %d is not awaited", f.frame, f.id)
		case f.frame == m.last(f.id):
			m.settle(f.id)
		default:
			m.fly(f.id)
		}
	}
}

func (m *model) refused(t *rapid.T, f sent) {
	flight := m.Flight(f.id)
	if flight == nil || int(flight.Frame) != f.frame {
		t.Fatalf("frame %d of %d is refused, but does not fly: %+v", f.frame, f.id, m.Lane)
	}
	tries, after := int(flight.Tries)+1, time.Duration(0)
	if rapid.Bool().Draw(t, "it says when") {
		tries--
		after = time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second
	}
	wait := after
	if after == 0 {
		wait = min(LastPause, FirstPause<<(tries-1))
	}
	back, again := m.Retry(f.id, m.now, after, 4)
	if again != (tries < 4) || again != slices.Contains(back, f.id) {
		t.Fatalf("after %d tries: again %v, back %d", tries, again, back)
	}
	m.resumes = true
	if !again {
		m.settle(f.id)
		return
	}
	if first, _ := m.First(); first == f.id {
		m.due[f.id] = m.now.Add(wait)
	}
}

// check says whether each message is in one place, and no more fly than may.
func (m *model) check(t *rapid.T) {
	flying := map[ledger.MessageID]bool{}
	alone := false
	for _, f := range m.flights {
		flying[f.ID] = true
		alone = alone || f.fliesAlone()
	}
	busy := len(m.flights) + m.Lane.reserved
	if len(flying) != len(m.flights) || busy > max(1, m.window) || alone && busy > 1 {
		t.Fatalf("%d may fly: %+v", m.window, m.Lane)
	}
	if !slices.IsSortedFunc(m.waiting, func(a, b Message) int { return byID(a, b.ID) }) {
		t.Fatalf("disorder: %+v", m.waiting)
	}
	for id := ledger.MessageID(1); id < m.next; id++ {
		places := 0
		for _, there := range []bool{flying[id], m.Waits(id) != nil, m.ended[id], slices.Contains(m.reserved, id)} {
			if there {
				places++
			}
		}
		if places != 1 {
			t.Fatalf("%d is in %d places: %+v", id, places, m.Lane)
		}
	}
	if m.Empty() != (len(m.flights)+len(m.waiting)+len(m.reserved) == 0) {
		t.Fatalf("empty: %v, with %+v", m.Empty(), m.Lane)
	}
	if !slices.IsSorted(m.shown) {
		t.Fatalf("shown in the order %d", m.shown)
	}
}

// Whatever happens in whatever order, each message is in one place, no more fly than
// may, and what is shown is shown in order.
func TestLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			window: rapid.IntRange(1, 5).Draw(t, "window"), next: 1, now: time.Unix(0, 0),
			ended: map[ledger.MessageID]bool{}, many: map[ledger.MessageID]bool{}, due: map[ledger.MessageID]time.Time{},
		}
		anew := func() ledger.MessageID {
			m.many[m.next] = rapid.IntRange(0, 3).Draw(t, "many") == 0
			m.next++
			return m.next - 1
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(*rapid.T) {
				if len(m.reserved) == 0 { // ids are given with the commits, in their order
					m.Wait(Message{ID: anew()})
				}
			},
			"reserve": func(t *rapid.T) {
				id := anew()
				free := len(m.waiting) == 0
				if !m.Reserve(m.window, m.many[id]) {
					if free && len(m.flights)+len(m.reserved) == 0 {
						t.Fatal("there is room, and nothing is reserved")
					}
					m.next--
					return
				}
				m.reserved = append(m.reserved, id)
			},
			"commit": func(t *rapid.T) {
				if len(m.reserved) == 0 {
					t.Skip()
				}
				id := m.reserved[0]
				m.reserved = m.reserved[1:]
				switch {
				case rapid.IntRange(0, 4).Draw(t, "works") == 0:
					m.Release()
					m.ended[id] = true
				case m.Start(id):
					m.fly(id)
				default:
					m.Wait(Message{ID: id})
				}
			},
			"take": m.take,
			"arrive": func(t *rapid.T) {
				if len(m.on) == 0 {
					t.Skip()
				}
				m.arrive(t)
			},
			"not written": func(t *rapid.T) { // such as that it could not be read
				if len(m.on) == 0 || m.void || m.resumes || m.on[len(m.on)-1].frame > 0 {
					t.Skip()
				}
				last := m.on[len(m.on)-1]
				if back := m.Back(last.id); !slices.Equal(back, []ledger.MessageID{last.id}) {
					t.Fatalf("%d was back, with %d", last.id, back)
				}
				m.on = m.on[:len(m.on)-1]
				m.resumes = last.resumed
			},
			"drop": func(t *rapid.T) {
				if len(m.waiting) == 0 {
					t.Skip()
				}
				id := rapid.SampledFrom(m.waiting).Draw(t, "of").ID
				if !m.Drop(id) || m.Drop(id) {
					t.Fatal("not dropped, or twice")
				}
				m.ended[id] = true
			},
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"": m.check,
		})
	})
}

func TestPause(t *testing.T) {
	for n, least := range map[int]time.Duration{1: FirstPause, 2: 2 * FirstPause, 5: 16 * FirstPause, 9: 256 * FirstPause, 10: LastPause, 100: LastPause, 1000: LastPause} {
		for range 100 {
			if p := pause(n); p < least || p > least*5/4 {
				t.Fatalf("after %d tries: %v, want at least %v", n, p, least)
			}
		}
	}
}
