package bench

import (
	"runtime"
	"strings"
	"testing"
)

// What waits is there after each start: the adapter gets the oldest of its queue, and
// every turn is answered when its agent comes back.
func TestHostMemory(t *testing.T) {
	c := MemoryConfig{Exe: exe(t), Dir: t.TempDir(), Queued: 500, Turns: 600, Taken: 100, Size: 300, Rounds: 2, Progress: func(line string) { t.Log(line) }}
	r, err := HostMemory(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if !r.Clean() || len(r.Loads) != 2 || len(r.Goals) != 4 {
		t.Fatalf("found %+v, expected two loads, of two goals each", r)
	}
	for i, want := range []Count{{Sent: 200, Answered: 200}, {Sent: 600, Answered: 600}} {
		l := r.Loads[i]
		if l.Count != want {
			t.Errorf("%s: found %+v, expected %+v", l.Name, l.Count, want)
		}
		for _, m := range []MemorySteps{l.With, l.Without} {
			if m.Start.Min <= 0 || runtime.GOOS == "linux" && (m.Started.Min <= 0 || m.Attached.Min <= 0) {
				t.Errorf("%s: figures make no sense: %+v", l.Name, m)
			}
		}
	}
	c.Taken = 400
	if _, err := HostMemory(t.Context(), c); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("more is taken than waits: found %v", err)
	}
}
