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
	done    bool             // else it is under way
	id      ledger.MessageID // 0 = it is no message
	repeats int              // that came while it was under way, each to be answered
}

// begin notes a frame that is about to be sent. If it was there before, it
// returns its fate and true: one that is under way is answered as often as it came.
func (s *sent) begin(id string) (fate, bool) {
	if f, ok := s.fate[id]; ok {
		if !f.done {
			f.repeats++
			s.fate[id] = f
		}
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

// end notes that the frame was sent as a message of this id. It returns how often
// that is to be answered.
func (s *sent) end(own string, id ledger.MessageID) (answers int) {
	f, ok := s.fate[own]
	if ok {
		s.fate[own] = fate{done: true, id: id}
	}
	return 1 + f.repeats
}

// forget lets a frame that was not taken be sent again. It returns how often that is
// to be answered.
func (s *sent) forget(own string) (answers int) {
	f, ok := s.fate[own]
	if ok {
		delete(s.fate, own)
		for i, id := range s.order {
			if id == own {
				s.order = append(s.order[:i:i], s.order[i+1:]...)
				break
			}
		}
	}
	return 1 + f.repeats
}

// find is the message that the agent knows by an id of its own; 0 = none.
func (s *sent) find(own string) ledger.MessageID { return s.fate[own].id }
