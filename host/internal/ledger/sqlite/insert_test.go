package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/packed"
)

// TestRowsOfEveryShape commits rows with and without rare columns, in batches of
// any length, and reads all of them back as they were.
func TestRowsOfEveryShape(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	convs := []*ledger.Conversation{recalled(t, s, chain, "one"), recalled(t, s, chain, "two"), recalled(t, s, chain, "three")}
	random := rand.New(rand.NewPCG(5, 8))
	var want []ledger.Row
	var wg sync.WaitGroup
	for range 40 {
		units := make([]*ledger.Unit, 1+random.IntN(60))
		rare := random.IntN(3) // none, a few, many
		for i := range units {
			u := &ledger.Unit{Conversation: convs[random.IntN(len(convs))], In: someRow(random, ledger.In, rare)}
			for range random.IntN(3) {
				u.Out = append(u.Out, *someRow(random, ledger.Out, rare))
			}
			units[i] = u
			wg.Add(1)
		}
		for _, u := range units {
			s.Append(u, func(r ledger.Result) {
				if r.Err != nil {
					t.Error(r.Err)
				}
				wg.Done()
			})
		}
		wg.Wait()
		for _, u := range units {
			want = append(append(want, *u.In), u.Out...)
		}
	}
	for i, before := len(want)-1, ledger.MessageID(0); i >= 0; {
		page, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, before, 500)
		if err != nil || len(page) == 0 {
			t.Fatalf("%d messages not found: %v", i+1, err)
		}
		for _, e := range page {
			got := e.Row
			got.Origin, got.Status = packed.AppendOrigin(nil, e.Origin), ""
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("message %d:\nfound    %+v\nexpected %+v", i, got, want[i])
			}
			before = e.ID
			i--
		}
	}
}

func someRow(random *rand.Rand, d ledger.Direction, rare int) *ledger.Row {
	r := &ledger.Row{Direction: d, State: ledger.Handled, Text: fmt.Sprint("text ", random.IntN(1000)), Origin: packed.AppendOrigin(nil, ledger.Origin{UserID: "u"})}
	if d == ledger.Out {
		r.State = ledger.Sent
	}
	if random.IntN(20) < rare*rare*4 {
		r.Parts, r.Meta = []byte(`[{"type":"text"}]`), []byte(`{"a":1}`)
	}
	if random.IntN(20) < rare {
		r.State, r.Reason, r.Notes = ledger.Failed, ledger.ReasonRejected, []byte(`[]`)
	}
	if d == ledger.In && random.IntN(2) < rare {
		r.PlatformID = fmt.Sprint("p", random.Uint64())
	}
	return r
}

// What is behind a unit that failed fails too, in the same commit or a later one.
func TestBehind(t *testing.T) {
	s := opened(t)
	_, chain := newChannel(t, s, "a")
	conv := recalled(t, s, chain, "c")
	in := func() *ledger.Unit {
		return &ledger.Unit{Conversation: conv, In: &ledger.Row{Direction: ledger.In, State: ledger.Handled, Text: "in", PlatformID: "p"}}
	}
	out := func(text string, behind *ledger.Unit) *ledger.Unit {
		return &ledger.Unit{Conversation: conv, Out: []ledger.Row{{Direction: ledger.Out, State: ledger.Sent, Text: text}}, After: behind}
	}
	if err := commit(s, in()); err != nil {
		t.Fatal(err)
	}
	for _, together := range []bool{true, false} {
		again := in()
		second := out("second", again)
		third := out("third", second)
		fourth := out("fourth", nil)
		fifth := out("fifth", fourth)
		units := []*ledger.Unit{again, second, third, fourth, fifth}
		errs := make([]error, len(units))
		var wg sync.WaitGroup
		for i, u := range units {
			wg.Add(1)
			s.Append(u, func(r ledger.Result) { errs[i] = r.Err; wg.Done() })
			if !together {
				wg.Wait()
			}
		}
		wg.Wait()
		if !errors.Is(errs[0], ledger.ErrDuplicate) || !errors.Is(errs[1], ledger.ErrUnavailable) || !errors.Is(errs[2], ledger.ErrUnavailable) || errs[3] != nil || errs[4] != nil {
			t.Errorf("together %v: %v", together, errs)
		}
	}
	page, err := s.Before(t.Context(), ledger.Scope{Channel: chain.Channel}, 0, 10)
	if err != nil || !slices.Equal(texts(page), []string{"fifth", "fourth", "fifth", "fourth", "in"}) {
		t.Errorf("stored: %v, %v", texts(page), err)
	}
}
