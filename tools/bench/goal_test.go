package bench

import (
	"slices"
	"testing"
)

// A bare run measures what adapters and agents really do first, and every goal is of
// a load in it: one that is not there would never be judged.
func TestDefaultScenarios(t *testing.T) {
	echo := slices.IndexFunc(DefaultScenarios, func(s Scenario) bool { return s.Acks == 0 && s.Agent == "" })
	for i, s := range DefaultScenarios {
		if err := s.validate(); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
		if real := s.Acks > 0 || s.Agent != ""; real != (i < echo) {
			t.Errorf("%s is in place %d, expected the built-in echo's loads behind all others", s.Name(), i)
		}
	}
	for s := range goals {
		if !slices.Contains(DefaultScenarios, s) {
			t.Errorf("goals of %s are never judged", s.Name())
		}
	}
}

// The shapes of the real paths, with few connections: everything arrives, and is
// judged.
func TestLoadOfRealPaths(t *testing.T) {
	var all []Scenario
	for _, s := range DefaultScenarios {
		if s.Acks == 0 && s.Agent == "" {
			continue
		}
		if s.Conns = 3; s.Rate > 0 {
			s.Rate = 100
		}
		all = append(all, s)
	}
	r, err := Load(t.Context(), quick(t, all...))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean() || len(r.Scenarios) != len(all) {
		t.Errorf("report is not clean: %+v", r)
	}
	for _, s := range r.Scenarios {
		for _, target := range s.Targets {
			checkFigures(t, s.Name()+" "+target.Name, target)
		}
	}
}

func TestGoals(t *testing.T) {
	two, cpu := Spread{1, 2, 3}, Spread{20, 30, 90}
	got := judgeGoals([]ScenarioReport{{Scenario: acked(50, 16, 1), Targets: []TargetReport{{Ratio: &two, ServerCPU: &cpu}}}})
	if len(got) != 2 || !got[0].Met || !got[1].Met || got[1].Found != cpu {
		t.Errorf("found %+v, expected both goals met by their medians", got)
	}
	slow := NewGoal("load", "ratio", true, 1.2, Spread{1, 1.3, 2})
	if slow.Met {
		t.Errorf("found %+v, expected a median above its limit to fail", slow)
	}
}
