package api

import "sync"

// maxReaders bounds the event streams of one key, or of the operator.
const maxReaders = 128

// readers counts event streams by who reads them.
type readers struct {
	mu sync.Mutex // guards what follows
	of map[string]int
}

// enter counts a stream; false if its reader has too many. leave must be called for one
// that was counted.
func (r *readers) enter(who string) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[who] >= maxReaders {
		return nil, false
	}
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[who]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.of[who]--; r.of[who] == 0 {
			delete(r.of, who)
		}
	}, true
}
