package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const lateSorry = "Sorry, the agent did not answer in time. Please try again."

// slowpoke is a webhook that never answers what begins with "slow".
type slowpoke struct {
	mu    sync.Mutex
	asked map[string]int // by text
}

// newSlowpoke makes the agent; each turn has so many attempts of a second.
func newSlowpoke(t *testing.T, attempts int) (*slowpoke, hub.Agent) {
	s := &slowpoke{asked: map[string]int{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	a, err := agent.NewWebhook(json.RawMessage(fmt.Sprintf(`{"url":%q,"allow_private":true,"secret":%q,"timeout":"1s","attempts":%d}`,
		srv.URL, agent.NewWebhookSecret(), attempts)), safehttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return s, a
}

func (s *slowpoke) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Message struct{ Parts []struct{ Text string } }
	}
	raw, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(raw, &body)
	text := ""
	for _, p := range body.Message.Parts {
		text += p.Text
	}
	s.mu.Lock()
	s.asked[text]++
	s.mu.Unlock()
	if strings.HasPrefix(text, "slow") {
		<-r.Context().Done()
		return
	}
	_, _ = fmt.Fprintf(w, `{"text":%q}`, "heard: "+text)
}

func (s *slowpoke) times(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[text]
}

// A turn that its agent never answers in time fails once its attempts are used up,
// and nobody else notices: a slow agent is not away.
func TestLateAgent(t *testing.T) {
	t.Parallel()
	const many, attempts = 12, 2
	s, a := newSlowpoke(t, attempts)
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"poke": a}), func(s *hosttest.Setup) { s.Retry = 20 * time.Millisecond })
	row, other := h.Channel("c", hosttest.WithAgent("poke")), h.Channel("other", hosttest.WithAgent("poke"))
	c, d := h.Attach(t, row), h.Attach(t, other)
	var want []string
	for i := range many {
		c.Send(hosttest.Say(fmt.Sprint("u", i), fmt.Sprint("slow", i)))
		want = append(want, hosttest.Answer(fmt.Sprint("u", i), lateSorry))
	}
	for i := range 5 { // while those wait
		d.Send(hosttest.Say("quick", fmt.Sprint(i)))
		d.Want(hosttest.Answer("quick", fmt.Sprint("heard: ", i)))
	}
	got := map[string]bool{}
	for range many {
		got[c.MustNext()] = true
	}
	for _, line := range want {
		if !got[line] {
			t.Errorf("missing %s among %v", line, got)
		}
	}
	await.Until(t, "all have failed", func() bool {
		failed := 0
		for _, e := range h.History(row) {
			if hosttest.Line(e) == "in failed/agent_timeout "+e.Text {
				failed++
			}
		}
		return failed == many
	})
	c.Quiet()
	for i := range many {
		await.Until(t, "all attempts have arrived", func() bool { return s.times(fmt.Sprint("slow", i)) >= attempts })
		if n := s.times(fmt.Sprint("slow", i)); n != attempts {
			t.Errorf("message %d was sent %d times, expected %d", i, n, attempts)
		}
	}
	if h.AgentAway("c") {
		t.Error("an agent that is slow is called away")
	}
	dead := hosttest.Call[struct {
		Letters []struct{ Message struct{ ID, Reason string } } `json:"dead_letters"`
	}](h, "GET", "/dead-letters?reason=agent_timeout&limit=50", "", 200).Letters
	if len(dead) != many {
		t.Errorf("%d dead letters, expected %d", len(dead), many)
	}
}

// Attempts are counted across restarts, and begin anew with a replay.
func TestLateAgentRestart(t *testing.T) {
	t.Parallel()
	const attempts = 3
	s, a := newSlowpoke(t, attempts)
	named := hosttest.WithAgents(map[string]hub.Agent{"poke": a})
	h := hosttest.Start(t, named)
	row := h.Channel("c", hosttest.WithAgent("poke"), hosttest.WithQueue)
	c := h.Attach(t, row)
	c.Send(hosttest.Say("u", "slow"))
	await.Until(t, "one attempt was in vain", func() bool { return s.times("slow") >= 2 })
	h = h.Again(named)
	h.WantHistory(row, "in failed/agent_timeout slow", "out queued "+lateSorry)
	made := s.times("slow") // the one that the restart broke off may have come once more
	if made > attempts+1 {
		t.Errorf("sent %d times, expected %d, or one more", made, attempts)
	}
	id := h.History(row)[0].ID.String()
	h.Operator("POST", "/dead-letters/"+id+"/replay", "", 202)
	await.Until(t, "it failed once more", func() bool {
		return s.times("slow") == made+attempts && hosttest.Line(h.History(row)[0]) == "in failed/agent_timeout slow"
	})
}

// hung is an agent that answers nothing until it may.
type hung struct{ may chan struct{} }

func (a hung) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	select {
	case <-a.may:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := r.Send(ctx, message.Text("at last: "+t.Message.Text))
	return err
}

// However many wait for an agent that hangs, others are answered; and what waits
// has its turn in the end.
func TestHungAgentStarvesNobody(t *testing.T) { // not parallel: it counts goroutines
	const many = 1100 // more turns than the whole host had once
	a, slow := hung{make(chan struct{})}, hosttest.NewSlowEcho()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"hung": a, "slow": slow}))
	row, other := h.Channel("c", hosttest.WithAgent("hung")), h.Channel("other", hosttest.WithAgent("slow"))
	c, d := h.Attach(t, row), h.Attach(t, other)
	before := runtime.NumGoroutine()
	for i := range many {
		c.Send(hosttest.Say(fmt.Sprint(i), "hello"))
	}
	await.Until(t, "all are stored", func() bool {
		stored := uint64(0)
		for _, n := range h.Hub.Tallies() {
			stored += n.Received
		}
		return stored == many
	})
	d.Send(hosttest.Say("x", "hello"))
	d.Want(hosttest.Answer("x", "slow: hello"))
	if n := runtime.NumGoroutine() - before; n > many/2 {
		t.Errorf("%d goroutines for %d messages", n, many)
	}
	c.Send(hosttest.Say("0", "/stop"), hosttest.Say("1099", "/stop"), hosttest.Say("1098", "/agent slow"))
	got := map[string]int{}
	for range 4 { // one that runs, one that waits, and one that goes to another agent
		got[c.MustNext()]++
	}
	for _, line := range []string{hosttest.Answer("0", "Stopped."), hosttest.Answer("1099", "Stopped."), hosttest.Answer("1098", "Agent slow answers from now on."), hosttest.Answer("1098", "slow: hello")} {
		if got[line] != 1 {
			t.Errorf("missing %s among %v", line, got)
		}
	}
	close(a.may)
	for range many - 3 {
		got[c.MustNext()]++
	}
	for i := 1; i < many-2; i++ {
		if got[hosttest.Answer(fmt.Sprint(i), "at last: hello")] != 1 {
			t.Fatalf("conversation %d was answered %d times", i, got[hosttest.Answer(fmt.Sprint(i), "at last: hello")])
		}
	}
	c.Quiet()
}
