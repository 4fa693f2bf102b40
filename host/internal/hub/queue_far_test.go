package hub_test

import (
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// far is an adapter of the model: a port that has as much room, and writes as much, as
// the test says, and behind it a far end that takes a conversation's frames in order,
// and after one that it refused for now nothing until it is told that the conversation
// goes on.
type far struct {
	m      *queueModel
	n      int // of all
	a      *hub.Attachment
	acks   bool
	window int  // of unacknowledged messages of a conversation
	told   int  // how many it may have, when it came
	short  bool // it shows short texts alone

	// The model's mutex guards the rest.
	room    int  // < 0 = no bound
	crowded bool // Room says that there is none
	lazy    bool // Flush writes nothing
	retired bool
	refused bool // it took no more
	dead    bool // its host was killed
	roomy   chan struct{}
	waiting []hub.Parcel
	lost    []hub.Parcel // maybe written, when the connection was cut

	came    map[string][]frame         // by conversation: written, and not looked at
	void    map[string]bool            // conversations of which it takes nothing
	said    []verdict                  // that the host has not heard
	out     map[string]map[string]bool // by conversation: messages offered, and not acknowledged
	wrote   map[string]int             // when a frame was written last
	refusal map[string]int             // by conversation: when one for now was heard last
	newest  map[string]int             // by conversation: shown
}

// frame is one that was written.
type frame struct {
	name    string // of its message
	ref     string
	last    bool
	resumed bool
}

// verdict is what the far end says of a frame.
type verdict struct {
	frame
	kind string
}

// What the far end may say.
const (
	taken     = "taken"
	notNow    = "not now"
	never     = "never"
	uncertain = "uncertain"
)

var _ hub.Port = (*far)(nil)

// may takes note of what the channel allows. The mutex must be held.
func (f *far) may(row *ledger.Channel) {
	acks := f.window > 0 && len(row.Accept) == 0
	if acks != f.acks { // what is in flight comes again, or as to one who does not acknowledge
		f.m.moment++
		clear(f.out)
		clear(f.newest)
		for conv := range f.m.count {
			f.refusal[fmt.Sprint(conv)] = f.m.moment
		}
	}
	f.acks = acks
	if f.told == 0 {
		if f.told = f.window; row.Profile.InFlight > 0 {
			f.told = min(f.told, row.Profile.InFlight)
		}
	}
}

// newFar makes an adapter, which acknowledges if its window is above 0.
func newFar(m *queueModel, window int) *far {
	m.fars++
	return &far{
		m: m, n: m.fars, acks: window > 0, window: window, room: -1,
		came: map[string][]frame{}, void: map[string]bool{}, out: map[string]map[string]bool{},
		wrote: map[string]int{}, refusal: map[string]int{}, newest: map[string]int{},
	}
}

func (f *far) String() string { return fmt.Sprint("adapter ", f.n) }

// nameOf is the name of a parcel's message, and its conversation.
func nameOf(p *hub.Parcel) (name, conv string) {
	name, _, _ = strings.Cut(p.Message.Text, " ")
	return name, p.Routing.ConversationID
}

func (f *far) Offer(p hub.Parcel) bool {
	if f.killed() {
		return false
	}
	sent := f.m.gate.state(p.ID)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.retired || f.room == 0 {
		f.m.logf("%s refused %s", f, p.ID)
		f.refused = true
		return false
	}
	f.room--
	name, conv := nameOf(&p)
	if sent != ledger.Sent {
		f.m.fault("%s was offered to %s, and is %s on the disk", name, f, sent)
	}
	if end := f.m.sent[name].ended; end != "" {
		f.m.fault("%s was offered to %s, though it is over: %s", name, f, end)
	}
	if p.Tracked != f.acks {
		f.m.fault("%s was offered to %s, tracked: %v", name, f, p.Tracked)
	}
	if f.acks {
		if f.out[conv] == nil {
			f.out[conv] = map[string]bool{}
		}
		if f.out[conv][name] = true; len(f.out[conv]) > f.told {
			f.m.fault("%v are in flight at %s, which takes %d", f.out[conv], f, f.told)
		}
	}
	f.m.logf("%s was offered %s (%s)", f, name, p.ID)
	f.waiting = append(f.waiting, p)
	return true
}

func (f *far) killed() bool {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.dead
}

func (f *far) Retire() []hub.Parcel {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.retired = true
	f.makeRoom()
	left := f.waiting
	f.waiting = nil
	return left
}

func (f *far) Room() <-chan struct{} {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	room := make(chan struct{})
	if !f.crowded || f.retired || f.dead {
		close(room)
		return room
	}
	if f.roomy == nil {
		f.roomy = room
	}
	return f.roomy
}

// makeRoom ends a crowd.
func (f *far) makeRoom() {
	f.crowded = false
	if f.roomy != nil {
		close(f.roomy)
		f.roomy = nil
	}
}

func (f *far) Flush() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.lazy && !f.dead && !f.retired {
		f.write(len(f.waiting))
	}
}

func (f *far) Admitted(wire.View, string)  {}
func (f *far) Settled(string, *wire.Error) {}

func (f *far) Overdue() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.fault("%s was given up", f)
}

// write writes the first n parcels that wait. The mutex must be held.
func (f *far) write(n int) {
	for i := range f.waiting[:n] {
		f.arrive(&f.waiting[i])
	}
	f.waiting = f.waiting[n:]
}

// arrive takes a parcel off the connection.
func (f *far) arrive(p *hub.Parcel) {
	name, conv := nameOf(p)
	f.m.moment++
	for i := range p.Frames {
		one := frame{name: name, ref: p.Frames[i].MessageID, last: strings.HasSuffix(p.Frames[i].Text, "$"), resumed: p.Frames[i].Resumed}
		key := fmt.Sprint(name, i)
		if f.acks {
			key = one.ref
			f.came[conv] = append(f.came[conv], one)
		}
		if at, again := f.wrote[key]; again && at > f.refusal[conv] {
			f.m.fault("%s was written to %s twice", name, f)
		}
		f.wrote[key] = f.m.moment
		if !f.acks && one.last {
			f.m.shown(f, name)
		}
	}
}

// look lets the far end look at the next frame of a conversation. The mutex must be held.
func (f *far) look(conv, kind string) {
	one := f.came[conv][0]
	f.came[conv] = f.came[conv][1:]
	if f.void[conv] && !one.resumed {
		return
	}
	f.void[conv] = kind == notNow && f.told > 1
	if kind == taken && one.last {
		f.m.shown(f, one.name)
	}
	f.said = append(f.said, verdict{one, kind})
}

// hear lets the host hear the first of what the far end said.
func (f *far) hear() {
	f.m.mu.Lock()
	v := f.said[0]
	f.said = f.said[1:]
	conv, _, _ := strings.Cut(v.name, ".")
	counts := f.m.far == f && f.out[conv][v.name]
	if counts {
		f.m.heard(f, v)
	}
	f.m.mu.Unlock()
	said := &wire.Later{OK: v.kind == taken, Retryable: v.kind == notNow, Ambiguous: v.kind == uncertain}
	if took := f.a.Acknowledge(&wire.Inbound{Type: wire.TypeMessageAck, MessageID: v.ref, Later: said}); took != counts {
		f.m.mu.Lock()
		f.m.fault("%s said %s of %s: heard %v, want %v", f, v.kind, v.ref, took, counts)
		f.m.mu.Unlock()
	}
	f.Flush()
}
