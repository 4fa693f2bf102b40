package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const patience = await.Limit

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
	mu    sync.Mutex
	texts []string
}

func (w *written) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
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
	t     *testing.T
	store *sqlite.Store
	hub   *hub.Hub
	row   ledger.Channel
	dir   string
	log   *logged
}

// logged is what a hub logs.
type logged struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

// wantLogged waits until a line has the text.
func (b *bed) wantLogged(text string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		b.log.mu.Lock()
		all := b.log.all.String()
		b.log.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("logged %q, expected %q", all, text)
		}
	}
}

func newBed(t *testing.T) *bed {
	t.Helper()
	return newBedWith(t, sqlite.Options{}, nil)
}

// newBedWith makes a bed whose channel talks to the agent "agent" if there is one.
func newBedWith(t *testing.T, o sqlite.Options, agent hub.Agent) *bed {
	t.Helper()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	files, err := attach.Open(t.TempDir(), attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	agents, name := hub.Fixed{}, hub.AgentNone
	if agent != nil {
		name = "agent"
		agents[name] = agent
	}
	log := new(logged)
	h := hub.New(hub.Options{Store: st, Attachments: files, Commands: command.New(), Agents: agents, Log: slog.New(slog.NewTextHandler(log, nil))})
	t.Cleanup(h.Close)
	row, err := st.CreateChannel(t.Context(), ledger.Channel{ID: "id", Name: "c", Kind: "bridge", Enabled: true, Agent: name, Queue: true},
		nil, ledger.Change{Actor: "test", Action: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t, st, h, row, dir, log}
}

func (b *bed) attach(p *port) *hub.Attachment {
	b.t.Helper()
	a, _, err := b.hub.Attach(b.t.Context(), b.row, p, hub.Info{Heard: time.Now, Declared: wire.CapText})
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bed) send(text string) {
	b.t.Helper()
	if _, err := b.hub.Send(context.Background(), b.row, hub.Outgoing{Conversation: "c", Message: message.Text(text)}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) wantWritten(log *written, n int) {
	b.t.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	var got []string
	await.UntilElse(b.t, func() bool {
		if got = log.list(); len(got) > n {
			b.t.Fatalf("written: %v, want %d in order", got, n)
		}
		return slices.Equal(got, want)
	}, func() string { return fmt.Sprintf("%d written in order: %v", n, got) })
}

// What a port refused, and what it gave back, goes to the next one before all
// that came later.
func TestRefusedStaysInOrder(t *testing.T) {
	b := newBed(t)
	log := new(written)
	n := 0
	for round := range 50 {
		full := &port{log: log, room: 2 + round%3, lazy: true}
		a := b.attach(full)
		for range 5 {
			b.send(fmt.Sprint(n))
			n++
		}
		if round%2 == 0 {
			a.Detach()
		}
		next := &port{log: log, room: -1}
		b.attach(next)
		b.send(fmt.Sprint(n))
		n++
		b.wantWritten(log, n)
		a.Detach()
	}
}

// A port that refuses is not offered more, and the queue rests meanwhile.
func TestRefusedRests(t *testing.T) {
	b := newBed(t)
	log := new(written)
	events, end := b.hub.Events.Subscribe()
	defer end()
	a := b.attach(&port{log: log, room: 0})
	const n = 20
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	for queued := false; !queued; {
		e := <-events
		queued = e.Type == hub.EventState
	}
	for range 20 { // commits, each after whatever a restless queue would commit
		if err := b.store.Writable(); err != nil {
			t.Fatal(err)
		}
	}
	changes := 0
	for len(events) > 0 {
		if e := <-events; e.Type == hub.EventState {
			changes++
		}
	}
	if changes != 0 {
		t.Errorf("%d more changes of state, want none", changes)
	}
	a.Detach()
	b.attach(&port{log: log, room: -1})
	b.wantWritten(log, n)
}

// Ports come and go while the queue is written: nothing is lost, doubled, or
// left lying.
func TestQueueSurvivesComingAndGoing(t *testing.T) {
	b := newBed(t)
	log := new(written)
	const n = 300
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	for len(log.list()) < n/2 {
		b.attach(&port{log: log, room: -1}).Detach()
		b.attach(&port{log: log, room: 3}).Detach()
		a := b.attach(&port{log: log, room: -1})
		b.attach(&port{log: log, room: 5})
		a.Detach()
		before := len(log.list())
		for end := time.Now().Add(20 * time.Millisecond); len(log.list()) == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	b.attach(&port{log: log, room: -1})
	b.wantWritten(log, n)
}

// A frame of a port that is not current any more is refused and not stored.
func TestReceiveFromReplaced(t *testing.T) {
	b := newBed(t)
	old, current := &port{log: new(written), room: -1}, &port{log: new(written), room: -1}
	first, second := b.attach(old), b.attach(current)
	first.Detach()
	in := func(text string) *wire.Inbound {
		return &wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, Text: text}
	}
	first.Receive(in("late"))
	second.Receive(in("in time"))
	if err := b.store.Writable(); err != nil { // behind both
		t.Fatal(err)
	}
	all, err := b.store.Before(t.Context(), ledger.Scope{Channel: b.row.Key}, 0, 10)
	if err != nil || len(all) != 1 || all[0].Text != "in time" {
		t.Errorf("stored %v, %v", all, err)
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	if len(old.settled) != 1 || old.settled[0] == nil || !old.settled[0].Retryable() {
		t.Errorf("settled with %v", old.settled)
	}
	if _, attached := b.hub.Attached(b.row.Key); !attached {
		t.Error("the old one's end detached the current one")
	}
}
