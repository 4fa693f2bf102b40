package store

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
)

// TestRowsOfEveryShape commits rows with and without rare columns, in batches of
// any length, and reads all of them back as they were.
func TestRowsOfEveryShape(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	convs := []*Conversation{conversation(t, s, chain, "one"), conversation(t, s, chain, "two"), conversation(t, s, chain, "three")}
	random := rand.New(rand.NewPCG(5, 8))
	var want []Row
	var wg sync.WaitGroup
	for range 40 {
		units := make([]*Unit, 1+random.IntN(60))
		rare := random.IntN(3) // none, a few, many
		for i := range units {
			u := &Unit{Conversation: convs[random.IntN(len(convs))], In: someRow(random, In, rare), Done: func(r Result) {
				if r.Err != nil {
					t.Error(r.Err)
				}
				wg.Done()
			}}
			for range random.IntN(3) {
				u.Out = append(u.Out, *someRow(random, Out, rare))
			}
			units[i] = u
			wg.Add(1)
		}
		for _, u := range units {
			s.Append(u)
		}
		wg.Wait()
		for _, u := range units {
			want = append(append(want, *u.In), u.Out...)
		}
	}
	for i, before := len(want)-1, MessageID(0); i >= 0; {
		page, err := s.Before(t.Context(), Scope{Chain: chain}, before, 500)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d messages not found: %v", i+1, err)
		}
		for _, e := range page {
			got := e.Row
			got.Origin, got.Status = e.Origin.Append(nil), ""
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("message %d:\nfound    %+v\nexpected %+v", i, got, want[i])
			}
			before = e.ID
			i--
		}
	}
}

func someRow(random *rand.Rand, d Direction, rare int) *Row {
	r := &Row{Direction: d, State: Handled, Text: fmt.Sprint("text ", random.IntN(1000)), Origin: Origin{UserID: "u"}.Append(nil)}
	if d == Out {
		r.State = Sent
	}
	if random.IntN(20) < rare*rare*4 {
		r.Parts, r.Meta = []byte(`[{"type":"text"}]`), []byte(`{"a":1}`)
	}
	if random.IntN(20) < rare {
		r.State, r.Reason, r.Notes = Failed, ReasonRejected, []byte(`[]`)
	}
	if d == In && random.IntN(2) < rare {
		r.PlatformID = fmt.Sprint("p", random.Uint64())
	}
	return r
}
