package attach

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// What one owner, or one key, may upload unless Options say otherwise.
const (
	DefaultBurst   = 512 << 20 // bytes at once …
	DefaultPerHour = 1 << 30   // … and as many more an hour

	maxPromised = 100    // uploads of an owner that are reserved and not made
	maxPayers   = 10_000 // owners and keys that are told apart
)

// allowance counts what owners and keys upload: a token bucket each. What an upload may
// become is taken before it is read, and what it is not is given back.
type allowance struct {
	now           func() time.Time
	burst, anHour float64

	mu       sync.Mutex // guards what follows
	of       map[string]*payer
	promised map[string]map[place]time.Time // uploads that are reserved, by their owner: until when
}

// payer is who uploads: how many bytes it may, at a time.
type payer struct {
	left float64
	at   time.Time
}

func newAllowance(now func() time.Time, burst, anHour int64) *allowance {
	return &allowance{now: now, burst: float64(burst), anHour: float64(anHour), of: map[string]*payer{}, promised: map[string]map[place]time.Time{}}
}

// later is ErrTooMany, and how long it lasts.
type later struct {
	error
	wait time.Duration
}

func (l later) Unwrap() error { return l.error }

func tooMany(found string, seconds float64) error {
	wait := time.Duration(math.Ceil(seconds)) * time.Second
	return later{fmt.Errorf("%w: %s, or try again in %d s", ErrTooMany, found, wait/time.Second), wait}
}

// RetryAfter is how long an error of ErrTooMany lasts; 0 = it is none.
func RetryAfter(err error) time.Duration {
	var l later
	if errors.As(err, &l) {
		return l.wait
	}
	return 0
}

// take takes so many bytes of all who pay, or of none; ErrTooMany says when there are
// enough. giveBack returns what was not needed.
func (a *allowance) take(bytes int64, who ...string) (giveBack func(bytes int64), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	need := min(float64(bytes), a.burst) // one file always fits
	for _, name := range who {
		if name == "" {
			continue
		}
		if left := a.find(name).left; left < need {
			return nil, tooMany(fmt.Sprintf("found more than the %d MiB at once and %d MiB an hour that one channel or key may upload",
				int64(a.burst)>>20, int64(a.anHour)>>20), (need-left)/a.anHour*3600)
		}
	}
	a.add(-need, who)
	return func(bytes int64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.add(min(float64(bytes), need), who)
	}, nil
}

func (a *allowance) add(bytes float64, who []string) {
	for _, name := range who {
		if name != "" {
			p := a.find(name)
			p.left = min(a.burst, p.left+bytes)
		}
	}
}

// find brings a payer to what it may upload now.
func (a *allowance) find(name string) *payer {
	now, p := a.now(), a.of[name]
	if p == nil {
		if len(a.of) >= maxPayers {
			a.forget(now)
		}
		p = &payer{left: a.burst, at: now}
		a.of[name] = p
	}
	p.left = min(a.burst, p.left+now.Sub(p.at).Hours()*a.anHour)
	p.at = now
	return p
}

// forget drops the payers who may upload all again.
func (a *allowance) forget(now time.Time) {
	for name, p := range a.of {
		if p.left+now.Sub(p.at).Hours()*a.anHour >= a.burst {
			delete(a.of, name)
		}
	}
}

// promise notes an upload that is reserved until a time; ErrTooMany if the owner has too
// many, over all of its connections.
func (a *allowance) promise(p place, until time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, open := a.now(), a.promised[p.owner]
	var first time.Time
	for other, at := range open {
		if !now.Before(at) {
			delete(open, other)
		} else if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if len(open) >= maxPromised {
		return tooMany(fmt.Sprintf("found %d uploads that are reserved and not made, expected at most that: make one", len(open)), first.Sub(now).Seconds())
	}
	if open == nil {
		open = map[place]time.Time{}
		a.promised[p.owner] = open
	}
	open[p] = until
	return nil
}

// kept forgets a reserved upload: it was made, or never reserved.
func (a *allowance) kept(p place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.promised[p.owner], p); len(a.promised[p.owner]) == 0 {
		delete(a.promised, p.owner)
	}
}
