package agent

import "github.com/pontoon-bridge/pontoon/host/internal/ledger"

// maxSent is how many of an agent's own ids are remembered.
const maxSent = 1024

// sent remembers what became of the frames to which an agent gave ids, so that a
// repeat does nothing twice. It forgets the oldest, and everything when the host
// ends. Whoever has it guards it.
type sent struct {
	fate  map[string]fate
	order []string // oldest first
}

// fate is what became of a frame.
type fate struct {
	done bool             // else it is under way
	id   ledger.MessageID // 0 = it is no message
}

// begin notes a frame that is about to be sent. If it was there before, it
// returns its fate and true.
func (s *sent) begin(id string) (fate, bool) {
	if f, ok := s.fate[id]; ok {
		return f, true
	}
	if s.fate == nil {
		s.fate = map[string]fate{}
	}
	if len(s.order) >= maxSent {
		delete(s.fate, s.order[0])
		s.order = s.order[1:]
	}
	s.fate[id] = fate{}
	s.order = append(s.order, id)
	return fate{}, false
}

// end notes that the frame was sent as a message of this id.
func (s *sent) end(own string, id ledger.MessageID) {
	if _, ok := s.fate[own]; ok {
		s.fate[own] = fate{true, id}
	}
}

// forget lets a frame that was not taken be sent again.
func (s *sent) forget(own string) {
	if _, ok := s.fate[own]; ok {
		delete(s.fate, own)
		for i, id := range s.order {
			if id == own {
				s.order = append(s.order[:i:i], s.order[i+1:]...)
				break
			}
		}
	}
}

// find is the message that the agent knows by an id of its own; 0 = none.
func (s *sent) find(own string) ledger.MessageID { return s.fate[own].id }
