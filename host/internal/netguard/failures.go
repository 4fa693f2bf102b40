package netguard

import (
	"hash/maphash"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

const (
	maxAddresses = 65_536 // that are remembered: some 10 MiB
	maxTrusted   = 1_000  // that somebody was let in from
	remembered   = 8      // wrong credentials of an address
)

// Failures counts failed authentications by address, and says when no credential
// of an address is looked at any more for a while. Only failures count: whoever
// shows a good credential pays nothing, and shares the address with whoever
// guesses only in that they wait together once the guesses are used up.
// The same wrong credential again is no guess and counts once. All methods may
// be called by anybody at once; nil counts nothing.
type Failures struct {
	now  func() time.Time
	seed maphash.Seed // so that nothing is kept that a credential could be found by

	mu      sync.Mutex // guards what follows
	known   map[source]*record
	trusted map[netip.Addr]time.Time // whence somebody was let in by a password, and when
	all     [doors]level
}

var _ auth.Limiter = (*Failures)(nil)

// source is who guesses at what.
type source struct {
	addr netip.Addr // see party
	door Door
}

// record is what is remembered of a source.
type record struct {
	level
	wrong [remembered]uint64 // hashes of the latest wrong credentials
	next  int                // of wrong
}

// TooManyFailures is what a client is told by HTTP, with 429 and Retry-After.
const TooManyFailures = "too many failed authentications from this address: try again later"

// Seconds is a wait as Retry-After has it.
func Seconds(wait time.Duration) string {
	return strconv.Itoa(int((wait + time.Second - 1) / time.Second))
}

// NewFailures makes a table. now nil = time.Now.
func NewFailures(now func() time.Time) *Failures {
	if now == nil {
		now = time.Now
	}
	return &Failures{now: now, seed: maphash.MakeSeed(), known: map[source]*record{}, trusted: map[netip.Addr]time.Time{}}
}

// Allow says whether a credential from an address (a RemoteAddr) may be looked at:
// 0 = yes, else how long the client must wait. It must be asked first.
func (f *Failures) Allow(remote string, door Door) time.Duration {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wait(source{party(Host(remote)), door}, f.now())
}

// Failed notes that a credential opened nothing.
func (f *Failures) Failed(remote string, door Door, credential string) {
	if f == nil {
		return
	}
	hash := maphash.String(f.seed, credential) | 1 // 0 = none
	f.mu.Lock()
	defer f.mu.Unlock()
	now, s := f.now(), source{party(Host(remote)), door}
	r := f.record(s, now)
	if slices.Contains(r.wrong[:], hash) {
		return
	}
	r.wrong[r.next] = hash
	r.next = (r.next + 1) % remembered
	r.add(now, f.toll(s, now))
	f.all[door].add(now, rules[door].all)
}

// Attempt implements auth.Limiter: it is Allow and Failed in one, for passwords,
// which take long to check. A try counts as wrong until it is right, so that many
// at once are not all free, and counts also if it is the same again, since it costs
// the same. An address that somebody was let in from does not wait for what others
// guess.
func (f *Failures) Attempt(remote string) (done func(right bool), wait time.Duration) {
	if f == nil {
		return func(bool) {}, 0
	}
	s := source{party(Host(remote)), Passwords}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if wait := f.wait(s, now); wait > 0 {
		return nil, wait
	}
	f.record(s, now).add(now, f.toll(s, now))
	if _, trusted := f.trusted[s.addr]; !trusted {
		f.all[s.door].add(now, rules[s.door].all)
	}
	return func(right bool) {
		if right {
			f.letIn(s)
		}
	}, 0
}

// letIn forgets what was wrong before a password was right.
func (f *Failures) letIn(s source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, s)
	if _, trusted := f.trusted[s.addr]; !trusted {
		f.all[s.door] = level{}
	}
	if f.trusted[s.addr] = f.now(); len(f.trusted) <= maxTrusted {
		return
	}
	oldest := s.addr
	for a, at := range f.trusted {
		if at.Before(f.trusted[oldest]) {
			oldest = a
		}
	}
	delete(f.trusted, oldest)
}

// wait is how long a source must. mu must be held.
func (f *Failures) wait(s source, now time.Time) (wait time.Duration) {
	if r := f.known[s]; r != nil {
		wait = r.wait(now, f.toll(s, now))
	}
	if _, trusted := f.trusted[s.addr]; !trusted && rules[s.door].alarm == 0 {
		wait = max(wait, f.all[s.door].wait(now, rules[s.door].all))
	}
	return wait
}

// toll is that of a source as things are. mu must be held.
func (f *Failures) toll(s source, now time.Time) toll {
	r := &rules[s.door]
	p, all := r.each, &f.all[s.door]
	if s.addr.IsLoopback() {
		p.free *= r.local
		return p
	}
	if all.fall(now, r.all); r.alarm > 0 && all.n >= r.all.free {
		p.free = r.alarm
	}
	return p
}

// record finds or makes that of a source. mu must be held.
func (f *Failures) record(s source, now time.Time) *record {
	r := f.known[s]
	if r == nil {
		f.makeRoom(now)
		r = &record{level: level{at: now}}
		f.known[s] = r
	}
	return r
}

// makeRoom forgets the most innocent of a few when the table is full. mu must be
// held.
func (f *Failures) makeRoom(now time.Time) {
	if len(f.known) < maxAddresses {
		return
	}
	const few = 16
	var least source
	best, seen := math.Inf(1), 0
	for s, r := range f.known { // in no order that anybody could foresee
		p := rules[s.door].each
		r.fall(now, p)
		if used := r.n / p.free; used < best {
			least, best = s, used
		}
		if seen++; seen == few {
			break
		}
	}
	delete(f.known, least)
}

// Len is how many sources are remembered.
func (f *Failures) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.known)
}
