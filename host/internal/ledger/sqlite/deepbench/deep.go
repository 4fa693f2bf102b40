// Command deepbench measures what a message costs the store when many are stored
// already. It is the one measurement that runs no host, so that it stands beside the
// store. `make bench` builds bin/deepbench.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/tools/bench"
)

// Bounds and shape of a deep run.
const (
	maxStored    = 200_000_000
	maxPairs     = 10_000_000
	maxRounds    = 1000
	shallow      = 1000 // messages in the database that the deep one is compared with
	deepInFlight = 800
	deepPages    = 200 // of history that are read
	pageSize     = 50
)

// Platform ids that messages may carry.
const (
	IDsNone    = "none"    // as from an adapter that gives none
	IDsOrdered = "ordered" // ascending, as a platform that counts
	IDsRandom  = "random"  // as a platform that hashes
)

// DeepConfig is what Deep runs.
type DeepConfig struct {
	Dir           string // where the data directories are made; "" = the system's
	Stored        int    // messages in the deep database
	Conversations int
	IDs           string
	Pairs         int // questions, each with its answer, of one measurement; 10,000 or more see a checkpoint
	Rounds        int
	Progress      func(line string)
}

func (c *DeepConfig) validate() error {
	for _, v := range []struct {
		what             string
		found, low, high int
	}{
		{"stored", c.Stored, shallow, maxStored},
		{"conversations", c.Conversations, 1, 100_000},
		{"pairs", c.Pairs, 1, maxPairs},
		{"rounds", c.Rounds, 1, maxRounds},
	} {
		if v.found < v.low || v.found > v.high {
			return fmt.Errorf("%s: found %d, expected %d to %d", v.what, v.found, v.low, v.high)
		}
	}
	if all := []string{IDsNone, IDsOrdered, IDsRandom}; !slices.Contains(all, c.IDs) {
		return fmt.Errorf("ids: found %q, expected one of %s", c.IDs, strings.Join(all, ", "))
	}
	return nil
}

// Depth is what a database of one size costs. Times are in microseconds.
type Depth struct {
	Stored  int          `json:"stored"` // messages before the first measurement
	Message bench.Spread `json:"message_us"`
	CPU     float64      `json:"cpu_us"`      // of one message, over all rounds; 0 where it can't be told
	Page    float64      `json:"page_p50_us"` // the newest 50 messages of a conversation
}

// DeepReport is what Deep measured.
type DeepReport struct {
	bench.Machine
	Conversations int          `json:"conversations"`
	IDs           string       `json:"platform_ids"`
	Pairs         int          `json:"pairs"`
	Rounds        int          `json:"rounds"`
	Fill          float64      `json:"fill_seconds"`
	Bytes         int64        `json:"database_bytes"` // of the deep one, when it was filled
	Shallow       Depth        `json:"shallow"`
	Deep          Depth        `json:"deep"`
	Ratio         bench.Spread `json:"ratio"`     // of a message's time, deep to shallow of the same round
	CPURatio      float64      `json:"cpu_ratio"` // of its processor time, over all rounds
	Goals         []bench.Goal `json:"goals"`
}

// mostRatio is the limit of Ratio, by platform ids: random ones land anywhere in their
// index, so that they may cost a little more.
var mostRatio = map[string]float64{IDsNone: 1.15, IDsOrdered: 1.15, IDsRandom: 1.2}

// Deep measures what the store costs a message when many are stored already,
// beside a new database, in turns. Who begins changes with the round.
func Deep(ctx context.Context, c DeepConfig) (r DeepReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-bench-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r = DeepReport{
		Machine: bench.DescribeMachine(dir), Conversations: c.Conversations, IDs: c.IDs, Pairs: c.Pairs, Rounds: c.Rounds,
		Shallow: Depth{Stored: shallow}, Deep: Depth{Stored: c.Stored},
	}
	c.Progress(fmt.Sprintf("storing %d messages", c.Stored))
	began := time.Now()
	deep, err := openDepth(ctx, c, filepath.Join(dir, "deep"), c.Stored)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, deep.store.Close()) }()
	r.Fill = time.Since(began).Seconds()
	if info, err := os.Stat(filepath.Join(dir, "deep", sqlite.File)); err == nil {
		r.Bytes = info.Size()
	}
	return r, r.run(ctx, c, dir, deep)
}

func (r *DeepReport) run(ctx context.Context, c DeepConfig, dir string, deep *depth) error {
	took := [2][]float64{} // shallow, deep
	var cpu [2]time.Duration
	var ratios []float64
	for round := range c.Rounds {
		c.Progress(fmt.Sprintf("round %d of %d", round+1, c.Rounds))
		small := filepath.Join(dir, "shallow")
		fresh, err := openDepth(ctx, c, small, shallow) // it must not grow deep
		if err != nil {
			return err
		}
		sides := [2]*depth{fresh, deep}
		for i := range sides {
			i = (i + round) % len(sides)
			one, used, err := sides[i].measure(ctx, c.Pairs)
			if err != nil {
				return errors.Join(err, fresh.store.Close())
			}
			took[i] = append(took[i], one)
			cpu[i] += used
		}
		ratios = append(ratios, took[1][round]/took[0][round])
		if round == c.Rounds-1 {
			r.Shallow.Page, err = fresh.page(ctx)
		}
		if err = errors.Join(err, fresh.store.Close(), os.RemoveAll(small)); err != nil {
			return err
		}
	}
	var err error
	if r.Deep.Page, err = deep.page(ctx); err != nil {
		return err
	}
	r.Shallow.Message, r.Deep.Message, r.Ratio = bench.SpreadOf(took[0]), bench.SpreadOf(took[1]), bench.SpreadOf(ratios)
	load := fmt.Sprintf("%s stored, platform ids: %s", bench.Number(float64(c.Stored), 0), c.IDs)
	r.Goals = []bench.Goal{bench.NewGoal(load, fmt.Sprintf("a message's time ÷ that at %d", shallow), true, mostRatio[c.IDs], r.Ratio)}
	messages := float64(2 * c.Pairs * c.Rounds)
	r.Shallow.CPU, r.Deep.CPU = bench.Micros(cpu[0])/messages, bench.Micros(cpu[1])/messages
	if cpu[0] > 0 {
		r.CPURatio = float64(cpu[1]) / float64(cpu[0])
	}
	return nil
}

