package netguard

import (
	"net/netip"
	"sync"
)

// Bounds of connections, unless Options say otherwise.
const (
	DefaultMaxConns      = 20_000
	DefaultMaxPerAddress = 512

	reserved = 64 // of all: for this machine alone, so that its operator gets in
	beyond   = 32 // over a bound, that are told so; what comes then is cut off
)

// crowd counts connections, or what stands for them, by address.
type crowd struct {
	most, each int

	mu  sync.Mutex // guards what follows
	all int
	of  map[netip.Addr]int // see party; who has none is not in it
}

// verdict is what becomes of a newcomer.
type verdict uint8

const (
	welcome verdict = iota
	tooMany         // of its address
	full            // the host
	cut             // so many that it is not even told
)

func newCrowd(most, each int) *crowd {
	return &crowd{most: most, each: each, of: map[netip.Addr]int{}}
}

// enter counts a newcomer unless the verdict is cut; leave must be called for who
// was counted. bounded: its address has a bound of its own.
func (c *crowd) enter(a netip.Addr, bounded bool) verdict {
	a = party(a)
	most := c.most
	if !a.IsLoopback() {
		most -= min(reserved, most/2)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := welcome
	switch n := c.of[a]; {
	case c.all >= most+beyond, bounded && n >= c.each+beyond:
		return cut
	case c.all >= most:
		v = full
	case bounded && n >= c.each:
		v = tooMany
	}
	c.all++
	c.of[a]++
	return v
}

func (c *crowd) leave(a netip.Addr) {
	a = party(a)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[a]--; c.of[a] == 0 {
		delete(c.of, a)
	}
}

// len is how many there are.
func (c *crowd) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}
