package sqlite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
	"github.com/pontoon-bridge/pontoon/host/internal/search"
)

// fill commits pairs of question and answer, spread over conversations.
func fill(tb testing.TB, s *Store, chain *ledger.Tail, conversations, pairs int) {
	tb.Helper()
	text := strings.Repeat("x", 100)
	fillWith(tb, s, chain, conversations, pairs, func() string { return text })
}

// fillWith is fill with texts of its own.
func fillWith(tb testing.TB, s *Store, chain *ledger.Tail, conversations, pairs int, text func() string) {
	tb.Helper()
	convs := make([]*ledger.Conversation, conversations)
	for i := range convs {
		convs[i] = recalled(tb, s, chain, fmt.Sprint("c", i))
	}
	origin := packed.AppendOrigin(nil, ledger.Origin{SessionKey: "irc:#ops:alice", UserID: "alice", ReplyCtx: `"m1"`})
	var wg sync.WaitGroup
	window := make(chan struct{}, 800)
	wg.Add(pairs)
	for i := range pairs {
		window <- struct{}{}
		s.Append(&ledger.Unit{
			Conversation: convs[i%conversations],
			In:           &ledger.Row{State: ledger.Handled, Text: text(), Origin: origin},
			Out:          []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text(), Origin: origin}},
		}, func(r ledger.Result) {
			if r.Err != nil {
				tb.Error(r.Err)
			}
			<-window
			wg.Done()
		})
	}
	wg.Wait()
}

// BenchmarkAppend is the cost of one question with its answer, committed with
// 800 others under way.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{50, 1000} {
		b.Run(fmt.Sprint(n, " conversations"), func(b *testing.B) {
			s := opened(b)
			_, chain := newChannel(b, s, "a")
			fill(b, s, chain, n, n)
			b.ReportAllocs()
			b.ResetTimer()
			fill(b, s, chain, n, b.N)
		})
	}
}

// BenchmarkAcknowledged is BenchmarkAppend with an answer that is acknowledged, in a unit
// of its own.
func BenchmarkAcknowledged(b *testing.B) {
	for _, n := range []int{50, 1000} {
		b.Run(fmt.Sprint(n, " conversations"), func(b *testing.B) {
			s := opened(b)
			_, chain := newChannel(b, s, "a")
			fill(b, s, chain, n, n)
			convs := make([]*ledger.Conversation, n)
			for i := range convs {
				convs[i] = recalled(b, s, chain, fmt.Sprint("c", i))
			}
			text := strings.Repeat("x", 100)
			origin := packed.AppendOrigin(nil, ledger.Origin{SessionKey: "irc:#ops:alice", UserID: "alice", ReplyCtx: `"m1"`})
			window := make(chan struct{}, 800)
			var wg sync.WaitGroup
			wg.Add(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				window <- struct{}{}
				u := &ledger.Unit{
					Conversation: convs[i%n],
					In:           &ledger.Row{State: ledger.Handled, Text: text, Origin: origin},
					Out:          []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Tracked: true, Text: text, Origin: origin}},
				}
				s.Append(u, func(r ledger.Result) {
					ack := &ledger.Unit{Conversation: u.Conversation, Settle: []ledger.Settlement{{ID: u.Out[0].ID, State: ledger.Delivered}}}
					s.Append(ack, func(r ledger.Result) {
						if r.Err != nil {
							b.Error(r.Err)
						}
						<-window
						wg.Done()
					})
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkHistory is the newest page of a conversation among many messages. On
// a busy machine its median says more than the mean.
func BenchmarkHistory(b *testing.B) {
	s := opened(b)
	_, chain := newChannel(b, s, "a")
	fill(b, s, chain, 5000, 500_000)
	key := "c7"
	for name, scope := range map[string]ledger.Scope{"conversation": {Channel: chain.Channel, Conversation: &key}, "channel": {Channel: chain.Channel}} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if page, err := s.Before(b.Context(), scope, 0, 50); err != nil || len(page) != 50 {
					b.Fatal(len(page), err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		})
	}
}

// BenchmarkSearch looks for words of different frequency among a million messages of
// twelve words each, of a vocabulary as people use it: the second word half as often
// as the first, the third a third as often.
func BenchmarkSearch(b *testing.B) {
	s := opened(b)
	_, chain := newChannel(b, s, "a")
	words := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.07, 2, 50_000)
	const pairs = 500_000
	fillWith(b, s, chain, 5000, pairs, func() string {
		var text strings.Builder
		for range 12 {
			fmt.Fprintf(&text, "word%d ", words.Uint64())
		}
		return text.String()
	})
	before, began := s.Sizes().Database, time.Now()
	indexed(b, s)
	took := time.Since(began)
	b.Logf("%d messages: database of %d MB, index of %d MB, made in %s", 2*pairs, before>>20, (s.Sizes().Database-before)>>20, took.Round(time.Second))
	for _, text := range []string{"word0 ", "word100 ", "word5000 ", "word100 word101 ", "word5000 from:alice ", "no-such-word "} {
		q := query(b, text)
		b.Run(strings.TrimSpace(text), func(b *testing.B) {
			var times []time.Duration
			found := 0
			for b.Loop() {
				began := time.Now()
				f, err := s.Search(b.Context(), search.Find{Query: q, N: 50})
				if err != nil {
					b.Fatal(err)
				}
				found = len(f.Messages)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(found), "found")
		})
	}
}
