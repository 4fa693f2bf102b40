package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// An agent that fails says so wherever an operator looks, in its own words.
func TestFailingAgent(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		if status.Load() != http.StatusNoContent {
			_, _ = w.Write([]byte("no more\n tokens <b>this month</b>"))
		}
	}))
	t.Cleanup(agent.Close)
	h.cli("agent", "create", "hook", "--kind", "webhook", "--set", "url="+agent.URL, "--set", "allow_private=true", "--set", "attempts=1")
	env := []string{"USER=alice", "PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + h.channel("desk", `,"agent":"hook"`)}
	p := startProcess(t, env, helloBinary)
	turns := func() api.AgentTurns {
		t.Helper()
		var a api.Agent
		h.json(&a, "agent", "show", "hook")
		return a.Turns
	}
	sorry := "Sorry, no answer could be made. Please try again."
	for i := range 4 {
		p.types("hello")
		p.prints(sorry)
		eventually(t, "the failure is counted", func() bool { return turns().FailedInRow == i+1 })
	}
	if got := turns(); got.Failing {
		t.Errorf("after four: %+v", got)
	}
	status.Store(http.StatusUnauthorized)
	p.types("hello")
	p.prints(sorry)
	eventually(t, "it needs attention", func() bool { return turns().Failing })
	const words = "webhook: the agent refused the turn: answered 401 Unauthorized: no more tokens <b>this month</b>"
	if got := turns(); got.Failed != 5 || got.Answered != 0 || got.LastFailure == nil || got.LastFailure.Reason != "agent_refused" || got.LastFailure.Detail != words {
		t.Errorf("after five: %+v, %+v", got, got.LastFailure)
	}
	eventually(t, "all are dead letters", func() bool {
		var counts api.DeadCounts
		h.json(&counts, "dead", "count")
		return counts.Total == 5
	})
	holds(t, h.cli("dead", "list", "--reason", "agent_failed"), "agent_failed")
	holds(t, h.cli("dead", "list", "--reason", "agent_refused"), "agent_refused")

	status.Store(http.StatusNoContent)
	p.types("hello")
	eventually(t, "it works again", func() bool { return turns().FailedInRow == 0 })
	if got := turns(); got.Failing || got.Answered != 1 || got.LastFailure == nil {
		t.Errorf("later: %+v", got)
	}
}
