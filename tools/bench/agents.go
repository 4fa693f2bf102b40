package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/agent"
)

// AgentKinds are the kinds of agents that a Scenario may have in a process of their
// own, that answer with what they were told.
var AgentKinds = []string{"websocket", "webhook", "agui"}

// agentKey is the environment's name of the key of an agent that dials in.
const agentKey = "PONTOON_BENCH_AGENT_KEY"

// agentName is the host's name of such an agent.
func agentName(kind string) string { return "bench-" + kind }

// onLoopback is the config of an agent that the host dials on this machine.
func onLoopback(url string) map[string]any { return map[string]any{"url": url, "allow_private": true} }

// startAgent runs an agent and makes it known to the host. stop must be called.
func startAgent(ctx context.Context, host *child, kind string) (c *child, err error) {
	api, err := host.rest()
	if err != nil {
		return nil, err
	}
	defer api.close()
	config := map[string]any{}
	if kind != "websocket" {
		if c, err = spawnRole(roleAgent, kind); err == nil {
			err = c.readyOrKill(ctx)
		}
		if err != nil {
			return nil, err
		}
		config = onLoopback(c.url)
	}
	as := kind
	if kind == slowAgent {
		as, config["max_turns"] = "webhook", slowTurns
	}
	key, err := api.newAgent(ctx, agentName(kind), as, config)
	if err == nil && kind == "websocket" {
		c, err = spawnAgent(ctx, key, kind, host.url)
	}
	if err == nil {
		err = api.present(ctx, agentName(kind))
	}
	if err != nil && c != nil {
		c.kill()
	}
	return c, err
}

// spawnAgent runs an agent that dials in with a key. stop must be called.
func spawnAgent(ctx context.Context, key string, args ...string) (*child, error) {
	cmd, err := roleCommand(roleAgent, args...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), agentKey+"="+key)
	c, err := start(cmd)
	if err != nil {
		return nil, err
	}
	return c, c.readyOrKill(ctx)
}

// serveAgentRole is an agent of a kind, until ctx ends. It prints its url to w, or that
// of the host that it dials.
func serveAgentRole(ctx context.Context, args []string, w io.Writer) error {
	if args[0] == "websocket" && len(args) > 1 {
		answer, err := dialInAnswer(args[2:])
		if err != nil {
			return err
		}
		a, err := agent.New(agent.Options{URL: args[1], Key: os.Getenv(agentKey), Log: slog.New(slog.DiscardHandler)}, answer)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "Agent%s%s\n", listensOn, args[1])
		return a.Run(ctx)
	}
	if args[0] == kindBridle && len(args) == 3 {
		return serveBridle(ctx, args[1], args[2], w)
	}
	handler, ok := map[string]http.HandlerFunc{"webhook": answerHook, "agui": answerRun, slowAgent: new(slow).answer}[args[0]]
	if !ok {
		return fmt.Errorf("agent: found %q, expected one of %v", args, AgentKinds)
	}
	return serveHTTP(ctx, w, "Agent", handler)
}

// dialInAnswer is how an agent answers that dials in: with what it was told, or in as
// many drafts as how says, and so long between them.
func dialInAnswer(how []string) (agent.Handler, error) {
	if len(how) == 0 {
		return func(ctx context.Context, t *agent.Turn) error {
			_, err := t.Reply(ctx, t.Message.Parts[0].Plain())
			return err
		}, nil
	}
	if len(how) != 2 {
		return nil, fmt.Errorf("agent: found %q, expected a number of drafts and their pace", how)
	}
	drafts, err := strconv.Atoi(how[0])
	if err != nil {
		return nil, fmt.Errorf("agent: number of drafts: %w", err)
	}
	pace, err := time.ParseDuration(how[1])
	if err != nil {
		return nil, fmt.Errorf("agent: pace: %w", err)
	}
	return answerInDrafts(drafts, pace), nil
}

// answerHook answers a turn that was posted.
func answerHook(w http.ResponseWriter, r *http.Request) {
	var turn struct {
		Message struct {
			Parts []struct{ Text string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&turn); err != nil || len(turn.Message.Parts) == 0 {
		http.Error(w, "expected a turn", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"text": turn.Message.Parts[0].Text})
}

// answerRun answers a run of AG-UI.
func answerRun(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ThreadID, RunID string
		Messages        []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, "expected a run", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []map[string]any{
		{"type": "RUN_STARTED"}, {"type": "TEXT_MESSAGE_START", "role": "assistant"},
		{"type": "TEXT_MESSAGE_CONTENT", "delta": in.Messages[len(in.Messages)-1].Content},
		{"type": "TEXT_MESSAGE_END"}, {"type": "RUN_FINISHED"},
	} {
		e["threadId"], e["runId"], e["messageId"] = in.ThreadID, in.RunID, in.RunID+"-m"
		b, _ := json.Marshal(e) // strings alone
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}
