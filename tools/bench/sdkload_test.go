package bench

import (
	"strings"
	"testing"
	"time"
)

// Adapters of the SDK and the generator's own client put the same load on a host, and
// neither loses anything.
func TestSDK(t *testing.T) {
	c := SDKConfig{
		Exe: exe(t), Dir: t.TempDir(), Conns: 3, Conversations: 4, Acks: 16, Size: 300,
		Rounds: 2, Duration: 100 * time.Millisecond, Progress: func(line string) { t.Log(line) },
	}
	r, err := SDK(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(t.Output()); err != nil {
		t.Error(err)
	}
	if !r.Clean() || len(r.Goals) != 1 || len(r.Scenarios) != 1 || len(r.Scenarios[0].Targets) != 2 {
		t.Fatalf("found %+v, expected both clients and one goal", r)
	}
	for _, who := range r.Scenarios[0].Targets {
		if who.Total.Sent < 12 || who.Total.Answered != who.Total.Sent {
			t.Errorf("%s: found %+v, expected an answer in each conversation at least", who.Name, who.Total)
		}
	}
	c.Acks = 0
	if _, err := SDK(t.Context(), c); err == nil || !strings.Contains(err.Error(), "acks") {
		t.Errorf("no acknowledgements: found %v", err)
	}
}
