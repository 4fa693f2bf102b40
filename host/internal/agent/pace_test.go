package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// An agent may send as much as the host can read in its time, or as many frames as its
// operator says; beyond that it is told, and stays.
func TestPace(t *testing.T) {
	t.Parallel()
	b := newBed(t, agent.SocketOptions{})
	b.agent("one")
	b.agent("two", `{"max_frames":5}`)
	a := b.connect("one", "")
	for range 50 {
		for range 100 {
			a.write(`{"type":"ping"}`)
		}
		for range 100 {
			a.shows("pong")
		}
	}
	two := b.connect("two", "")
	for range 50 {
		two.write(`{"type":"ping"}`)
	}
	for range 5 {
		two.shows("pong")
	}
	two.shows("error", "rate_limited", "more than 5 frames a second")
	for config, want := range map[string]string{
		`{"max_frames":-1}`: "max_frames: found -1, expected 0 to 1000000", `{"max":1}`: `unknown field "max"`, `{"max_frames":"1"}`: "max_frames: found a string, expected a whole number",
	} {
		row := ledger.Agent{Name: "three", Kind: agent.SocketKind, Config: json.RawMessage(config)}
		if err := b.roster.Check(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", config, err, want)
		}
	}
}
