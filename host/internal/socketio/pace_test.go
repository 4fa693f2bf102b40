package socketio

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// packets counts what it is told of.
type packets struct{ n atomic.Int32 }

func (p *packets) Took(since time.Time) {
	if time.Since(since) >= 0 {
		p.n.Add(1)
	}
}

// A client with a pace of its own may send more packets than others, all of which its
// pace is told of, until its socket has gone.
func TestPace(t *testing.T) {
	s := start(t, Options{Rate: 1, Burst: 3})
	p := new(packets)
	s.ns.mu.Lock()
	s.ns.pace = p
	s.ns.mu.Unlock()
	c := s.dial("")
	c.join()
	const times = 100 // would take longer than the test may
	for i := range times {
		c.send("3")
		c.send(fmt.Sprintf(`42/echo,["n%d"]`, i))
	}
	for i := range times {
		c.expect(fmt.Sprintf(`42/echo,["n%d",[]]`, i))
	}
	eventually(t, "each packet is told of", func() bool { return p.n.Load() == 2*times })
	c.send(`42/echo,["leave"]`)
	c.expect("41/echo,")
	eventually(t, "packets are counted again", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.pace == nil
		}
		return false
	})
}
