package main

import (
	"os"
	"strings"
	"testing"
)

func TestDeepStoresAndMeasures(t *testing.T) {
	for _, ids := range []string{IDsNone, IDsOrdered, IDsRandom} {
		t.Run(ids, func(t *testing.T) {
			dir := t.TempDir()
			c := DeepConfig{Dir: dir, Stored: 3000, Conversations: 7, IDs: ids, Pairs: 100, Rounds: 2}
			r, err := Deep(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Deep.Message.Min <= 0 || r.Shallow.Message.Min <= 0 || r.Ratio.Min <= 0 || r.Deep.Page <= 0 || r.Bytes == 0 {
				t.Errorf("report has no figures: %+v", r)
			}
			if g := r.Goals; len(g) != 1 || !g[0].AtMost || g[0].Found != r.Ratio || g[0].Met != (r.Ratio.Median <= g[0].Limit) {
				t.Errorf("goals: %+v, expected one, of the ratio", g)
			}
			var out strings.Builder
			if err := r.Print(&out); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"3,000", "1,000", "ratio", ids, "GOAL"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestDeepRefuses(t *testing.T) {
	good := DeepConfig{Stored: 1000, Conversations: 1, IDs: IDsNone, Pairs: 1, Rounds: 1}
	for what, change := range map[string]func(*DeepConfig){
		"stored":        func(c *DeepConfig) { c.Stored = 1 },
		"conversations": func(c *DeepConfig) { c.Conversations = 0 },
		"ids":           func(c *DeepConfig) { c.IDs = "all" },
		"pairs":         func(c *DeepConfig) { c.Pairs = 0 },
		"rounds":        func(c *DeepConfig) { c.Rounds = maxRounds + 1 },
	} {
		c := good
		change(&c)
		if _, err := Deep(t.Context(), c); err == nil || !strings.HasPrefix(err.Error(), what+": found") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
