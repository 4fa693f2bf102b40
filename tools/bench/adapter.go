package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// adapter is a load generator that is an adapter of the SDK like any other, so
// that the same load can come by WebSocket and from a plugin. It measures once
// and writes what it found to a file.
type adapter struct {
	adapterConfig
	free chan int // sequence numbers' slots that are answered

	mu       sync.Mutex // guards what follows
	began    time.Duration
	sent     map[int]time.Duration
	measured bool
	latency  histogram
	count    Count
	counted  int
}

// adapterConfig is what the adapter is told.
type adapterConfig struct {
	Window  int    `json:"window"`
	Millis  int    `json:"millis"`
	Size    int    `json:"size"`
	Report  string `json:"report"` // file for the Sample
	HostPID int    `json:"host_pid"`
}

var _ sdk.Adapter = (*adapter)(nil)

// adapterGrace is how long the last answers may take.
const adapterGrace = 5 * time.Second

// Run implements sdk.Adapter.
func (a *adapter) Run(ctx context.Context, h *sdk.Host) error {
	if err := h.Config(&a.adapterConfig); err != nil {
		return sdk.Refused(err)
	}
	a.free = make(chan int, a.Window)
	a.sent = map[int]time.Duration{}
	for i := range a.Window {
		a.free <- i
	}
	text := strings.Repeat("x", max(a.Size, 1))
	load, stop := context.WithTimeout(ctx, warmup+time.Duration(a.Millis)*time.Millisecond)
	defer stop()
	mark := time.AfterFunc(warmup, a.begin)
	defer mark.Stop()
	var before usage
	for seq := 0; ; seq++ {
		select {
		case <-load.Done():
			return a.finish(ctx, before)
		case slot := <-a.free:
			if before == (usage{}) && a.measuring() {
				before = usageOf(a.HostPID)
			}
			a.note(seq)
			id := strconv.Itoa(seq)
			if err := h.Deliver(ctx, sdk.Event{
				SessionKey: "bench:" + strconv.Itoa(slot), UserID: "u", Text: text, ReplyCtx: id + "/" + strconv.Itoa(slot),
			}); err != nil {
				return err
			}
		}
	}
}

func (a *adapter) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured, a.began = true, now()
}

func (a *adapter) measuring() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.measured
}

func (a *adapter) note(seq int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[seq] = now()
	a.count.Sent++
}

// Send implements sdk.Adapter: an answer has come.
func (a *adapter) Send(_ context.Context, to sdk.Target, _ string) (sdk.Receipt, error) {
	var ref string
	if err := json.Unmarshal(to.ReplyCtx, &ref); err != nil {
		return sdk.Receipt{}, sdk.Refused(err)
	}
	first, second, _ := strings.Cut(ref, "/")
	seq, err1 := strconv.Atoi(first)
	slot, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil {
		return sdk.Receipt{}, sdk.Refused(fmt.Errorf("reply_ctx: found %q", ref))
	}
	a.mu.Lock()
	at, ok := a.sent[seq]
	delete(a.sent, seq)
	switch {
	case !ok:
		a.count.Duplicated++
	case a.measured:
		a.counted++
		a.latency.add(now() - at)
	}
	a.mu.Unlock()
	if ok {
		a.free <- slot
	}
	return sdk.Receipt{}, nil
}

// finish waits for the last answers and writes the report.
func (a *adapter) finish(ctx context.Context, before usage) error {
	after := usageOf(a.HostPID)
	a.mu.Lock()
	took := now() - a.began
	s := Sample{Throughput: float64(a.counted) / took.Seconds()}
	if a.counted > 0 && after.known {
		cpu := Micros(after.server-before.server) / float64(a.counted)
		s.ServerCPU = &cpu
		s.OwnCPU = Micros(after.own-before.own) / float64(a.counted)
	}
	a.measured = false
	a.mu.Unlock()
	for end := time.Now().Add(adapterGrace); time.Now().Before(end) && a.open() > 0; {
		time.Sleep(5 * time.Millisecond)
	}
	a.mu.Lock()
	s.Count = a.count
	s.Lost = len(a.sent)
	s.P50, s.P90, s.P99, s.Max = Micros(a.latency.quantile(0.5)), Micros(a.latency.quantile(0.9)), Micros(a.latency.quantile(0.99)), Micros(a.latency.max)
	a.mu.Unlock()
	b, err := json.Marshal(s)
	if err != nil {
		return sdk.Refused(fmt.Errorf("encode report: %w", err))
	}
	if err := os.WriteFile(a.Report+".part", b, 0o600); err != nil {
		return sdk.Refused(fmt.Errorf("write report: %w", err))
	}
	if err := os.Rename(a.Report+".part", a.Report); err != nil {
		return sdk.Refused(fmt.Errorf("write report: %w", err))
	}
	<-ctx.Done()
	return nil
}

func (a *adapter) open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sent)
}
