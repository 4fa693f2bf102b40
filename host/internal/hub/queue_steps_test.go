package hub_test

import (
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// steps are what may happen, and so many restarts.
func (m *queueModel) steps(restarts int) map[string]func(*rapid.T) {
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
			if len(m.far.waiting) == 0 || m.far.retired {
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
		"much time": func(t *rapid.T) {
			if m.row.Limits.TTLSeconds == 0 {
				t.Skip("for nothing")
			}
			time.Sleep(m.ttl() * time.Duration(rapid.IntRange(5, 15).Draw(t, "tenths")) / 10) // of the bubble
			synctest.Wait()
		},
		"restart": func(t *rapid.T) {
			if restarts == 0 {
				t.Skip("no more")
			}
			restarts--
			m.restart(t, rapid.Bool().Draw(t, "killed"))
		},
		"policy": m.policy,
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

// policy lets an operator change the channel.
func (m *queueModel) policy(t *rapid.T) {
	m.mu.Lock()
	row := m.row
	m.mu.Unlock()
	switch rapid.IntRange(0, 2).Draw(t, "what changes") {
	case 0:
		if row.Accept == nil {
			row.Accept = []string{"text"}
		} else {
			row.Accept = nil
		}
	case 1:
		row.Profile.InFlight = rapid.IntRange(1, 4).Draw(t, "in flight")
	case 2:
		row.Limits.Length = rapid.SampledFrom([]int{0, 1, modelLength}).Draw(t, "length")
	}
	m.change(t, row)
}

// change makes a policy count.
func (m *queueModel) change(t modelTest, row ledger.Channel) {
	t.Helper()
	row, err := m.store.UpdateChannel(t.Context(), row, ledger.Change{Actor: "test", Action: "channel.update"})
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	m.row = row
	m.back = m.back || row.Limits.Length > 0 // more may wait already
	if m.far != nil {
		m.far.may(&row)
	}
	m.mu.Unlock()
	m.hub.Update(row)
	synctest.Wait()
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

// expireAll lets all expire that waits, since nobody comes.
func (m *queueModel) expireAll(t modelTest) {
	if m.far != nil {
		m.leave()
	}
	for m.tellLater() {
	}
	m.gate.slowly(false)
	for range 20 {
		m.commitAll()
		time.Sleep(m.ttl() / 4) // of the bubble
		m.check(t)
	}
	m.commitAll()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.queued(); n > 0 {
		m.fault("%d wait still", n)
	}
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
