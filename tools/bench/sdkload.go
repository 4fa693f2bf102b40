package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// SDKConfig is what SDK runs.
type SDKConfig struct {
	Exe           string
	Dir           string // where the host's data directory is made; "" = the system's
	Conns         int
	Conversations int // of each connection, with a message in flight each
	Acks          int // messages of a conversation that an adapter takes ahead
	Size          int // bytes of a frame
	Rounds        int
	Duration      time.Duration // of one measurement
	Progress      Progress
}

func (c *SDKConfig) scenario() Scenario {
	return Scenario{Conns: c.Conns, Window: c.Conversations, Conversations: c.Conversations, Size: c.Size, Acks: c.Acks}
}

func (c *SDKConfig) validate() error {
	if err := checkSpan(c.Rounds, c.Duration); err != nil {
		return err
	}
	s := c.scenario()
	if s.Acks < 1 {
		return errors.New("acks: found 0, expected at least 1: both speak protocol 1.1")
	}
	return s.validate()
}

// SDK measures adapters of the Go SDK beside this generator's own client, which is an
// adapter reduced to what load needs: the same load, on the same host, in turns.
func SDK(ctx context.Context, c SDKConfig) (r LoadReport, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	d, err := startDuel(ctx, c.Exe, c.Dir)
	if err != nil {
		return r, err
	}
	defer d.stop()
	s, run := c.scenario(), 0
	tokens, err := provision(ctx, d.host, "sdk", s.Conns)
	if err != nil {
		return r, err
	}
	r = LoadReport{Machine: DescribeMachine(d.dir), Rounds: c.Rounds, Seconds: c.Duration.Seconds(), Base: "OWN CLIENT"}
	one, err := inTurns(ctx, s, c.Rounds, c.Progress,
		way{"sdk", func(ctx context.Context, _ int) (Sample, error) {
			run++
			return sampleOfRole(ctx, roleSDK, sdkLoad{
				URL: d.host.url, HostPID: d.host.pid(), Tokens: tokens, Scenario: s, Run: run, Millis: int(c.Duration.Milliseconds()),
			})
		}},
		way{"own client", func(ctx context.Context, _ int) (Sample, error) {
			run++
			return measure(ctx, d.hosted(tokens...), s, run, span{c.Duration, 0, grace})
		}})
	if err != nil {
		return r, err
	}
	r.Scenarios = []ScenarioReport{one}
	r.Goals = one.judge(goal{"throughput, SDK ÷ own client", false, 0.8, func(t TargetReport) *Spread { return t.Ratio }})
	return r, nil
}

// sdkLoad is what a process is told whose adapters are the SDK's.
type sdkLoad struct {
	URL      string
	HostPID  int
	Tokens   []string
	Scenario Scenario
	Run      int
	Millis   int
}

// measure is what the process of these adapters does.
func (l *sdkLoad) measure(ctx context.Context) (Sample, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	st := &stage{}
	crew := &sdkCrew{stage: st, ended: make(chan error, len(l.Tokens))}
	crew.ready.Add(len(l.Tokens))
	all := make([]*sdkAdapter, len(l.Tokens))
	for i, token := range l.Tokens {
		frames, err := newTemplate(l.Run, i, l.Scenario)
		if err != nil {
			return Sample{}, err
		}
		all[i] = newSDKAdapter(crew, frames, l.Scenario)
		go func() { // its end is awaited below
			crew.ended <- sdk.Run(ctx, "bench", all[i], sdk.Options{URL: l.URL, Token: token, Log: slog.New(slog.DiscardHandler)})
		}()
	}
	if err := crew.await(ctx); err != nil {
		return Sample{}, err
	}
	length := time.Duration(l.Millis) * time.Millisecond
	wait(ctx, nil, min(warmup, length/4))
	before, began := usageOf(l.HostPID), now()
	st.at.Store(stageMeasure)
	wait(ctx, nil, length)
	after, took := usageOf(l.HostPID), now()-began
	st.at.Store(stageOver)
	tallies := make([]*tally, len(all))
	for i, a := range all {
		tallies[i] = a.settled(ctx)
	}
	s := sampleOf(tallies, took, before, after)
	stop()
	for range all {
		if err := <-crew.ended; err != nil {
			return s, fmt.Errorf("adapter: %w", err)
		}
	}
	return s, nil
}

