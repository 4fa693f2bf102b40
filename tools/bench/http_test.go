package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// smaller is a load of a few clients.
func smaller(s Scenario) Scenario {
	s.Conns, s.Window, s.Agents, s.Readers = min(s.Conns, 3), min(s.Window, 2), min(s.Agents, 2), min(s.Readers, 4)
	s.Rate = min(s.Rate, 100)
	return s
}

// Every load of every row arrives, and nothing of it is lost; who is compared is there.
func TestHTTP(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			got, err := HTTP(t.Context(), HTTPConfig{
				Exe: exe(t), Dir: t.TempDir(), Rows: []string{r.name}, Rounds: 2, Messages: 30, Duration: await.Limit,
				Progress: func(line string) { t.Log(line) }, smaller: smaller,
			})
			if err != nil {
				t.Fatal(err)
			}
			if !got.Clean() || len(got.Scenarios) != len(r.loads) {
				t.Errorf("report is not clean, or not whole: %+v", got)
			}
			for _, s := range got.Scenarios {
				bare := r.name != kindBridle && r.name != "events"
				if bare != (s.Targets[0].Ratio != nil) || bare && len(s.Targets) != 2 {
					t.Errorf("%s: found %d targets, ratio %v", s.Name(), len(s.Targets), s.Targets[0].Ratio)
				}
				for _, target := range s.Targets {
					checkFigures(t, s.Name()+" "+target.Name, target)
					if least := 30 * target.Total.Answered / max(target.Total.Sent, 1); target.Total.Sent < 60 || least < 30 {
						t.Errorf("%s, %s: found %+v, expected two rounds of 30 messages", s.Name(), target.Name, target.Total)
					}
				}
				if known := s.Targets[0].ReaderCPU != nil; known != (r.name == "events" && s.Targets[0].ServerCPU != nil) {
					t.Errorf("%s: cost of a reader is known: %t", s.Name(), known)
				}
			}
			if len(got.Goals) < len(r.loads) && r.name != kindBridle {
				t.Errorf("found goals %+v, expected one for each load", got.Goals)
			}
			if err := got.Print(t.Output()); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := HTTP(t.Context(), HTTPConfig{Rows: []string{"none"}}); err == nil || !strings.Contains(err.Error(), "expected one of") {
		t.Errorf("a row that is not there: found error %v", err)
	}
}

// A caller counts what is refused, answered twice, or with something else.
func TestFaultsOfAnAnswerAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int, question string) (string, error)
		want   Count
	}{
		"ok":    {func(_ int, q string) (string, error) { return q, nil }, Count{Sent: 5, Answered: 5}},
		"twice": {func(_ int, q string) (string, error) { return q + q, nil }, Count{Sent: 5, Answered: 5, Duplicated: 5}},
		"other": {func(int, string) (string, error) { return "?", nil }, Count{Sent: 5, Lost: 5, Refusal: "an answer to something else: ?"}},
		"refused": {func(n int, q string) (string, error) {
			if n == 2 {
				return "", &refused{"no"}
			}
			return q, nil
		}, Count{Sent: 5, Answered: 4, Refused: 1, Refusal: "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			id := idOf(3, 1, 0)
			p := newCaller([]byte("<"+id+">"), id)
			n := 0
			p.ask = func(q []byte) ([]byte, error) {
				n++
				a, err := c.answer(n-1, string(q))
				return []byte(a), err
			}
			p.answers = func(answer, id []byte) int { return strings.Count(string(answer), string(id)) }
			if err := p.run(new(stage), 5); err != nil {
				t.Fatal(err)
			}
			if got := p.count(); got != c.want {
				t.Errorf("found %+v, expected %+v", got, c.want)
			}
		})
	}
}

// What an adapter is sent counts for whom it was posted by.
func TestFaultsOfDeliveryAreSeen(t *testing.T) {
	frame := func(id string) []byte { return []byte(`{"type":"send","text":"` + id + ` words"}`) }
	k := &taker{peer: &peer{}, run: 7, posters: []tally{{last: make([]int, 1)}, {last: make([]int, 1)}}}
	for _, id := range []string{idOf(7, 0, 0), idOf(7, 0, 1), idOf(7, 0, 1), idOf(7, 1, 1), idOf(7, 1, 0), idOf(6, 0, 2), idOf(7, 2, 0), "x"} {
		k.note(frame(id))
	}
	k.posters[0].sent, k.posters[1].sent = 3, 2
	want := []Count{{Sent: 3, Answered: 2, Lost: 1, Duplicated: 1}, {Sent: 2, Answered: 2, Disordered: 1}}
	if got := []Count{k.posters[0].count(), k.posters[1].count()}; !slices.Equal(got, want) || k.stray != 3 || k.taken.Load() != 4 {
		t.Errorf("found %+v, %d stray, %d taken; expected %+v, 3 stray, 4 taken", got, k.stray, k.taken.Load(), want)
	}
}

// A notice of the host is no answer of its agent.
func TestNoticesAreNoAnswers(t *testing.T) {
	far := faulty(t, func(n int, in *wire.Inbound) []string {
		notice, answer := send(in), strings.Replace(send(in), "echo", in.Text, 1)
		if n == 1 {
			return []string{notice, answer}
		}
		return []string{answer}
	})
	s := Scenario{Conns: 1, Window: 1, Conversations: 1, Size: 220, Agent: "webhook"}
	got, err := measure(t.Context(), far, s, 1, span{await.Limit, 4, await.Limit})
	if err != nil {
		t.Fatal(err)
	}
	if got.Answered != 4 || got.Stray != 1 || !strings.Contains(got.Refusal, "stray answer") {
		t.Errorf("found %+v, expected 4 answers and a notice", got.Count)
	}
}

// What readers cost is told whichever was measured first.
func TestReaderCost(t *testing.T) {
	var p readerCost
	figure := p.read(cost{3000, 3}, 2) // ns
	p.unread(cost{2000, 4})
	if *figure != 0.75 {
		t.Errorf("found %g µs, expected 0.75", *figure)
	}
	p.unread(cost{2000, 4})
	if figure = p.read(cost{3000, 3}, 2); *figure != 0.75 {
		t.Errorf("the other way round: found %g µs, expected 0.75", *figure)
	}
}
