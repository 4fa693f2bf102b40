package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// inProcess runs a host in this process, so that a profile shows it, and
// returns its address with n channels' tokens.
func inProcess(b *testing.B, n int) target {
	b.Helper()
	dir := b.TempDir()
	log := slog.New(slog.DiscardHandler)
	st, err := sqlite.Open(b.Context(), dir, sqlite.Options{Log: log})
	if err != nil {
		b.Fatal(err)
	}
	keys, err := auth.OpenKeys(dir)
	if err != nil {
		b.Fatal(err)
	}
	h := hub.New(hub.Options{Store: st, Commands: command.New(), Log: log, Agents: hub.Fixed{"echo": &agent.Echo{}}})
	slots := bridge.New(bridge.Local(h), auth.NewGate(st, nil), bridge.Options{Log: log})
	streams, end := context.WithCancel(context.Background())
	srv := &http.Server{Handler: api.New(streams, api.Options{
		Store: st, Hub: h, Slots: slots, Keys: keys, Assets: agent.Assets(), Log: log, Now: time.Now, Ready: st.Writable,
	})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		end()
		slots.Close()
		_ = srv.Close()
		wg.Wait()
		h.Close()
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	tokens, err := provision(b.Context(), &child{url: "http://" + ln.Addr().String(), data: dir}, "bench", n)
	if err != nil {
		b.Fatal(err)
	}
	return target{name: "host", url: "ws://" + ln.Addr().String() + wire.Path, tokens: tokens}
}

// BenchmarkEcho50x16 is for profiles of the host: one operation is a message
// with its answer. The generator runs beside it; leave it out with
//
//	go tool pprof -tagignore side=generator
func BenchmarkEcho50x16(b *testing.B) {
	host := inProcess(b, 50)
	s := Scenario{Conns: 50, Window: 16, Conversations: 1, Size: 200}
	b.ReportAllocs()
	b.ResetTimer()
	before, _ := cpuTime(os.Getpid())
	pprof.Do(b.Context(), pprof.Labels("side", "generator"), func(ctx context.Context) {
		sample, err := measure(ctx, host, s, 1, span{5 * time.Minute, max(b.N, s.Conns), grace})
		if err != nil {
			b.Fatal(err)
		}
		if !sample.Clean() {
			b.Errorf("found %+v", sample.Count)
		}
		after, _ := cpuTime(os.Getpid())
		b.ReportMetric(sample.Throughput, "frames/s")
		b.ReportMetric(micros(after-before)/float64(sample.Sent), "cpu-µs/op") // the generator's too
	})
}

// BenchmarkStore writes pairs of rows, question and answer, with nothing else
// around: 800 of them wait at any time.
func BenchmarkStore(b *testing.B) {
	for _, conversations := range []int{50, 5000} {
		b.Run(fmt.Sprintf("conversations=%d", conversations), func(b *testing.B) { benchmarkStore(b, conversations) })
	}
}

func benchmarkStore(b *testing.B, conversations int) {
	const waiting = 800
	st, err := sqlite.Open(b.Context(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	convs := storeConversations(b, st, conversations)
	origin := ledger.Origin{SessionKey: "bench:b00003-000000", UserID: "user-1", UserName: "Bench", ReplyCtx: `"000001-00003-000000000"`}.Append(nil)
	text := padding[:40]
	var begun, ended atomic.Int64
	done := make(chan struct{})
	var next func()
	next = func() {
		n := int(begun.Add(1)) - 1
		if n >= b.N {
			return
		}
		st.Append(&sqlite.Unit{
			Conversation: convs[n%conversations],
			In:           &ledger.Row{Direction: ledger.In, State: ledger.Handled, Text: text, Origin: origin},
			Out:          []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text, Origin: origin}},
			Done: func(r sqlite.Result) {
				next()
				if r.Err != nil {
					b.Error(r.Err)
				}
				if int(ended.Add(1)) == b.N {
					close(done)
				}
			},
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	before, _ := cpuTime(os.Getpid())
	for range waiting {
		next()
	}
	<-done
	after, _ := cpuTime(os.Getpid())
	b.ReportMetric(micros(b.Elapsed())/float64(b.N), "µs/pair")
	b.ReportMetric(micros(after-before)/float64(b.N), "cpu-µs/pair")
}

func storeConversations(b *testing.B, st *sqlite.Store, n int) []*sqlite.Conversation {
	b.Helper()
	row, err := st.CreateChannel(b.Context(), ledger.Channel{ID: "bench", Name: "bench", Kind: "bridge", Enabled: true, Agent: "echo"},
		&ledger.NewToken{Hash: []byte("bench"), Hint: "hint"}, ledger.Change{Actor: "bench", Action: "channel.create"})
	if err != nil {
		b.Fatal(err)
	}
	chain, err := st.Chain(b.Context(), row.Key)
	if err != nil {
		b.Fatal(err)
	}
	convs := make([]*sqlite.Conversation, n)
	for i := range convs {
		recalled, err := st.Conversation(b.Context(), chain, fmt.Sprintf("conversation-%06d", i))
		if err != nil {
			b.Fatal(err)
		}
		convs[i] = recalled.Conversation
	}
	return convs
}
