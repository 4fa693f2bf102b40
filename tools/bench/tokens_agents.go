package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agent"
)

// start makes the host's agent "bench-KIND" and runs its other end here.
func (t *talker) start(ctx context.Context, api *rest, host *child, kind string) (stop func(), err error) {
	config := map[string]any{}
	stop = func() {}
	switch kind {
	case "agui":
		config, stop = serveAgent(t.runs)
	case "webhook":
		config, stop = serveAgent(t.hooks)
	}
	key, err := api.newAgent(ctx, agentName(kind), kind, config)
	if err != nil {
		stop()
		return nil, err
	}
	if kind != "websocket" {
		return stop, nil
	}
	if stop, err = t.dialIn(ctx, host.url, key); err != nil {
		return nil, err
	}
	if err := api.present(ctx, agentName(kind)); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// present waits until an agent is there: who asks it before is answered by a notice
// of the host's.
func (r *rest) present(ctx context.Context, agent string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		var found struct{ Away bool }
		if err := r.call(ctx, http.MethodGet, "/agents/"+agent, nil, &found); err != nil || !found.Away {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond): // between two polls
		case <-ctx.Done():
			return fmt.Errorf("agent %s does not connect: %w", agent, context.Cause(ctx))
		}
	}
}

// serveAgent serves an agent that the host dials.
func serveAgent(h http.HandlerFunc) (config map[string]any, stop func()) {
	srv := httptest.NewServer(h)
	return onLoopback(srv.URL), srv.Close
}

// dialIn is the agent that dials the host, until stop.
func (t *talker) dialIn(ctx context.Context, url, key string) (stop func(), err error) {
	a, err := agent.New(agent.Options{URL: url, Key: key, Log: slog.New(slog.DiscardHandler)}, func(ctx context.Context, turn *agent.Turn) error {
		t.note(moments{got: time.Now(), said: time.Now()})
		turn.Stream(firstToken)
		// The whole would make the token needless before anybody has seen it.
		select {
		case <-time.After(settleToken):
		case <-ctx.Done():
		}
		_, err := turn.Reply(ctx, wholeText)
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // awaited by stop
		defer close(ended)
		_ = a.Run(ctx) // a failure is seen by whoever waits for an answer
	}()
	return func() { cancel(); <-ended }, nil
}

// settleToken is how long an agent waits behind its first token.
const settleToken = 20 * time.Millisecond

// runs is an AG-UI agent.
func (t *talker) runs(w http.ResponseWriter, r *http.Request) {
	got := time.Now()
	var in struct{ ThreadID, RunID string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(events ...map[string]any) {
		for _, e := range events {
			e["threadId"], e["runId"], e["messageId"] = in.ThreadID, in.RunID, in.RunID+"-m"
			b, _ := json.Marshal(e) // strings alone
			fmt.Fprintf(w, "data: %s\n\n", b)
		}
		_ = http.NewResponseController(w).Flush()
	}
	say(map[string]any{"type": "RUN_STARTED"}, map[string]any{"type": "TEXT_MESSAGE_START", "role": "assistant"})
	t.note(moments{got: got, said: time.Now()})
	say(map[string]any{"type": "TEXT_MESSAGE_CONTENT", "delta": firstToken})
	time.Sleep(settleToken)
	say(map[string]any{"type": "TEXT_MESSAGE_CONTENT", "delta": wholeText[len(firstToken):]}, map[string]any{"type": "TEXT_MESSAGE_END"}, map[string]any{"type": "RUN_FINISHED"})
}

// hooks is a webhook, whose first token is its whole answer.
func (t *talker) hooks(w http.ResponseWriter, r *http.Request) {
	got := time.Now()
	_, _ = io.Copy(io.Discard, r.Body)
	t.note(moments{got: got, said: time.Now()})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"text": wholeText})
}
