package hub_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// port is a far end that takes as many messages as it was made for. It writes
// them in Flush, and what it did not write it gives back.
type port struct {
	log *written

	mu      sync.Mutex
	room    int // < 0 = no bound
	waiting []hub.Parcel
	retired bool
	lazy    bool // writes nothing
	settled []*wire.Error
}

// written is what all ports of a test wrote, in order.
type written struct {
	mu      sync.Mutex
	texts   []string     // of frames
	parcels []hub.Parcel // that they were of
}

func (w *written) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// all are the parcels of which that was.
func (w *written) all() []hub.Parcel {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.parcels)
}

func (p *port) Offer(parcel hub.Parcel) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired || p.room == 0 {
		return false
	}
	p.room--
	p.waiting = append(p.waiting, parcel)
	return true
}

func (p *port) Retire() []hub.Parcel {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	left := p.waiting
	p.waiting = nil
	return left
}

func (p *port) Room() <-chan struct{} {
	room := make(chan struct{})
	close(room)
	return room
}

func (p *port) Admitted(wire.View, string) {}

func (p *port) Overdue() {}

func (p *port) Settled(_ string, err *wire.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = append(p.settled, err)
}

func (p *port) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lazy || p.retired {
		return
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.parcels = append(p.log.parcels, p.waiting...)
	for _, parcel := range p.waiting {
		for _, f := range parcel.Frames {
			p.log.texts = append(p.log.texts, f.Text)
		}
	}
	p.waiting = nil
}

var _ hub.Port = (*port)(nil)

// bed is a hub with one channel that has a queue.
type bed struct {
	*hosttest.Core
	row ledger.Channel
}

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedWith(t, sqlite.Options{}, nil)
}

// newBedWith makes a bed whose channel talks to the agent "agent" if there is one.
func newBedWith(t *testing.T, o sqlite.Options, agent hub.Agent) *bed {
	t.Helper()
	name, named := hub.AgentNone, map[string]hub.Agent{}
	if agent != nil {
		name = "agent"
		named[name] = agent
	}
	c := hosttest.Open(t, hosttest.WithAgents(named), func(s *hosttest.Setup) { s.Store = o })
	return &bed{c, c.Channel("c", hosttest.WithAgent(name), hosttest.WithQueue)}
}

// wantLogged waits until a line begins with the text.
func (b *bed) wantLogged(text string) {
	b.T.Helper()
	await.Until(b.T, text, func() bool { return b.Log.Count(text) > 0 })
}

// lock keeps the host from writing until unlock.
func (b *bed) lock() (unlock func()) {
	b.T.Helper()
	return hosttest.LockStore(b.T, b.Dir)
}

func (b *bed) attach(p *port) *hub.Attachment {
	b.T.Helper()
	a, _, err := b.Hub.Attach(b.T.Context(), b.row, p, hub.Info{Heard: time.Now, Declared: wire.CapText})
	if err != nil {
		b.T.Fatal(err)
	}
	return a
}

func (b *bed) send(text string) {
	b.T.Helper()
	b.MustSend(b.row, "c", text)
}

func (b *bed) wantWritten(log *written, n int) {
	b.T.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	var got []string
	await.UntilElse(b.T, func() bool {
		if got = log.list(); len(got) > n {
			b.T.Fatalf("written: %v, want %d in order", got, n)
		}
		return slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("%d written in order: %v", n, got) })
}
