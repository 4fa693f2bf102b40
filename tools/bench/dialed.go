package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"
)

// posting is what a bare client is told: what the host posts to an agent, to be posted
// to the same agent by something that does nothing else.
type posting struct {
	URL     string        `json:"url"`
	Header  http.Header   `json:"header"`
	Body    string        `json:"body"`
	ID      string        `json:"id"`      // in the body: each question has its own
	Stream  bool          `json:"stream"`  // the answer is events
	AtOnce  int           `json:"at_once"` // questions
	Lasts   time.Duration `json:"lasts"`
	Asks    int           `json:"asks"`     // most questions; 0 = as many as it has time for
	RunName int           `json:"run_name"` // of its ids
}

// openDialed measures an agent that the host dials, behind adapters, beside a bare
// client of the same agent.
func openDialed(ctx context.Context, b *httpBed, s Scenario) ([]way, error) {
	agent, err := startAgent(ctx, b.host, s.Agent)
	if err != nil {
		return nil, err
	}
	b.atEnd(agent.stop)
	host, err := b.adapters(ctx, "bench", agentName(s.Agent), s.Conns)
	if err != nil {
		return nil, err
	}
	work, err := capture(ctx, b, s)
	if err != nil {
		return nil, fmt.Errorf("capture what the host posts: %w", err)
	}
	work.URL, work.AtOnce, work.Lasts, work.Asks = agent.url, s.Conns*s.Window, b.Duration, b.Messages
	if err := fill(ctx, b, host, s); err != nil {
		return nil, fmt.Errorf("fill the conversations: %w", err)
	}
	return []way{
		{"host", func(ctx context.Context, _ int) (Sample, error) { return measure(ctx, host, s, b.run(), b.span()) }},
		{"bare", func(ctx context.Context, _ int) (Sample, error) {
			work.RunName = b.run()
			return sampleOfRole(ctx, rolePoster, work)
		}},
	}, nil
}

// filled is how many questions and answers a conversation has before it is measured: an
// AG-UI agent is given the last 50 messages, and later runs are no longer.
const filled = 25

// fill lets conversations grow to what a run of AG-UI is given at most.
func fill(ctx context.Context, b *httpBed, t target, s Scenario) error {
	if s.Agent != "agui" {
		return nil
	}
	b.Progress.say("filling the conversations")
	one, err := measure(ctx, t, s, b.run(), span{maxDuration, filled * s.Conns * s.Conversations, grace})
	if err == nil && !one.Clean() {
		err = fmt.Errorf("found %+v", one.Count)
	}
	return err
}

// capture lets the host ask an agent that keeps what it was asked last.
func capture(ctx context.Context, b *httpBed, s Scenario) (posting, error) {
	var mu sync.Mutex // guards last
	var last posting
	answer := answerHook
	if s.Agent == "agui" {
		answer = answerRun
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the host tells
		}
		mu.Lock()
		last = posting{Header: r.Header.Clone(), Body: string(body)}
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	defer srv.Close()
	const name = "bench-captured"
	if _, err := b.api.newAgent(ctx, name, s.Agent, onLoopback(srv.URL)); err != nil {
		return last, err
	}
	t, err := b.adapters(ctx, "captured", name, 1)
	if err != nil {
		return last, err
	}
	one, run := s, b.run()
	one.Conns, one.Window = 1, 1
	seen, err := measure(ctx, t, one, run, span{maxDuration, filled + 1, grace})
	if err != nil {
		return last, err
	}
	mu.Lock()
	defer mu.Unlock()
	last.ID, last.Stream = idOf(run, 0, filled), s.Agent == "agui"
	if !seen.Clean() || !bytes.Contains([]byte(last.Body), []byte(last.ID)) {
		return last, fmt.Errorf("found %+v, and not the last question in %.300s", seen.Count, last.Body)
	}
	last.Header.Del("Content-Length") // made from the body
	return last, nil
}

// measure is the bare client, in a process of its own: Go's, with as many questions at
// once as it is told. That process is the server whose time counts.
func (p *posting) measure(ctx context.Context) (Sample, error) {
	if _, err := loopbackURL(p.URL); err != nil {
		return Sample{}, err
	}
	if p.AtOnce < 1 || p.AtOnce > maxConns {
		return Sample{}, errors.New("at once: found none, or too many")
	}
	if err := allowFiles(p.AtOnce); err != nil {
		return Sample{}, err
	}
	web := &http.Client{Timeout: p.Lasts + grace, Transport: &http.Transport{MaxIdleConnsPerHost: p.AtOnce, DisableCompression: true}}
	defer web.CloseIdleConnections()
	clients := make([]*caller, p.AtOnce)
	for i := range clients {
		clients[i] = p.caller(ctx, web, i)
	}
	return drive(ctx, target{name: "bare", pid: os.Getpid()}, clients, 0, span{p.Lasts, p.Asks, grace})
}

// caller asks with ids of its own, which take no more room than that of the body.
func (p *posting) caller(ctx context.Context, web *http.Client, i int) *caller {
	id := idOf(p.RunName, i, 0)
	c := newCaller(bytes.ReplaceAll([]byte(p.Body), []byte(p.ID), []byte(id)), id)
	var buf bytes.Buffer
	c.ask = func(question []byte) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(question))
		if err != nil {
			return nil, err
		}
		req.Header = p.Header.Clone()
		resp, err := web.Do(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		return whole(resp, &buf)
	}
	c.answers = func(answer, id []byte) int { return bytes.Count(answer, id) }
	if p.Stream {
		c.answers = textsOfRun
	}
	return c
}

// textsOfRun counts the messages of a run that say what was asked; 0 if it did not end
// well.
func textsOfRun(answer, id []byte) (n int) {
	if !bytes.Contains(answer, []byte(`"RUN_FINISHED"`)) {
		return 0
	}
	for event := range bytes.SplitSeq(answer, []byte("\n\n")) {
		if bytes.Contains(event, []byte(`"TEXT_MESSAGE_CONTENT"`)) && bytes.Contains(event, id) {
			n++
		}
	}
	return n
}