// depth is a database with its conversations.
type depth struct {
	store *sqlite.Store
	chain *ledger.Tail
	held  []*ledger.Conversation
	ids   string
	next  int // of all pairs
	text  string
}

// openDepth makes a database and stores as many messages.
func openDepth(ctx context.Context, c DeepConfig, dir string, messages int) (d *depth, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	d = &depth{ids: c.IDs, text: strings.Repeat("x", 100)}
	if d.store, err = sqlite.Open(ctx, dir, sqlite.Options{}); err != nil {
		return nil, err
	}
	if err := d.fill(ctx, c.Conversations, messages); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	return d, nil
}

func (d *depth) fill(ctx context.Context, conversations, messages int) error {
	row, err := d.store.CreateChannel(ctx, ledger.Channel{ID: "deep", Name: "deep", Kind: "bridge", Enabled: true, Agent: "echo"},
		&ledger.NewCredential{Hash: []byte("none"), Hint: "none"}, ledger.Change{Actor: "bench", Action: "channel.create"})
	if err != nil {
		return err
	}
	if d.chain, err = d.store.Own(ctx, row.Key); err != nil {
		return err
	}
	for i := range conversations {
		held, err := d.store.Conversation(ctx, d.chain, fmt.Sprint("c", i))
		if err != nil {
			return err
		}
		d.held = append(d.held, held.Conversation)
	}
	return d.append(ctx, messages/2)
}

// append commits questions with their answers, many at once.
func (d *depth) append(ctx context.Context, pairs int) error {
	origin := packed.AppendOrigin(nil, ledger.Origin{SessionKey: "irc:#ops:alice", UserID: "alice", ReplyCtx: `"m1"`})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	window := make(chan struct{}, deepInFlight)
	for range pairs {
		if ctx.Err() != nil {
			break
		}
		window <- struct{}{}
		wg.Add(1)
		d.store.Append(&ledger.Unit{
			Conversation: d.held[d.next%len(d.held)],
			In:           &ledger.Row{State: ledger.Handled, Text: d.text, Origin: origin, PlatformID: d.platformID()},
			Out:          []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: d.text, Origin: origin}},
		}, func(r ledger.Result) {
			if r.Err != nil {
				mu.Lock()
				failed = r.Err
				mu.Unlock()
			}
			<-window
			wg.Done()
		})
		d.next++
	}
	wg.Wait()
	return errors.Join(failed, ctx.Err())
}

func (d *depth) platformID() string {
	switch d.ids {
	case IDsOrdered:
		return fmt.Sprintf("%016d", d.next)
	case IDsRandom:
		sum := sha256.Sum256(strconv.AppendInt(nil, int64(d.next), 10))
		return fmt.Sprintf("%x", sum[:16])
	}
	return ""
}

// measure is what one of that many messages takes, in microseconds, and the
// processor time of all.
func (d *depth) measure(ctx context.Context, pairs int) (each float64, cpu time.Duration, err error) {
	if err := d.append(ctx, deepInFlight); err != nil { // whoever was not in use is cold
		return 0, 0, err
	}
	runtime.GC()
	before, began := bench.OwnCPU(), time.Now()
	err = d.append(ctx, pairs)
	took := time.Since(began)
	return bench.Micros(took) / float64(2*pairs), bench.OwnCPU() - before, err
}

// page is the median of reading the newest messages of conversations.
func (d *depth) page(ctx context.Context) (float64, error) {
	var took []float64
	for i := range deepPages {
		key := d.held[i%len(d.held)].Key
		began := time.Now()
		if _, err := d.store.Before(ctx, ledger.Scope{Channel: d.chain.Channel, Conversation: &key}, 0, pageSize); err != nil {
			return 0, err
		}
		took = append(took, bench.Micros(time.Since(began)))
	}
	return bench.SpreadOf(took).Median, nil
}

// Print writes the report for people.
func (r *DeepReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d conversations, platform ids: %s; %d rounds of %d messages in turns, median (min–max)\n",
		r.Machine, r.Conversations, r.IDs, r.Rounds, 2*r.Pairs)
	fmt.Fprintf(w, "%s messages stored in %s s: %s MB\n\n", bench.Number(float64(r.Deep.Stored), 0), bench.Number(r.Fill, 1), bench.Number(float64(r.Bytes)/(1<<20), 0))
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "STORED\tµS/MESSAGE\tCPU µS/MESSAGE\tNEWEST 50, P50 µS")
	for _, d := range []*Depth{&r.Shallow, &r.Deep} {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", bench.Number(float64(d.Stored), 0), d.Message.Show(2), bench.Number(d.CPU, 2), bench.Number(d.Page, 0))
	}
	fmt.Fprintf(tab, "ratio\t%s\t%s\t\n", r.Ratio.Show(2), bench.Number(r.CPURatio, 2))
	if err := tab.Flush(); err != nil {
		return err
	}
	return bench.PrintGoals(w, r.Goals, r.Rounds)
}
