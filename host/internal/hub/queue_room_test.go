package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// crowded is a port that writes nothing, and has room until it holds what a session may.
type crowded struct {
	*port
	most int // bytes
}

func (p crowded) held() (bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		bytes += p.waiting[i].Size
	}
	return bytes
}

func (p crowded) Room() <-chan struct{} {
	if p.held() < p.most/2 {
		return p.port.Room()
	}
	return make(chan struct{})
}

// A long queue of large messages does not come all at once when the disk takes nothing
// for a while: whoever reads it would be closed as too slow.
func TestLargeQueueWaitsForRoom(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]wire.Caps{"acknowledged": wire.CapAck, "not acknowledged": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			largeQueueWaits(t, caps)
		})
	}
}

func largeQueueWaits(t *testing.T, caps wire.Caps) {
	b := newBedWith(t, impatient, nil)
	const messages, size, most = 80, 200_000, 8 << 20
	for i := range messages {
		b.MustSend(b.row, fmt.Sprint("c", i), strings.Repeat("x", size))
	}
	unlock := b.lock()
	p := crowded{&port{log: new(written), room: -1, lazy: true}, most}
	if _, _, err := b.Hub.Attach(t.Context(), b.row, p, hub.Info{Heard: time.Now, Protocol: wire.V11, Declared: wire.CapText | caps}); err != nil {
		t.Fatal(err)
	}
	b.wantLogged("queue not written")
	unlock()
	await.Until(t, "the port has no room for more", func() bool { return p.held() >= most/2 })
	b.MustSend(b.row, "another", "behind what was begun")
	if got := p.held(); got > most {
		t.Errorf("%d bytes are offered to a port that has room for %d", got, most)
	}
}
