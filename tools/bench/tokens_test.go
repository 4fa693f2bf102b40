package bench

import (
	"bytes"
	"strings"
	"testing"
)

// Every kind of agent answers behind every far end, and each is timed.
func TestTokens(t *testing.T) {
	r, err := Tokens(t.Context(), TokensConfig{Exe: exe(t), Dir: t.TempDir(), Samples: 3, Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if len(r.Ways) != 6 {
		t.Errorf("found %d ways", len(r.Ways))
	}
	for _, w := range r.Ways {
		for _, p := range []Percentiles{w.Asked, w.Token} {
			if p.P50 <= 0 || p.P99 < p.P50 {
				t.Errorf("%s behind %s: %+v", w.Agent, w.User, p)
			}
		}
	}
	if _, err := Tokens(t.Context(), TokensConfig{Exe: "none"}); err == nil || !strings.Contains(err.Error(), "samples") {
		t.Errorf("no samples: found error %v", err)
	}
}

// A draft that has all of the answer is not its end.
func TestAnswerEnds(t *testing.T) {
	for payload, want := range map[string]bool{
		`{"type":"stream","text":"Hello"}`:           false,
		`{"type":"stream","text":"Hello there"}`:     false,
		`{"type":"stream_end","text":"Hello there"}`: true,
		`{"type":"send","text":"Hello there"}`:       true,
		`{"type":"send","text":"It is away."}`:       false,
	} {
		if got := isWhole([]byte(payload)); got != want {
			t.Errorf("%s: %t, want %t", payload, got, want)
		}
	}
}
