package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// runsOfKey is how many runs the host lets a key have at once.
const runsOfKey = 16

// posts are what callers post to a server.
type posts struct {
	path    string
	conns   int
	key     func(conn int) string
	body    func(conn int, id string) any
	answers func(answer, id []byte) int
}

// callers makes them, each with a connection of its own. end must be called, also after an error.
func (p *posts) callers(ctx context.Context, url string, run int) (all []*caller, end func(), err error) {
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
	}
	for i := range p.conns {
		id := idOf(run, i, 0)
		b, err := json.Marshal(p.body(i, id))
		if err != nil {
			return nil, end, fmt.Errorf("encode question: %w", err)
		}
		c := newCaller(nil, id)
		c.answers = p.answers
		over, err := c.wired(ctx, url, p.path, p.key(i), b)
		if err != nil {
			return nil, end, err
		}
		ends = append(ends, over)
		all = append(all, c)
	}
	return all, end, nil
}

// way puts them on a server, on which nothing else is to be looked at.
func (p *posts) way(b *httpBed, name string, server *child) way {
	return way{name, func(ctx context.Context, _ int) (Sample, error) {
		all, end, err := p.callers(ctx, server.url, b.run())
		defer end()
		if err != nil {
			return Sample{}, err
		}
		return drive(ctx, target{name: name, pid: server.pid()}, all, 0, b.span())
	}}
}

// beside runs a bare server in a process of its own.
func (b *httpBed) beside(ctx context.Context, role string, args ...string) (*child, error) {
	c, err := spawnRole(role, args...)
	if err == nil {
		err = c.readyOrKill(ctx)
	}
	if err == nil {
		b.atEnd(c.stop)
	}
	return c, err
}

// openRuns measures clients of AG-UI that the built-in echo answers, beside a server
// that answers the same events and nothing else.
func openRuns(ctx context.Context, b *httpBed, s Scenario) ([]way, error) {
	var keys []string
	for i := range (s.Conns + runsOfKey - 1) / runsOfKey {
		var made struct{ Key string }
		in := map[string]any{"name": fmt.Sprintf("bench-%d", i), "scopes": []string{"agent:run"}}
		if err := b.api.call(ctx, http.MethodPost, "/keys", in, &made); err != nil {
			return nil, err
		}
		keys = append(keys, made.Key)
	}
	bare, err := b.beside(ctx, roleAgent, "agui")
	if err != nil {
		return nil, err
	}
	p := &posts{
		"/api/v1/agent/run", s.Conns,
		func(conn int) string { return keys[conn/runsOfKey] },
		func(conn int, id string) any {
			return map[string]any{
				"threadId": fmt.Sprintf("thread-%05d", conn), "runId": "run-" + id, "tools": []any{}, "context": []any{}, "state": map[string]any{},
				"messages": []any{map[string]any{"id": id, "role": "user", "content": padded(id, s.Size)}},
			}
		}, textsOfRun,
	}
	return []way{p.way(b, "host", b.host), p.way(b, "bare", bare)}, nil
}

// openSends measures messages that are posted for an adapter, beside a handler of the
// same framework that reads the same body and answers the same.
func openSends(ctx context.Context, b *httpBed, s Scenario) ([]way, error) {
	host, err := b.adapters(ctx, "bench", "echo", 1)
	if err != nil {
		return nil, err
	}
	bare, err := b.beside(ctx, roleBareSend, sentAnswer)
	if err != nil {
		return nil, err
	}
	p := &posts{
		"/api/v1/channels/" + channelName("bench", 0) + "/messages", s.Conns,
		func(int) string { return b.api.key },
		func(conn int, id string) any {
			return map[string]any{"conversation_id": fmt.Sprintf("c%05d", conn), "text": padded(id, s.Size)}
		},
		func(answer, _ []byte) int { return bytes.Count(answer, []byte(`"state":"sent"`)) },
	}
	return []way{
		{"host", func(ctx context.Context, _ int) (Sample, error) { return p.taken(ctx, b, host, s) }},
		p.way(b, "bare", bare),
	}, nil
}

// taken measures posts that an adapter takes.
func (p *posts) taken(ctx context.Context, b *httpBed, host target, s Scenario) (Sample, error) {
	run := b.run()
	taker, err := take(ctx, host, s, run)
	if err != nil {
		return Sample{}, err
	}
	defer taker.close()
	all, end, err := p.callers(ctx, b.host.url, run)
	defer end()
	if err != nil {
		return Sample{}, err
	}
	one, err := drive(ctx, host, all, 0, b.span())
	if err == nil {
		err = taker.compare(ctx, all, &one)
	}
	if err == nil {
		err = stored(ctx, b.api, channelName("bench", 0), run, all, &one)
	}
	return one, err
}

