package hub_test

import (
	"testing"
	"testing/synctest"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// What TestQueueModel found: in the end each message was delivered, in order, or failed
// for a reason.
func TestQueueKeepsOrder(t *testing.T) {
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	for name, run := range map[string]func(*testing.T, *queueModel){
		// The first of two that are taken together turns out to need several frames, so
		// that both wait again: somebody must take them then.
		"several frames first": func(t *testing.T, m *queueModel) {
			m.send(t, 0, inParts)
			m.send(t, 0, "")
			m.commitAll()
			f := newFar(m, 4)
			f.short = true
			m.attach(t, f)
		},
		// One that is too large was taken with it, and waits again: it is too large still,
		// and not delivered since there is nothing to show.
		"too large behind it": func(t *testing.T, m *queueModel) {
			m.send(t, 0, inParts)
			m.send(t, 0, large)
			m.commitAll()
			f := newFar(m, 4)
			f.short = true
			m.attach(t, f)
		},
		// The disk refuses one that is taken from the queue, and takes the next.
		"refused by the disk": func(t *testing.T, m *queueModel) {
			m.send(t, 0, "")
			m.send(t, 0, "")
			m.commitAll()
			m.attach(t, newFar(m, 0))
			first := true
			m.gate.commit(2, func(*ledger.Unit) bool { defer func() { first = false }(); return first })
			m.gate.tell(2)
		},
		// What one who does not acknowledge has taken goes to one who does.
		"taken for one without ack": func(t *testing.T, m *queueModel) {
			m.send(t, 0, "")
			m.commitAll()
			m.attach(t, newFar(m, 0))
			m.attach(t, newFar(m, 1))
		},
		"given back by one without ack": func(t *testing.T, m *queueModel) {
			lazy := newFar(m, 0)
			lazy.lazy = true
			m.attach(t, lazy)
			m.send(t, 0, "")
			m.send(t, 0, "")
			m.commitAll()
			m.attach(t, newFar(m, 1))
		},
		// What was refused for now is not queued on the disk yet when another one comes.
		"refused for now, then another": func(t *testing.T, m *queueModel) {
			refuseForNow(t, m)
			m.attach(t, newFar(m, 0))
		},
		"refused for now, then another with ack": func(t *testing.T, m *queueModel) {
			refuseForNow(t, m)
			m.attach(t, newFar(m, 1))
		},
		// The disk has the first as sent and the second as queued, the hub knows of
		// neither, and another one comes.
		"reserved, then another": func(t *testing.T, m *queueModel) {
			f := newFar(m, 1)
			m.attach(t, f)
			m.send(t, 0, "")
			m.send(t, 0, "")
			m.gate.commit(2, func(*ledger.Unit) bool { return false })
			m.attach(t, newFar(m, 1))
		},
		// The hub is told that one is queued when it has failed for one adapter, and
		// another one has come.
		"failed before it was known to be queued": func(t *testing.T, m *queueModel) {
			m.send(t, 0, large)
			m.gate.commit(1, func(*ledger.Unit) bool { return false })
			f := newFar(m, 1)
			f.short = true
			m.attach(t, f)
			m.send(t, 0, "")
			m.attach(t, newFar(m, 4))
		},
		// It has failed for one who does not acknowledge, and another one has come: in its
		// lane it comes when the hub is told that it is queued.
		"failed for one without ack": func(t *testing.T, m *queueModel) {
			m.send(t, 0, large)
			m.gate.commit(1, func(*ledger.Unit) bool { return false })
			f := newFar(m, 0)
			f.short = true
			m.attach(t, f)
			m.attach(t, newFar(m, 4))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := openModel(t, dir, 1, 0)
				run(t, m)
				synctest.Wait()
				m.finish(t)
			})
		})
	}
}

// refuseForNow lets an adapter refuse the first of two messages, which is not committed.
func refuseForNow(t *testing.T, m *queueModel) {
	m.attach(t, newFar(m, 1))
	m.send(t, 0, "")
	m.send(t, 0, "")
	m.commitAll()
	m.mu.Lock()
	m.far.look("0", notNow)
	m.mu.Unlock()
	m.hear()
}
