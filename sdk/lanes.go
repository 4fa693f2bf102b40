package sdk

import (
	"context"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// lanes serves the host's frames: those of one conversation in order and one at
// a time, different conversations at once. A conversation has a goroutine only
// while it has frames.
type lanes struct {
	serve func(context.Context, *wire.Outbound)
	slots chan struct{} // one token per frame that waits or is being served

	mu      sync.Mutex
	waiting map[string][]*wire.Outbound // by conversation; a key = its goroutine runs
	idle    chan struct{}               // closed while waiting is empty
}

func newLanes(bound int, serve func(context.Context, *wire.Outbound)) *lanes {
	s := &lanes{serve: serve, slots: make(chan struct{}, bound), waiting: map[string][]*wire.Outbound{}, idle: make(chan struct{})}
	close(s.idle)
	return s
}

// put queues the frame; at the bound it waits for room until ctx ends. ctx is
// also what the frame is served with.
func (s *lanes) put(ctx context.Context, out *wire.Outbound) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	id := out.ConversationID
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.idle = make(chan struct{})
	}
	queue, running := s.waiting[id]
	s.waiting[id] = append(queue, out)
	if !running {
		go s.work(ctx, id)
	}
	return nil
}

func (s *lanes) work(ctx context.Context, id string) {
	for out := s.next(id); out != nil; out = s.next(id) {
		s.serve(ctx, out)
		<-s.slots
	}
}

// next takes the conversation's oldest frame; nil = none, and its goroutine must end.
func (s *lanes) next(id string) *wire.Outbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.waiting[id]
	if len(queue) == 0 {
		delete(s.waiting, id)
		if len(s.waiting) == 0 {
			close(s.idle)
		}
		return nil
	}
	s.waiting[id] = queue[1:]
	return queue[0]
}

// drained waits until no frame is left, or ctx ends, and reports which.
func (s *lanes) drained(ctx context.Context) bool {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return true
	default:
	}
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
