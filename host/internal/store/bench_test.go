package store

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fill commits pairs of question and answer, spread over conversations.
func fill(tb testing.TB, s *Store, chain *Chain, conversations, pairs int) {
	tb.Helper()
	held := make([]*Conversation, conversations)
	for i := range held {
		held[i] = conversation(tb, s, chain, fmt.Sprint("c", i))
	}
	text := strings.Repeat("x", 100)
	origin := Origin{SessionKey: "irc:#ops:alice", UserID: "alice", ReplyCtx: `"m1"`}.Append(nil)
	var wg sync.WaitGroup
	window := make(chan struct{}, 800)
	wg.Add(pairs)
	for i := range pairs {
		window <- struct{}{}
		s.Append(&Unit{
			Conversation: held[i%conversations],
			In:           &Row{State: Handled, Text: text, Origin: origin},
			Out:          []Row{{Direction: Out, State: Sent, Text: text, Origin: origin}},
			Done: func(r Result) {
				if r.Err != nil {
					tb.Error(r.Err)
				}
				<-window
				wg.Done()
			},
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

// BenchmarkHistory is the newest page of a conversation among many messages. On
// a busy machine its median says more than the mean.
func BenchmarkHistory(b *testing.B) {
	s := opened(b)
	_, chain := newChannel(b, s, "a")
	fill(b, s, chain, 5000, 500_000)
	key := "c7"
	for name, scope := range map[string]Scope{"conversation": {Chain: chain, Conversation: &key}, "channel": {Chain: chain}} {
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
