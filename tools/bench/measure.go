package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// grace is long enough for the slowest answer of a server that works: its
	// disk may be busy with what others write.
	grace = 30 * time.Second
	// warmup comes before a measurement, a quarter of it at most; but not before a
	// fixed number of messages.
	warmup = 200 * time.Millisecond
	// dialers open connections at the same time.
	dialers = 64
)

// stage tells the connections of one measurement where it is.
type stage struct {
	at       atomic.Int32
	peers    int
	began    time.Duration // open loop: when the first message is due
	interval time.Duration // open loop: between two messages of a connection; 0 = closed loop
}

const (
	stageWarm int32 = iota
	stageMeasure
	stageOver
)

func (s *stage) measuring() bool { return s.at.Load() == stageMeasure }
func (s *stage) over() bool      { return s.at.Load() == stageOver }

// span is how long a measurement takes: a time, or a number of messages within
// that time.
type span struct {
	duration time.Duration
	messages int
	grace    time.Duration // for the answers to the last messages
}

// quota is one connection's part of the messages; 0 = no end.
func (s span) quota(conn, conns int) int {
	if s.messages == 0 {
		return 0
	}
	n := s.messages / conns
	if conn < s.messages%conns {
		n++
	}
	return max(n, 1)
}

// client is one connection that puts load on a server.
type client interface {
	// run asks until the stage is over or quota were asked (0 = no quota), and
	// returns when all is answered.
	run(st *stage, quota int) error
	// until bounds how long run waits for answers. It may be called while run is at work.
	until(at time.Time)
	// seen is what was counted, and may be read when run has returned.
	seen() *tally
}

// measure puts one scenario's load on a target once. A connection that breaks
// is an error; an answer that does not come is counted.
func measure(ctx context.Context, t target, s Scenario, run int, d span) (Sample, error) {
	peers, err := connectAll(ctx, t, s, run)
	defer closePeers(peers)
	if err != nil {
		return Sample{}, err
	}
	return drive(ctx, t, peers, s.Rate, d)
}

// drive lets all clients ask for as long as d says, in an open loop if there is a rate.
func drive[C client](ctx context.Context, t target, clients []C, rate float64, d span) (Sample, error) {
	st := &stage{peers: len(clients), began: now()}
	if rate > 0 {
		st.interval = time.Duration(float64(len(clients)) / rate * float64(time.Second))
	}
	if d.messages > 0 {
		st.at.Store(stageMeasure)
	}
	before, began := usageOf(t.pid), now()
	finished, errs := runClients(clients, st, d)
	if d.messages == 0 {
		wait(ctx, finished, min(warmup, d.duration/4))
		before, began = usageOf(t.pid), now()
		st.at.Store(stageMeasure)
	}
	wait(ctx, finished, d.duration)
	after, took := usageOf(t.pid), now()-began
	ended := now()
	st.at.Store(stageOver)
	for _, c := range clients {
		c.until(time.Now().Add(d.grace))
	}
	<-finished
	if err := ctx.Err(); err != nil {
		return Sample{}, err
	}
	var timeout net.Error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			return Sample{}, fmt.Errorf("%s, connection %d, after %d answers: %w", t.name, i, clients[i].seen().answered, err)
		}
		if p := clients[i].seen(); p.refusal == "" {
			p.refusal = fmt.Sprintf("connection %d: no answer to %d messages, given up %s after the end: %v", i, p.open(), now()-ended, err)
		}
	}
	return sampleOf(talliesOf(clients), took, before, after), nil
}

// runClients starts the connections' loops; their errors may be read when
// finished is closed.
func runClients[C client](clients []C, st *stage, d span) (finished chan struct{}, errs []error) {
	errs = make([]error, len(clients))
	finished = make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range clients {
		quota := d.quota(i, len(clients))
		wg.Go(func() { errs[i] = c.run(st, quota) })
	}
	go func() { // drive waits for finished
		wg.Wait()
		close(finished)
	}()
	return finished, errs
}

func wait(ctx context.Context, finished <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-finished:
	case <-timer.C:
	}
}

// connectAll opens a scenario's connections. With an error it returns those
// that are open.
func connectAll(ctx context.Context, t target, s Scenario, run int) ([]*peer, error) {
	peers := make([]*peer, s.Conns)
	err := each(s.Conns, dialers, func(i int) (err error) {
		peers[i], err = newPeer(ctx, t, s, run, i)
		return err
	})
	if err != nil {
		open := peers[:0]
		for _, p := range peers {
			if p != nil {
				open = append(open, p)
			}
		}
		return open, err
	}
	return peers, nil
}

func closePeers(peers []*peer) {
	for _, p := range peers {
		p.close()
	}
}

// each calls fn for 0 to n-1 from some goroutines, and waits. After an error it
// begins no more.
func each(n, parallel int, fn func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, min(n, parallel))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[w] = fn(i); errs[w] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others are much the same
		}
	}
	return nil
}

// usage is processor time at one moment.
type usage struct {
	server, own time.Duration
	known       bool
}

func usageOf(pid int) usage {
	u := usage{}
	u.server, u.known = cpuTime(pid)
	u.own, _ = cpuTime(os.Getpid())
	return u
}

// talliesOf is what clients have counted.
func talliesOf[C client](clients []C) []*tally {
	all := make([]*tally, len(clients))
	for i, c := range clients {
		all[i] = c.seen()
	}
	return all
}

// sampleOf is what connections have counted within a time.
func sampleOf(tallies []*tally, took time.Duration, before, after usage) Sample {
	var h histogram
	s := Sample{}
	measured := 0
	for _, t := range tallies {
		h.merge(&t.latency)
		s.add(t.count())
		measured += t.counted
	}
	s.Throughput = float64(measured) / took.Seconds()
	s.P50, s.P90, s.P99, s.Max = Micros(h.quantile(0.5)), Micros(h.quantile(0.9)), Micros(h.quantile(0.99)), Micros(h.max)
	if measured > 0 && after.known {
		cpu := Micros(after.server-before.server) / float64(measured)
		s.ServerCPU = &cpu
	}
	if measured > 0 {
		s.OwnCPU = Micros(after.own-before.own) / float64(measured)
	}
	return s
}

func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
