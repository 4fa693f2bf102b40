package hub_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What TestDraftModel found: the last edit goes back to the queue and waits there for
// longer than it would have rested. When it is written, it must not come again to the
// next adapter before its time.
func TestDraftKeepsPaceThroughQueue(t *testing.T) {
	t.Parallel()
	blank.Dir(t, t.TempDir()) // it is made outside of any bubble
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const edits = wire.CapAck | wire.CapUpdateMessage
		m := openDrafts(t, dir, true)
		m.attach(t, m.newFar(edits, 1, 300*time.Millisecond))
		m.ask()
		m.commitAll()
		m.show()
		m.commitAll()
		m.look(taken, true)
		m.hear()
		m.commitAll()
		m.end()
		m.commitAll()
		m.attach(t, m.newFar(edits, 1, 2500*time.Millisecond))
		time.Sleep(2 * time.Second) // of the bubble
		for m.commitAll() {
		}
		m.attach(t, m.newFar(edits, 1, 300*time.Millisecond))
		m.finish(t)
	})
}
