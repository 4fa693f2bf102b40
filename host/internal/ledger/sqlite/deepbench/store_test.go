package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/tools/bench"
)

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
	origin := packed.AppendOrigin(nil, ledger.Origin{SessionKey: "bench:b00003-000000", UserID: "user-1", UserName: "Bench", ReplyCtx: `"000001-00003-000000000"`})
	text := strings.Repeat("x", 40)
	var begun, ended atomic.Int64
	done := make(chan struct{})
	var next func()
	next = func() {
		n := int(begun.Add(1)) - 1
		if n >= b.N {
			return
		}
		st.Append(&ledger.Unit{
			Conversation: convs[n%conversations],
			In:           &ledger.Row{Direction: ledger.In, State: ledger.Handled, Text: text, Origin: origin},
			Out:          []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text, Origin: origin}},
		}, func(r ledger.Result) {
			next()
			if r.Err != nil {
				b.Error(r.Err)
			}
			if int(ended.Add(1)) == b.N {
				close(done)
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := bench.OwnCPU()
	for range waiting {
		next()
	}
	<-done
	after := bench.OwnCPU()
	b.ReportMetric(bench.Micros(b.Elapsed())/float64(b.N), "µs/pair")
	b.ReportMetric(bench.Micros(after-before)/float64(b.N), "cpu-µs/pair")
}

func storeConversations(b *testing.B, st *sqlite.Store, n int) []*ledger.Conversation {
	b.Helper()
	row, err := st.CreateChannel(b.Context(), ledger.Channel{ID: "bench", Name: "bench", Kind: "bridge", Enabled: true, Agent: "echo"},
		&ledger.NewCredential{Hash: []byte("bench"), Hint: "hint"}, ledger.Change{Actor: "bench", Action: "channel.create"})
	if err != nil {
		b.Fatal(err)
	}
	chain, err := st.Own(b.Context(), row.Key)
	if err != nil {
		b.Fatal(err)
	}
	convs := make([]*ledger.Conversation, n)
	for i := range convs {
		recalled, err := st.Conversation(b.Context(), chain, fmt.Sprintf("conversation-%06d", i))
		if err != nil {
			b.Fatal(err)
		}
		convs[i] = recalled.Conversation
	}
	return convs
}
