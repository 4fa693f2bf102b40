package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// TokensConfig is what Tokens runs.
type TokensConfig struct {
	Exe      string
	Dir      string // where the host's data directory is made; "" = the system's
	Samples  int    // of each way, one after the other
	Progress Progress
}

// TokensReport tells what the host adds before users see the first word.
type TokensReport struct {
	Machine Machine     `json:"machine"`
	Samples int         `json:"samples"`
	Ways    []TokensWay `json:"ways"`
}

// TokensWay is one kind of agent behind one kind of far end. Times are in µs.
type TokensWay struct {
	Agent string `json:"agent"`
	User  string `json:"user"`
	// Asked is from the user's message being written until the agent has it.
	Asked Percentiles `json:"asked"`
	// Token is from the agent writing its first token until the user has it.
	Token Percentiles `json:"token"`
}

// Percentiles are those of a latency, in µs.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// moments are when something happened in one exchange, by this process's clock.
type moments struct{ got, said time.Time }

// talker is an agent that answers each turn with one token, then the whole.
type talker struct {
	mu   sync.Mutex // guards last
	last moments    // of the newest turn; zero = there was none since it was taken
}

// note keeps when a turn came and its first token was said. A turn that the host
// hands over again counts as the newest: nobody waits for the older one.
func (t *talker) note(m moments) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = m
}

// take returns what was noted last, and forgets it.
func (t *talker) take() moments {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.last = moments{} }()
	return t.last
}

const (
	firstToken = "Hello"
	wholeText  = "Hello there"
)

// Tokens measures the first token of every way in turn, on one host.
func Tokens(ctx context.Context, c TokensConfig) (r TokensReport, err error) {
	if c.Samples < 1 || c.Samples > maxRounds {
		return r, fmt.Errorf("samples: found %d, expected 1 to %d", c.Samples, maxRounds)
	}
	dir, err := os.MkdirTemp(c.Dir, "pontoon-bench-")
	if err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	host, err := startHost(ctx, c.Exe, dir)
	if err != nil {
		return r, err
	}
	defer host.stop()
	api, err := host.rest()
	if err != nil {
		return r, err
	}
	defer api.close()
	r = TokensReport{Machine: DescribeMachine(c.Dir), Samples: c.Samples}
	for _, kind := range []string{"websocket", "agui", "webhook"} {
		ways, err := measureKind(ctx, c, api, host, kind)
		if err != nil {
			return r, fmt.Errorf("%s agent: %w", kind, err)
		}
		r.Ways = append(r.Ways, ways...)
	}
	return r, nil
}

// measureKind measures an agent of one kind behind every far end.
func measureKind(ctx context.Context, c TokensConfig, api *rest, host *child, kind string) (ways []TokensWay, err error) {
	t := new(talker)
	stop, err := t.start(ctx, api, host, kind)
	if err != nil {
		return nil, err
	}
	defer stop()
	for _, user := range []string{"adapter", "agui"} {
		c.Progress.say(fmt.Sprintf("%s agent, %s", kind, user))
		way, err := t.measure(ctx, c, api, host, kind, user)
		if err != nil {
			return nil, fmt.Errorf("behind %s: %w", user, err)
		}
		ways = append(ways, way)
	}
	return ways, nil
}

// ask says something as a user and returns when the first token arrived.
type ask func(ctx context.Context, n int) (asked, heard time.Time, err error)

func (t *talker) measure(ctx context.Context, c TokensConfig, api *rest, host *child, kind, user string) (TokensWay, error) {
	way := TokensWay{Agent: kind, User: user}
	var asked, token histogram
	open := adapterUser
	if user == "agui" {
		open = aguiUser
	}
	say, end, err := open(ctx, api, host, kind)
	if err != nil {
		return way, err
	}
	defer end()
	for n := range c.Samples + warmups {
		t.take() // of a turn that was handed over again after its answer
		begun, heard, err := within(ctx, n, say)
		if err != nil {
			return way, fmt.Errorf("question %d: %w", n, err)
		}
		// The agent notes a turn before it says anything to it.
		m := t.take()
		if m.got.IsZero() {
			return way, fmt.Errorf("question %d was answered, and the agent was not asked", n)
		}
		if n >= warmups {
			asked.add(m.got.Sub(begun))
			token.add(heard.Sub(m.said))
		}
	}
	way.Asked, way.Token = percentiles(&asked), percentiles(&token)
	return way, nil
}

