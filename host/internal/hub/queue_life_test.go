package hub_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// life is a host of a model, from its start to its end.
type life struct {
	dir   string
	store *sqlite.Store
	gate  *gate
	hub   *hub.Hub
}

// live starts a host on what is in dir, and makes the channel if it is not there.
func live(t modelTest, dir string, files *attach.Store, agents hub.Roster, row *ledger.Channel, committed func(*ledger.Unit)) life {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Now().AddDate(30, 0, 0) } // ids are younger than a bubble's beginning
	store, err := sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{Now: now, Names: attach.Names})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if row.Key == 0 {
		if *row, err = store.CreateChannel(t.Context(), *row, nil, ledger.Change{Actor: "test", Action: "channel.create"}); err != nil {
			t.Fatal(err)
		}
	}
	gate := newGate(store)
	gate.log, gate.committed = t.Logf, committed
	h := hub.New(hub.Options{Store: gate, Attachments: files, Agents: agents, Commands: command.New(), AckTimeout: 24 * time.Hour, Now: now})
	t.Cleanup(func() {
		gate.release()
		h.Close()
	})
	return life{dir, store, gate, h}
}

// end ends the host. If it is killed, it leaves what is on the disk now, and nothing that
// it does until it is gone matters; dir is where that is.
func (l *life) end(t modelTest, killed bool, silence func()) (dir string) {
	t.Helper()
	dir = l.dir
	if killed {
		n, _ := strconv.Atoi(filepath.Base(l.dir))
		dir = filepath.Join(filepath.Dir(l.dir), strconv.Itoa(n+1))
		if err := os.CopyFS(dir, os.DirFS(l.dir)); err != nil {
			t.Fatal(err)
		}
		silence()
		l.gate.kill()
	} else {
		l.gate.release()
	}
	l.hub.Close()
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return dir
}

// restart ends the host, in peace or as if it was killed now, and starts another one on
// what it left.
func (m *queueModel) restart(t modelTest, killed bool) {
	t.Helper()
	m.logf("the host ends, killed: %v", killed)
	doubtful := killed || m.gate.refusals > 0
	if !killed {
		if m.far != nil {
			m.leave()
		}
		for m.tellLater() {
		}
	}
	dir := m.end(t, killed, m.silence)
	m.life = live(t, dir, m.files, hub.Fixed{}, &m.row, m.committed)
	m.reconcile(t, doubtful)
	if _, err := m.hub.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// silence lets nobody hear any more of a host that is killed.
func (m *queueModel) silence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sent {
		s.cut = s.cut || !s.back
	}
	f := m.far
	m.far, m.later = nil, nil
	if f == nil {
		return
	}
	f.dead = true
	f.makeRoom()
	for conv := range f.came { // it is not known to the host
		for len(f.came[conv]) > 0 {
			f.look(conv, taken)
		}
	}
}

// maxDoubles is how many of a conversation's messages may come again that were
// acknowledged when the host was killed.
const maxDoubles = 4

// reconcile compares what is on the disk with what was there when the host ended. In
// doubt, some of what it knew is not.
func (m *queueModel) reconcile(t modelTest, doubtful bool) {
	t.Helper()
	all, err := m.store.Before(t.Context(), ledger.Scope{Channel: m.row.Key}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := m.store.Waiting(t.Context(), m.row.Key)
	if err != nil {
		t.Fatal(err)
	}
	tries := map[ledger.MessageID]int{}
	for _, w := range waiting {
		tries[w.ID] = w.Tries
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	doubles := map[int]int{}
	for i := range all {
		e := &all[i]
		name := m.names[e.ID]
		s := m.sent[name]
		if s == nil {
			m.fault("%s is on the disk, and was never committed", e.ID)
			continue
		}
		want := s.state
		if want == ledger.Sent && s.flies {
			want = ledger.Queued
			m.back = true
		}
		if e.State != want {
			m.fault("%s is %s after the host's end, expected %s", name, e.State, want)
		}
		if n, waits := tries[e.ID]; waits != (want == ledger.Queued) {
			m.fault("%s is %s after the host's end, and waits: %v", name, e.State, waits)
		} else if waits {
			if n != s.refusals && !doubtful {
				m.fault("%s was refused %d times, and comes back with %d", name, s.refusals, n)
			}
			s.refusals = n
		}
		if !final(want) && s.ended != "" {
			if doubles[s.conv]++; !doubtful {
				m.fault("%s had ended: %s", name, s.ended)
			}
			s.ended = ""
		}
		s.lost = s.lost || want == ledger.Sent && !s.shown && doubtful
		s.state, s.flies = e.State, false
	}
	for conv, n := range doubles {
		if n > maxDoubles && m.gate.refusals == 0 {
			m.fault("of %d, %d messages come again that were acknowledged", conv, n)
		}
	}
	if len(all) != len(m.names) {
		m.fault("%d messages are there after the host's end, expected %d", len(all), len(m.names))
	}
}