// stored looks for the last message of each client in the channel's history.
func stored(ctx context.Context, api *rest, channel string, run int, clients []*caller, s *Sample) error {
	var page struct {
		Messages []entry `json:"messages"`
	}
	if err := api.call(ctx, http.MethodGet, "/channels/"+channel+"/messages?limit=500", nil, &page); err != nil {
		return err
	}
	for i, c := range clients {
		last := idOf(run, i, c.sent-1)
		if c.answered == c.sent && !slices.ContainsFunc(page.Messages, func(e entry) bool { return strings.HasPrefix(e.Text, last) }) {
			if s.Lost++; s.Refusal == "" {
				s.Refusal = last + " was answered, and is not in the history"
			}
		}
	}
	return nil
}

// sentAnswer is the id in what the bare server answers: as long as the host's.
const sentAnswer = "0aks3m2p8001x"

// bareBody and bareSent are what of a message and of its answer the load has.
type bareBody struct {
	Channel string `path:"id"`
	Body    struct {
		ConversationID string `json:"conversation_id" maxLength:"4096"`
		Text           string `json:"text"`
	}
}

type bareSent struct {
	Body struct {
		ID       string   `json:"id"`
		State    string   `json:"state"`
		Degraded []string `json:"degraded"`
	}
}

// serveBareSend is the bare server of openSends, until ctx ends.
func serveBareSend(ctx context.Context, id string, w io.Writer) error {
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("Bare", "0")
	cfg.CreateHooks = nil // as the host has it: no $schema in what is answered
	huma.Post(humago.New(mux, cfg), "/api/v1/channels/{id}/messages", func(_ context.Context, in *bareBody) (*bareSent, error) {
		out := &bareSent{}
		out.Body.ID, out.Body.State, out.Body.Degraded = id, "sent", []string{}
		return out, nil
	})
	return serveHTTP(ctx, w, "Bare", mux.ServeHTTP)
}

// taker is an adapter that counts what it is sent, by whom it was posted.
type taker struct {
	*peer
	run     int
	posters []tally // only its own goroutine touches them until it has ended
	taken   atomic.Int64
	stray   int
	ended   chan struct{}
}

// take attaches an adapter. close must be called.
func take(ctx context.Context, t target, s Scenario, run int) (*taker, error) {
	one := Scenario{Conns: 1, Window: 1, Conversations: 1, Size: s.Size}
	p, err := newPeer(ctx, t, one, run, 0)
	if err != nil {
		return nil, err
	}
	k := &taker{peer: p, run: run, posters: make([]tally, s.Conns), ended: make(chan struct{})}
	for i := range k.posters {
		k.posters[i].last = make([]int, 1)
	}
	go func() { // close waits for it
		defer close(k.ended)
		for {
			frame, err := k.read()
			if err != nil {
				return // compare finds what has not come
			}
			if isAnswer(value(frame, keyType)) {
				k.note(frame)
			}
		}
	}()
	return k, nil
}

// note counts a frame.
func (k *taker) note(frame []byte) {
	id := value(frame, keyText)
	if len(id) < idLen {
		k.stray++
		return
	}
	conn, ok := digits(id[runDigits+1 : runDigits+1+connDigits])
	seq, known := digits(id[idLen-seqDigits : idLen])
	if !ok || !known || conn >= len(k.posters) || string(id[:idLen]) != idOf(k.run, conn, seq) {
		k.stray++
		return
	}
	if k.posters[conn].note(seq) {
		k.taken.Add(1)
	}
}

// compare waits for what was answered to be there, and counts what is not.
func (k *taker) compare(ctx context.Context, clients []*caller, s *Sample) error {
	late := time.After(grace)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for k.taken.Load() < int64(s.Answered) {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			return ctx.Err()
		case <-k.ended:
		case <-late:
		}
		break
	}
	k.close()
	s.Stray += k.stray
	for i := range k.posters {
		there := &k.posters[i]
		there.sent = clients[i].answered
		got := there.count()
		s.Lost, s.Duplicated, s.Disordered = s.Lost+got.Lost, s.Duplicated+got.Duplicated, s.Disordered+got.Disordered
		if got.Lost > 0 && s.Refusal == "" {
			s.Refusal = fmt.Sprintf("%d messages that were posted did not come to the adapter", got.Lost)
		}
	}
	return nil
}

// close detaches the adapter, and waits for its reader.
func (k *taker) close() {
	_ = k.ws.Close()
	<-k.ended
}
