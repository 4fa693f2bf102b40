package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// crewKills is how often a host is killed under the same keepers, before they
// are let settle everything and are compared with history.
const crewKills = 5

// settleTimeout is how long the keepers of a crew may take for that.
const settleTimeout = time.Minute

// AckReport is what adapters that acknowledge, and outlive a host that is
// killed, have found.
type AckReport struct {
	Machine
	Rounds       int    `json:"rounds"`
	Kills        int    `json:"kills"` // also those during a start
	Asked        int    `json:"asked"`
	Acknowledged int    `json:"acknowledged"`
	Answered     int    `json:"answered"`
	Recovery     Spread `json:"recovery_seconds"` // from the start of the next host until every adapter was let in
	keeperFaults
	Integrity string `json:"integrity_check"`
}

// OK reports whether the host kept its word, and was asked to.
func (r *AckReport) OK() bool { return r.clean() && r.Answered > 0 && r.Integrity == integrityOK }

func (r *AckReport) clean() bool { return r.faults() == 0 }

// faults is how often something happened that must not.
func (f *keeperFaults) faults() int {
	return f.Lost + f.Duplicated + f.Overtaken + f.Disordered + f.Foreign + f.Cursor + f.Unsettled + f.Refused
}

func (f *keeperFaults) add(o keeperFaults) {
	for _, n := range []struct {
		to *int
		by int
	}{
		{&f.Lost, o.Lost}, {&f.Duplicated, o.Duplicated}, {&f.Overtaken, o.Overtaken}, {&f.Disordered, o.Disordered}, {&f.Foreign, o.Foreign},
		{&f.Cursor, o.Cursor}, {&f.Unsettled, o.Unsettled}, {&f.Refused, o.Refused}, {&f.Dropped, o.Dropped}, {&f.Again, o.Again}, {&f.Repeated, o.Repeated},
	} {
		*n.to += n.by
	}
	if f.Refusal == "" {
		f.Refusal = o.Refusal
	}
}

// crew is the keepers of one generation.
type crew struct {
	keepers []*keeper
	wg      sync.WaitGroup
	in      atomic.Int32  // keepers that were let in since run
	all     chan struct{} // closed when that is all of them
	killed  atomic.Bool   // their connections may end now
	mu      sync.Mutex    // guards err
	err     error         // the first thing that should not have happened
}

// KillAcks is Kill with adapters that acknowledge. They outlive the host: after
// each kill they come back, ask again what was not acknowledged, and get again
// what they had not acknowledged.
func KillAcks(ctx context.Context, c KillConfig) (r AckReport, err error) {
	if err := c.defaults(); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-kill-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	r.Machine = DescribeMachine(dir)
	defer func() {
		if err != nil || r.OK() {
			_ = os.RemoveAll(dir)
		}
	}()
	t := &ackTorture{torture: torture{KillConfig: c, dir: dir}}
	for n := 0; r.Rounds < c.Rounds && r.clean(); n++ {
		if err := t.generation(ctx, n, min(crewKills, c.Rounds-r.Rounds), &r); err != nil {
			return r, fmt.Errorf("round %d: %w", r.Rounds+1, err)
		}
	}
	r.Kills, r.Recovery = t.kills, SpreadOf(t.recoveries)
	var file KillReport
	err = file.checkFile(ctx, dir, "rw")
	r.Integrity = file.Integrity
	return r, err
}

// ackTorture is one data directory that is killed again and again.
type ackTorture struct {
	torture
	recoveries []float64
}

// generation kills the host a few times under the same keepers, lets them
// settle everything, and compares.
func (t *ackTorture) generation(ctx context.Context, n, kills int, r *AckReport) error {
	host, err := startHost(ctx, t.Exe, t.dir)
	if err != nil {
		return err
	}
	defer func() { host.kill() }()
	prefix := fmt.Sprintf("acks-%04d", n)
	tokens, err := provisionAs(ctx, host, prefix, t.Conns, map[string]any{"agent": "echo", "queue": true})
	if err != nil {
		return err
	}
	crew := &crew{}
	for i, token := range tokens {
		crew.keepers = append(crew.keepers, newKeeper(channelName(prefix, i), token, t.scenario()))
	}
	began := time.Now()
	for range kills {
		if err := crew.run(ctx, host); err != nil {
			return err
		}
		t.recovered(r, began)
		wait(ctx, nil, killEarliest+rand.N(killLatest-killEarliest))
		crew.killed.Store(true)
		host.kill()
		t.kills++
		r.Rounds++
		if crew.wg.Wait(); crew.err != nil || ctx.Err() != nil {
			return errors.Join(crew.err, ctx.Err())
		}
		t.Progress.say(fmt.Sprintf("round %d of %d: %d answered", r.Rounds, t.Rounds, crew.shown()))
		if rand.N(2) == 0 {
			if err := t.killStart(); err != nil {
				return err
			}
		}
		began = time.Now()
		if host, err = startHost(ctx, t.Exe, t.dir); err != nil {
			return err
		}
	}
	for _, k := range crew.keepers {
		k.more.Store(false)
	}
	if err := crew.run(ctx, host); err != nil {
		return err
	}
	t.recovered(r, began)
	if err := crew.settle(ctx); err != nil {
		return err
	}
	err = crew.judge(ctx, host, r)
	host.stop()
	return err
}