// within asks one question, which is answered in time or not at all.
func within(ctx context.Context, n int, say ask) (asked, heard time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return say(ctx, n)
}

// answerTimeout is how long an answer may take; only a host that has lost it, or a
// machine that does nothing, takes that long.
const answerTimeout = 2 * time.Minute

// warmups are not counted: the first of a connection cost more.
const warmups = 5

func percentiles(h *histogram) Percentiles {
	us := func(q float64) float64 { return float64(h.quantile(q)) / 1e3 }
	return Percentiles{us(0.5), us(0.99)}
}

// adapterUser is a user behind an adapter that shows streams.
func adapterUser(ctx context.Context, api *rest, host *child, agent string) (ask, func(), error) {
	tokens, err := provisionAs(ctx, host, "tokens-"+agent, 1, map[string]any{"agent": "bench-" + agent})
	if err != nil {
		return nil, nil, err
	}
	ws, _, err := dial(ctx, host.bridge(), tokens[0])
	if err != nil {
		return nil, nil, err
	}
	if _, err := register(ws, []byte(`{"type":"register","platform":"bench","protocol":"1.1","capabilities":["text","stream"]}`)); err != nil {
		_ = ws.Close()
		return nil, nil, err
	}
	return func(_ context.Context, n int) (asked, heard time.Time, err error) {
		frame := wire.Inbound{Type: wire.TypeMessage, Routing: wire.Routing{ConversationID: "c"}, UserID: "u", Text: "ask " + strconv.Itoa(n)}
		asked = time.Now()
		if err := ws.WriteMessage(websocket.TextMessage, frame.Append(nil)); err != nil {
			return asked, heard, err
		}
		_ = ws.SetReadDeadline(time.Now().Add(answerTimeout))
		for {
			_, payload, err := ws.ReadMessage()
			if err != nil {
				return asked, heard, err
			}
			if heard.IsZero() && bytes.Contains(payload, []byte(firstToken)) {
				heard = time.Now()
			}
			if isWhole(payload) {
				return asked, heard, nil
			}
		}
	}, func() { _ = ws.Close() }, nil
}

// isWhole reports the last frame of an answer. What has the whole text may be a
// draft: then the last comes behind it, and would be taken for the next answer.
func isWhole(payload []byte) bool {
	var frame struct{ Type wire.Type }
	return bytes.Contains(payload, []byte(wholeText)) && json.Unmarshal(payload, &frame) == nil && frame.Type != wire.TypeStream
}

// aguiUser is a client that runs an agent by AG-UI.
func aguiUser(ctx context.Context, api *rest, _ *child, agent string) (ask, func(), error) {
	if err := api.call(ctx, http.MethodPatch, "/channels/agui", map[string]any{"agent": "bench-" + agent}, new(struct{})); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, n int) (asked, heard time.Time, err error) {
		body, err := json.Marshal(map[string]any{
			"threadId": "t-" + agent, "runId": strconv.Itoa(n), "tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
			"messages": []any{map[string]any{"id": agent + strconv.Itoa(n), "role": "user", "content": "ask"}},
		})
		if err != nil {
			return asked, heard, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, api.base+"/agent/run", bytes.NewReader(body))
		if err != nil {
			return asked, heard, err
		}
		req.Header.Set("Authorization", "Bearer "+api.key)
		req.Header.Set("Content-Type", "application/json")
		asked = time.Now()
		resp, err := api.http.Do(req)
		if err != nil {
			return asked, heard, err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
			return asked, heard, fmt.Errorf("run: %s: %s", resp.Status, text)
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			switch line := lines.Text(); {
			case heard.IsZero() && strings.Contains(line, firstToken):
				heard = time.Now()
			case strings.Contains(line, "RUN_FINISHED") && !heard.IsZero():
				return asked, heard, nil
			case strings.Contains(line, "RUN_ERROR"):
				return asked, heard, fmt.Errorf("run: %s", line)
			}
		}
		return asked, heard, io.ErrUnexpectedEOF
	}, func() {}, nil
}

// Print writes the report for people.
func (r *TokensReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d of each, one after the other; times in µs\n\n", r.Machine, r.Samples)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "AGENT\tUSER BEHIND\tQUESTION P50\tP99\tFIRST TOKEN P50\tP99")
	for _, way := range r.Ways {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", way.Agent, way.User,
			Number(way.Asked.P50, 0), Number(way.Asked.P99, 0), Number(way.Token.P50, 0), Number(way.Token.P99, 0))
	}
	return tw.Flush()
}
