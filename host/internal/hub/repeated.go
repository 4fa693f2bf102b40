package hub

import (
	"bytes"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Repeater is a port that wants to know of frames that were not stored, since the
// channel has had a message of their id. Repeated is called on the writer, behind
// Settled, and must not block.
type Repeater interface{ Repeated(ref string) }

// maxCompared is how many repeats of one attachment are compared with what is stored.
// An adapter that repeats all day costs no more reads than that.
const maxCompared = 8

// repeat counts a message that the channel has had. The first few of an attachment are
// compared with what is stored: an adapter that gives two messages one id loses the
// second, and does not know. The caller still has f.
func (f *inbound) repeat(ch *locked) {
	ch.count().Repeated++
	if f.of != nil || f.a.compared >= maxCompared {
		return
	}
	f.a.compared++
	row := f.row
	ch.c.hub.spawn(func() { f.a.compare(row) })
}

// compare warns if a repeat says something else than the message that is stored, once
// in the attachment's life.
func (a *Attachment) compare(row ledger.Row) {
	c := a.channel
	stored, err := c.hub.Store.ByPlatformID(c.hub.ctx, c.tail.Channel, row.PlatformID)
	if err != nil || stored.Text == row.Text && bytes.Equal(stored.Parts, row.Parts) {
		return // what can't be read now is no reason to warn
	}
	if a.warned.Swap(true) {
		return
	}
	c.hub.Log.Warn("adapter gave two messages one message_id: the second was acknowledged and not stored",
		"channel", c.name(), "message_id", clip(row.PlatformID), "stored", stored.ID.String())
}

// Repeated is how many messages of a channel were not stored since the process began,
// as the channel has had one of their id.
func (h *Hub) Repeated(channel int64) uint64 {
	c := h.known(channel)
	if c == nil {
		return 0
	}
	ch := c.lock()
	defer ch.unlock()
	if ch.tally == nil {
		return 0
	}
	return ch.tally.Repeated
}
