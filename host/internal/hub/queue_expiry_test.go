package hub_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

// What TestQueueModel found of messages whose time is over: each expires once, or is
// delivered, and none does both.
func TestQueueExpiresOnce(t *testing.T) {
	t.Parallel()
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	old := func() {           // enough for what waits
		time.Sleep(modelTTL * 3 / 2) // of the bubble
		synctest.Wait()
	}
	for name, run := range map[string]func(*testing.T, *queueModel){
		// It is queued on the disk, and expires before the hub is told so. By then somebody
		// is there, in whose lane it comes.
		"before it was known to be queued": func(t *testing.T, m *queueModel) {
			m.send(t, 0, "")
			m.gate.commit(1, func(*ledger.Unit) bool { return false })
			old()
			m.send(t, 0, "")
			m.attach(t, newFar(m, 1))
		},
		// The disk refuses that one expires which waits behind one in flight.
		"refused by the disk": func(t *testing.T, m *queueModel) {
			m.attach(t, newFar(m, 1))
			m.send(t, 0, "")
			m.send(t, 0, "")
			m.commitAll()
			old()
			m.gate.commit(1, func(*ledger.Unit) bool { return true })
			m.gate.tell(1)
		},
		// One who does not acknowledge has taken it, and the disk does not say so before
		// another one has come.
		"taken for one who is gone": func(t *testing.T, m *queueModel) {
			m.send(t, 0, "")
			m.gate.commit(1, func(*ledger.Unit) bool { return false })
			m.attach(t, newFar(m, 0))
			m.attach(t, newFar(m, 1))
			m.gate.tell(1)
			old()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := openModel(t, dir, 1, modelTTL)
				run(t, m)
				synctest.Wait()
				m.finish(t)
			})
		})
	}
}
