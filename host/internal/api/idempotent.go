package api

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

const (
	// onceFor is how long a request is known by its Idempotency-Key.
	onceFor = 10 * time.Minute
	// maxOnce bounds how many are; the oldest are forgotten first.
	maxOnce = 10_000
)

// onceKey names a request: who made it, and what they call it.
type onceKey struct {
	holder  string
	channel string
	key     string
}

// attempt is a request that was made, or is being made.
type attempt struct {
	body [sha256.Size]byte
	at   time.Time
	done chan struct{} // closed when the answer is there
	out  *body[sentBody]
	err  error // then it may be tried again
}

// once makes a message of requests that come more than once, as browsers and
// clients without an answer send them. What it knows does not outlive the process.
type once struct {
	mu    sync.Mutex // guards what follows
	known map[onceKey]*attempt
	order []onceKey // oldest first
}

// do calls send, or answers what it answered to the same request before. One
// without a key is never the same.
func (o *once) do(ctx context.Context, now time.Time, k onceKey, request any, send func() (*body[sentBody], error)) (*body[sentBody], error) {
	if k.key == "" {
		return send()
	}
	sum := sha256.Sum256(mustJSON(request))
	h, _ := auth.HolderOf(ctx)
	k.holder = h.Ref()
	a, first := o.begin(now, k, sum)
	if a.body != sum {
		return nil, field(http.StatusUnprocessableEntity, "header.Idempotency-Key", "was used for another message: use another key", clip(k.key))
	}
	if first {
		a.err = huma.Error500InternalServerError("internal error") // if send panics
		defer func() {
			if a.err != nil {
				o.forget(k, a)
			}
			close(a.done)
		}()
		a.out, a.err = send()
		return a.out, a.err
	}
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done():
		return nil, huma.Error503ServiceUnavailable("gave up before it was done")
	}
}

// begin finds the attempt of this name, or makes it: first says that it is ours to make.
func (o *once) begin(now time.Time, k onceKey, sum [sha256.Size]byte) (a *attempt, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.order) > 0 {
		oldest := o.known[o.order[0]]
		if oldest != nil && len(o.order) < maxOnce && now.Sub(oldest.at) < onceFor {
			break
		}
		delete(o.known, o.order[0])
		o.order = o.order[1:]
	}
	if a, ok := o.known[k]; ok {
		return a, false
	}
	if o.known == nil {
		o.known = map[onceKey]*attempt{}
	}
	a = &attempt{body: sum, at: now, done: make(chan struct{})}
	o.known[k] = a
	o.order = append(o.order, k)
	return a, true
}

// forget lets a request that failed be made again.
func (o *once) forget(k onceKey, a *attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[k] == a {
		delete(o.known, k)
	}
}