// recovered notes how long the keepers waited for a host that came back.
func (t *ackTorture) recovered(r *AckReport, began time.Time) {
	if r.Rounds > 0 {
		t.recoveries = append(t.recoveries, time.Since(began).Seconds())
	}
}

// run connects the keepers, and returns when all are let in.
func (c *crew) run(ctx context.Context, host *child) error {
	api, err := host.rest()
	if err != nil {
		return err
	}
	defer api.close()
	c.in.Store(0)
	c.killed.Store(false)
	c.all = make(chan struct{})
	url := host.bridge()
	for _, k := range c.keepers {
		stored, err := k.stored(ctx, api)
		if err != nil {
			return err
		}
		c.wg.Go(func() {
			if err := k.live(ctx, url, stored, c.letIn); err != nil && !c.killed.Load() {
				c.fail(fmt.Errorf("%s: %w", k.channel, err))
			}
		})
	}
	select {
	case <-c.all:
		return nil
	case <-time.After(settleTimeout):
		return errors.Join(errNotSettled, c.failed())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *crew) letIn() {
	if int(c.in.Add(1)) == len(c.keepers) {
		close(c.all)
	}
}

func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *crew) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// settle waits for keepers that have nothing more to ask.
func (c *crew) settle(ctx context.Context) error {
	done := make(chan struct{})
	go func() { // awaited below
		c.wg.Wait()
		close(done)
	}()
	wait(ctx, done, settleTimeout)
	select {
	case <-done:
		return c.failed()
	default:
	}
	c.killed.Store(true)
	for _, k := range c.keepers {
		k.cut()
	}
	<-done
	return errors.Join(errNotSettled, ctx.Err())
}

func (c *crew) shown() (n int) {
	for _, k := range c.keepers {
		n += k.shown
	}
	return n
}

// judge adds what the keepers found, and what history has.
func (c *crew) judge(ctx context.Context, host *child, r *AckReport) error {
	api, err := host.rest()
	if err != nil {
		return err
	}
	defer api.close()
	for _, k := range c.keepers {
		var log history
		// The last acknowledgement is read, but maybe not committed yet.
		for end := time.Now().Add(settleTimeout); ; {
			log = log[:0]
			if err := api.history(ctx, k.channel, func(e entry) { log = append(log, e) }); err != nil {
				return err
			}
			if delivered(log) || time.Now().After(end) {
				break
			}
		}
		k.judge(log)
		r.Asked += len(k.asked)
		r.Acknowledged += k.taken
		r.Answered += k.shown
		r.add(k.keeperFaults)
	}
	return nil
}

// delivered reports whether nothing of a channel is on its way.
func delivered(log history) bool {
	for _, e := range log {
		if e.Direction == "out" && e.State != "delivered" {
			return false
		}
	}
	return true
}

// stored is the newest question that the host has on its disk; -1 = none.
func (k *keeper) stored(ctx context.Context, api *rest) (int, error) {
	e, ok, err := api.newest(ctx, k.channel)
	if err != nil || !ok {
		return -1, err
	}
	var seq int
	if err := json.Unmarshal(e.ReplyCtx, &seq); err != nil {
		return 0, fmt.Errorf("newest message of %s: reply_ctx is %s", k.channel, e.ReplyCtx)
	}
	return seq, nil
}

// Print writes the report for people.
func (r *AckReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d rounds, %d kills, adapters that acknowledge\n\n", r.Machine, r.Rounds, r.Kills)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, line := range []struct {
		name string
		n    int
	}{
		{"asked", r.Asked}, {"acknowledged by the host", r.Acknowledged}, {"answered", r.Answered},
		{"asked again though stored, and dropped", r.Dropped}, {"answers not acknowledged, that came again", r.Again}, {"answers acknowledged just before a kill, that came again", r.Repeated},
		{"lost", r.Lost}, {"duplicated", r.Duplicated}, {"repeated after a later one", r.Overtaken}, {"out of order", r.Disordered},
		{"wrong cursor", r.Cursor}, {"not delivered in the end", r.Unsettled}, {"refused", r.Refused}, {"never asked, or other content", r.Foreign},
	} {
		fmt.Fprintf(tab, "%s\t%s\n", line.name, Number(float64(line.n), 0))
	}
	fmt.Fprintf(tab, "all adapters back after, s\t%s\nintegrity_check\t%s\n", r.Recovery.Show(2), r.Integrity)
	if r.Refusal != "" {
		fmt.Fprintf(tab, "first refusal\t%s\n", r.Refusal)
	}
	if !r.OK() {
		fmt.Fprintf(tab, "\nNOT OK: the data is kept in %s\n", r.Data)
	}
	return tab.Flush()
}
