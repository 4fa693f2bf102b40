package bridle

import (
	"sync"

	"golang.org/x/time/rate"
)

// How many messages one user may send by HTTP.
const (
	postRate  = 10 // a second …
	postBurst = 50 // … and at once
	maxPosts  = 4096
)

// posts counts what users send by HTTP: each of those who sent latest.
type posts struct {
	mu    sync.Mutex // guards what follows
	of    map[string]*rate.Limiter
	order []string // oldest first
}

// allow counts a message; false if there were too many.
func (p *posts) allow(client string) bool {
	p.mu.Lock()
	l := p.of[client]
	if l == nil {
		if p.of == nil {
			p.of = map[string]*rate.Limiter{}
		}
		if len(p.order) >= maxPosts {
			delete(p.of, p.order[0])
			p.order = p.order[1:]
		}
		l = rate.NewLimiter(postRate, postBurst)
		p.of[client], p.order = l, append(p.order, client)
	}
	p.mu.Unlock()
	return l.Allow()
}