// sdkCrew is the adapters of one process.
type sdkCrew struct {
	*stage
	ready sync.WaitGroup
	ended chan error // one for each that has ended
}

// await waits until all are attached; one that ends before is an error.
func (c *sdkCrew) await(ctx context.Context) error {
	all := make(chan struct{})
	go func() { // ends with the process, if one never attaches
		c.ready.Wait()
		close(all)
	}()
	select {
	case <-all:
		return nil
	case err := <-c.ended:
		return fmt.Errorf("adapter ended: %w", err)
	case <-time.After(grace):
		return errors.New("not all adapters attach")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sdkAdapter has one message in flight in each of its conversations.
type sdkAdapter struct {
	crew   *sdkCrew
	frames *template
	ahead  int             // messages of a conversation that it takes unacknowledged
	free   []chan struct{} // of a conversation: its message is answered

	mu sync.Mutex // guards what follows
	tally
	sentAt []time.Duration // of each conversation's newest
}

var (
	_ sdk.Adapter  = (*sdkAdapter)(nil)
	_ sdk.Profiler = (*sdkAdapter)(nil)
)

func newSDKAdapter(crew *sdkCrew, frames *template, s Scenario) *sdkAdapter {
	a := &sdkAdapter{crew: crew, frames: frames, ahead: s.Acks, free: make([]chan struct{}, s.Conversations), sentAt: make([]time.Duration, s.Conversations)}
	a.last = make([]int, s.Conversations)
	for i := range a.free {
		a.free[i] = make(chan struct{}, 1)
	}
	return a
}

// Profile implements sdk.Profiler.
func (a *sdkAdapter) Profile() sdk.Profile {
	return sdk.Profile{Profile: wire.Profile{InFlight: a.ahead}}
}

// Run implements sdk.Adapter: conversations go on beside one another, as those of a
// platform do.
func (a *sdkAdapter) Run(ctx context.Context, h *sdk.Host) error {
	a.crew.ready.Done()
	errs := make(chan error, len(a.free))
	for c := range a.free {
		go func() { errs <- a.talk(ctx, h, c) }()
	}
	var failed error
	for range a.free {
		if err := <-errs; err != nil && ctx.Err() == nil {
			failed = sdk.Refused(err) // once more would count some messages twice
		}
	}
	<-ctx.Done()
	return failed
}

func (a *sdkAdapter) talk(ctx context.Context, h *sdk.Host, conversation int) error {
	key := fmt.Sprintf("bench:b%0*d-%0*d", connDigits, a.frames.conn, convDigits, conversation)
	for seq := conversation; !a.crew.over(); seq += len(a.free) {
		a.mu.Lock()
		a.sentAt[conversation] = now()
		a.sent++
		a.mu.Unlock()
		if err := h.Deliver(ctx, sdk.Event{SessionKey: key, ConversationID: key, UserID: "user-1", UserName: "Bench", Text: a.frames.textOf(seq), ReplyCtx: strconv.Itoa(seq)}); err != nil {
			return fmt.Errorf("deliver: %w", err)
		}
		select {
		case <-a.free[conversation]:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// Send implements sdk.Adapter: an answer has come.
func (a *sdkAdapter) Send(_ context.Context, to sdk.Target, _ string) (sdk.Receipt, error) {
	seq, err := strconv.Atoi(strings.Trim(string(to.ReplyCtx), `"`))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || seq < 0 {
		a.stray++
		return sdk.Receipt{}, nil
	}
	if !a.note(seq) {
		return sdk.Receipt{}, nil
	}
	c := seq % len(a.free)
	if a.crew.measuring() {
		a.counted++
		a.latency.add(now() - a.sentAt[c])
	}
	a.free[c] <- struct{}{} // has room: each message frees its conversation once
	return sdk.Receipt{}, nil
}

// settled waits for the last answers, and is what was counted then.
func (a *sdkAdapter) settled(ctx context.Context) *tally {
	for end := time.Now().Add(grace); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		open := a.open()
		a.mu.Unlock()
		if open == 0 {
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tally
	return &t
}
