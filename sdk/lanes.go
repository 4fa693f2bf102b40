package sdk

import (
	"context"
	"maps"
	"sync"

	"github.com/pontoon-bridge/pontoon/sdk/internal/crew"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// lanes serves the host's frames: those of one conversation in order and one at
// a time, different conversations at once. A conversation has a goroutine only
// while it has frames.
type lanes struct {
	crew  *crew.Crew
	serve func(context.Context, job)
	slots chan struct{} // one token per frame that waits or is being served

	mu      sync.Mutex
	waiting map[string][]job // by conversation; a key = its goroutine runs
	void    map[string]*link // conversations that were cut, see cut
	idle    chan struct{}    // closed while waiting is empty
}

func newLanes(bound int, serve func(context.Context, job)) *lanes {
	s := &lanes{
		crew: crew.New(), serve: serve, slots: make(chan struct{}, bound), waiting: map[string][]job{}, void: map[string]*link{}, idle: make(chan struct{}),
	}
	close(s.idle)
	return s
}

// job is one frame for the adapter.
type job struct {
	*wire.Outbound
	acked bool  // the host waits for what becomes of it
	link  *link // that it came on
}

// put queues the frame; at the bound it waits for room until ctx ends, or drops
// what may be left out. ctx is
// also what the frame is served with. False: it came behind one that was refused
// for now, and will come again.
func (s *lanes) put(ctx context.Context, out job) (taken bool, err error) {
	if s.overtakes(out) {
		return true, nil
	}
	select {
	case s.slots <- struct{}{}:
	default:
		if out.Type == wire.TypeStream || out.Type == wire.TypeStartTyping {
			return true, nil // what may be left out holds nobody up
		}
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return true, context.Cause(ctx)
		}
	}
	id := out.ConversationID
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.acked && s.void[id] == out.link && !out.Resumed {
		<-s.slots
		return false, nil
	}
	if out.acked {
		delete(s.void, id)
	}
	if len(s.waiting) == 0 {
		s.idle = make(chan struct{})
	}
	queue, running := s.waiting[id]
	s.waiting[id] = append(queue, out)
	if !running {
		s.crew.Go(func() { s.work(ctx, id) })
	}
	return true, nil
}

// cut drops the frames of a conversation that wait, and those that the link still
// brings until one says that the conversation goes on: they follow one that the host is
// about to be told to send again, which sends them again too. It returns what it
// dropped.
func (s *lanes) cut(id string, l *link) (dropped []job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.void[id] = l
	queue, running := s.waiting[id]
	if !running {
		return nil
	}
	var kept []job
	for _, out := range queue {
		if out.acked {
			dropped = append(dropped, out)
			<-s.slots
		} else {
			kept = append(kept, out)
		}
	}
	s.waiting[id] = kept
	return dropped
}

// on forgets what was cut on links before this one.
func (s *lanes) on(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.void, func(_ string, other *link) bool { return other != l })
}

// overtakes puts a draft in the place of the one before it, if that still waits.
func (s *lanes) overtakes(out job) bool {
	if out.Type != wire.TypeStream {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.waiting[out.ConversationID]
	if len(queue) == 0 {
		return false
	}
	last := &queue[len(queue)-1]
	if last.Type != wire.TypeStream || last.MessageID != out.MessageID {
		return false
	}
	*last = out
	return true
}

func (s *lanes) work(ctx context.Context, id string) {
	for out, ok := s.next(id); ok; out, ok = s.next(id) {
		s.serve(ctx, out)
		<-s.slots
	}
}

// next takes the conversation's oldest frame; false = none, and its goroutine must end.
func (s *lanes) next(id string) (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.waiting[id]
	if len(queue) == 0 {
		delete(s.waiting, id)
		if len(s.waiting) == 0 {
			close(s.idle)
		}
		return job{}, false
	}
	s.waiting[id] = queue[1:]
	return queue[0], true
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
