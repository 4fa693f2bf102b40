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

// model is a lane as its rules are told: what waits in order, what is in
// flight, how often the first has failed, and not before when.
type model struct {
	waiting  []ledger.MessageID
	flight   ledger.MessageID
	reserved bool
	frame    int
	tries    int
	due      time.Time
}

// Whatever happens in whatever order, the lane does what the model does: one in
// flight, order kept, nothing lost or doubled.
func TestLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lane
		var m model
		now := time.Unix(0, 0)
		next := ledger.MessageID(1)
		var ended, taken []ledger.MessageID
		end := func() {
			ended = append(ended, m.flight)
			m.flight, m.tries, m.due = 0, 0, time.Time{}
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(*rapid.T) {
				l.Wait(next)
				m.waiting = append(m.waiting, next)
				if len(m.waiting) == 1 {
					m.tries, m.due = m.triesOfFlight(), m.dueOfFlight()
				}
				next++
			},
			"wait again": func(t *rapid.T) { // what is there already
				if id, ok := l.First(); ok {
					l.Wait(id)
				}
				if m.flight != 0 {
					l.Wait(m.flight)
				}
			},
			"reserve": func(t *rapid.T) {
				ok := l.Reserve()
				if ok != (len(m.waiting) == 0 && m.flight == 0 && !m.reserved) {
					t.Fatalf("reserved: %v, with %+v", ok, m)
				}
				m.reserved = m.reserved || ok
			},
			"commit": func(t *rapid.T) {
				if !m.reserved {
					t.Skip()
				}
				if rapid.Bool().Draw(t, "works") {
					l.Start(next)
					m.flight, m.frame = next, 0
					taken = append(taken, next)
					next++
				} else {
					l.Release()
				}
				m.reserved = false
			},
			"take": func(t *rapid.T) {
				id, ok := l.Take(now)
				want := m.flight == 0 && !m.reserved && len(m.waiting) > 0 && !now.Before(m.due)
				if ok != want || ok && id != m.waiting[0] {
					t.Fatalf("took %d, %v at %v, with %+v", id, ok, now, m)
				}
				if ok {
					m.flight, m.waiting, m.frame = id, m.waiting[1:], 0
					taken = append(taken, id)
				}
			},
			"ack": func(t *rapid.T) {
				frame := rapid.IntRange(0, 3).Draw(t, "frame")
				ok := l.Acked(m.flight, frame)
				if ok != (m.flight != 0 && frame == m.frame) || l.Acked(next, m.frame) {
					t.Fatalf("acknowledged %d: %v, with %+v", frame, ok, m)
				}
				if ok {
					if m.frame++; m.frame == 3 {
						l.Settle()
						end()
					}
				}
			},
			"lost": func(*rapid.T) {
				l.Back()
				m.back()
			},
			"retry": func(t *rapid.T) {
				if m.flight == 0 {
					t.Skip()
				}
				due, again := l.Retry(now, 4)
				m.tries++
				if again != (m.tries < 4) {
					t.Fatalf("again %v after %d tries", again, m.tries)
				}
				if !again {
					l.Settle()
					end()
					return
				}
				if wait := due.Sub(now); wait < FirstPause*3/4 || wait > FirstPause<<(m.tries-1) {
					t.Fatalf("pause %v after %d tries", wait, m.tries)
				}
				m.due = due
				m.back()
			},
			"drop": func(t *rapid.T) {
				if len(m.waiting) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(m.waiting)-1).Draw(t, "i")
				if !l.Drop(m.waiting[i]) || l.Drop(m.waiting[i]) {
					t.Fatal("not dropped, or twice")
				}
				ended = append(ended, m.waiting[i])
				m.waiting = slices.Delete(m.waiting, i, i+1)
				if i == 0 && m.flight == 0 {
					m.tries, m.due = 0, time.Time{}
				}
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				id, frame := l.Flight()
				due, ok := l.Due()
				if id != m.flight || id != 0 && frame != m.frame || l.Tries() != m.tries || !slices.Equal(l.waiting, m.waiting) || !slices.IsSorted(l.waiting) {
					t.Fatalf("lane %+v, model %+v", l, m)
				}
				if ok != (m.flight == 0 && !m.reserved && len(m.waiting) > 0) || ok && !due.Equal(m.due) {
					t.Fatalf("due %v, %v, model %+v", due, ok, m)
				}
				if l.Empty() != (len(m.waiting) == 0 && m.flight == 0 && !m.reserved) {
					t.Fatalf("empty %v, model %+v", l.Empty(), m)
				}
				if here := len(m.waiting) + len(ended); m.flight == 0 && here != int(next)-1 || m.flight != 0 && here != int(next)-2 {
					t.Fatalf("of %d messages %d are here: %+v", next-1, here, m)
				}
			},
		})
	})
}

func (m *model) back() {
	if m.flight == 0 {
		return
	}
	m.waiting = append(m.waiting, m.flight)
	slices.Sort(m.waiting)
	if m.waiting[0] != m.flight {
		m.tries, m.due = 0, time.Time{}
	}
	m.flight = 0
}

func (m *model) triesOfFlight() int {
	if m.flight != 0 {
		return m.tries
	}
	return 0
}

func (m *model) dueOfFlight() time.Time {
	if m.flight != 0 {
		return m.due
	}
	return time.Time{}
}

func TestPause(t *testing.T) {
	for n, most := range map[int]time.Duration{1: FirstPause, 2: 2 * FirstPause, 5: 16 * FirstPause, 9: 256 * FirstPause, 10: LastPause, 100: LastPause, 1000: LastPause} {
		for range 100 {
			if p := pause(n); p > most || p < most*3/4 {
				t.Fatalf("after %d tries: %v, want at most %v", n, p, most)
			}
		}
	}
}
