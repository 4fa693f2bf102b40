package sdk

import (
	"strings"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// mostKnown bounds the memory: far more than a host has in flight at once, which
// is all that it can ask for again.
const mostKnown = 4096

// memory knows what became of the host's messages, so that one that the host
// sends again, since it missed the acknowledgement, is not shown twice.
type memory struct {
	mu    sync.Mutex
	busy  map[string]bool        // waits for the adapter, or is with it
	known map[string]*wire.Later // what the host is to be told again
	ring  []string               // the ids of known, oldest at next
	next  int
}

func newMemory() *memory { return &memory{busy: map[string]bool{}, known: map[string]*wire.Later{}} }

// ownID reports whether the frame's id is of the frame itself. Deletions and
// reactions have that of another message; they may be repeated.
func ownID(out *wire.Outbound) bool {
	return out.Type != wire.TypeDeleteMessage && out.Type != wire.TypeSendReaction
}

// begin notes that the frame is under way; false = it was already.
func (m *memory) begin(out *wire.Outbound) bool {
	if !ownID(out) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[out.MessageID] {
		return false
	}
	m.busy[out.MessageID] = true
	return true
}

// end is the end of begin.
func (m *memory) end(out *wire.Outbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ownID(out) {
		delete(m.busy, out.MessageID)
	}
}

// recall is what became of the frame when it came before; nil = it must be shown.
func (m *memory) recall(out *wire.Outbound) *wire.Later {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ownID(out) {
		return nil
	}
	return m.known[out.MessageID]
}

// keep remembers what became of the frame, if it was shown or may have been. Who
// refused it is asked again.
func (m *memory) keep(out *wire.Outbound, said *wire.Later) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := out.MessageID
	if !ownID(out) || !said.OK && !said.Ambiguous {
		return
	}
	if m.known[id] == nil {
		if len(m.ring) < mostKnown {
			m.ring = append(m.ring, "")
		}
		delete(m.known, m.ring[m.next])
		m.ring[m.next] = id
		m.next = (m.next + 1) % mostKnown
	}
	m.known[id] = said
}

// forget is for a message of which the host knows that nobody knows whether it
// was shown: if it comes again, an operator wants that.
func (m *memory) forget(out *wire.Outbound) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, out.MessageID) // its place in the ring stays
}

// handle is the platform's name of what the host calls id; "" = not known.
func (m *memory) handle(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if said := m.known[id]; said != nil {
		return said.PreviewHandle
	}
	return ""
}

// clip makes s fit into so many bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
