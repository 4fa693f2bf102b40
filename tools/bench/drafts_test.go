package bench

import (
	"strings"
	"testing"
	"time"
)

// Answers in drafts come whole and once, over streams and over edits.
func TestDrafts(t *testing.T) {
	c := DraftsConfig{
		Exe: exe(t), Dir: t.TempDir(), Streams: 3, Drafts: 30, Every: 10 * time.Millisecond, EditInterval: 20 * time.Millisecond,
		Rounds: 2, Progress: func(line string) { t.Log(line) },
	}
	r, err := Drafts(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if !r.Clean() || len(r.Scenarios) != 3 || len(r.Paces) != 3 || len(r.Goals) != 7 {
		t.Fatalf("found %+v, expected three loads with seven goals", r)
	}
	for i, s := range r.Scenarios {
		if host := s.Targets[0]; host.Total != (Count{Sent: 6, Answered: 6}) || host.Throughput.Min <= 0 {
			t.Errorf("%s: found %+v, expected six answers", s.Name(), host)
		}
		if i > 0 && r.Paces[i].Intervals == 0 {
			t.Errorf("%s: no drafts are shown", s.Name())
		}
	}
	c.Streams = maxStreams + 1
	if _, err := Drafts(t.Context(), c); err == nil || !strings.Contains(err.Error(), "streams") {
		t.Errorf("more answers than an agent gives at once: found %v", err)
	}
}

// One edit that comes too soon fails its goal, however many others do not.
func TestPaceOfEditsIsExact(t *testing.T) {
	l := draftsLoad{pace: time.Millisecond, edits: true}
	ok, soon := Spread{147, 150, 151}, Spread{146, 150, 151}
	got := l.judge(&ScenarioReport{}, DraftsPace{Asked: 150, Ratio: Spread{1, 1, 1}, First: ok, Smallest: soon, Last: ok})
	if len(got) != 4 || !got[1].Met || got[2].Met || !got[3].Met {
		t.Errorf("found %+v, expected the third to fail alone", got)
	}
}

// Whatever is wrong with the frames of an answer is counted.
func TestViewerJudges(t *testing.T) {
	good := func(v *viewer) {
		v.judge("q: draft", false, time.Second)
		v.judge("q: draft draft draft", false, 2*time.Second)
		v.judge("q: draft draft draft.", true, 3*time.Second)
	}
	for name, c := range map[string]struct {
		show func(*viewer)
		want Count
	}{
		"ok":          {good, Count{Sent: 1, Answered: 1}},
		"errLost":     {func(v *viewer) { v.judge("q: draft", false, time.Second) }, Count{Sent: 1, Lost: 1}},
		"errTwice":    {func(v *viewer) { good(v); v.judge(v.whole, true, 4*time.Second) }, Count{Sent: 1, Answered: 1, Duplicated: 1}},
		"errBack":     {func(v *viewer) { v.judge("q: draft draft", false, 0); good(v) }, Count{Sent: 1, Answered: 1, Disordered: 1}},
		"errBehind":   {func(v *viewer) { good(v); v.judge("q: draft", false, 4*time.Second) }, Count{Sent: 1, Answered: 1, Disordered: 1}},
		"errCutShort": {func(v *viewer) { v.judge("q: draft draft draft", true, 0) }, Count{Sent: 1, Answered: 1, Stray: 1}},
		"errOther":    {func(v *viewer) { v.judge("x: draft", false, 0); good(v) }, Count{Sent: 1, Answered: 1, Stray: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v := &viewer{question: "q:", whole: wholeDraft("q:", 3), newest: -1, tally: tally{sent: 1, last: make([]int, 1)}}
			c.show(v)
			got := v.count()
			got.Refusal = ""
			if got != c.want {
				t.Errorf("found %+v, expected %+v", got, c.want)
			}
			if name == "ok" && (len(v.first) != 1 || v.first[0] != 1000 || len(v.gaps.last) != 1) {
				t.Errorf("intervals: %v and %v, expected one second each", v.first, v.gaps.last)
			}
		})
	}
}
