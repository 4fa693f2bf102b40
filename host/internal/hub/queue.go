package hub

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// queue is what of a channel waits for its far end: counted for one that does
// not acknowledge, in a lane for each conversation for one that does.
type queue struct {
	*locked

	backlog   int       // queued messages, committed or about to be
	requeuing int       // of them, those that were sent and go back: not committed yet
	requeued  bool      // some went back since drainOnce began
	leaving   int       // of them, those that are being committed as sent for an adapter that does not acknowledge
	draining  bool      // drainAll runs …
	again     bool      // … and must look once more
	drains    int       // that began
	stalled   bool      // the last drain failed: the clock begins another
	looked    time.Time // through the queue, for what is too old
	peak      int       // the longest queue since TakePeaks

	// While an adapter is attached that acknowledges.
	lanes   map[string]*lane // by conversation
	flights map[ledger.MessageID]*flight
	resting int                           // of them, those whose time to be written is still to come
	aloft   int                           // bytes in flight, roughly
	rising  int                           // likewise, of what is being committed as sent: it is offered in one go
	taking  map[ledger.MessageID]*laneJob // taken from their lanes, and not committed as sent
	ready   []*lane                       // that may have something to send
	loaded  bool                          // the lanes hold all that is queued
	begun   int                           // commits under way of what is in the lanes: as sent, or as waiting again
	fleet   int                           // the lanes' number: whoever attaches has others

	kept      map[ledger.MessageID]*outgoing // of what waits, so that it need not be read back
	keptBytes int

	stuck map[ledger.MessageID][]change // that the disk did not take yet
}
