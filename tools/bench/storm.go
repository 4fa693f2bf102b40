package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// How long adapters try to come back, and wait between two tries, roughly.
const (
	stormTimeout = 2 * time.Minute
	stormPause   = 500 * time.Millisecond
)

// StormConfig is what Storm runs.
type StormConfig struct {
	Exe      string
	Dir      string // where the host's data directory is made; "" = the system's
	Adapters int
	Rounds   int // of each way to be cut off
	Progress Progress
}

// StormReport is how adapters came back that were all cut off at once.
type StormReport struct {
	Machine
	Adapters int `json:"adapters"`
	Rounds   int `json:"rounds"`

	Reset  Spread `json:"reset_seconds"`  // from when all connections were reset until all are let in
	Silent Spread `json:"silent_seconds"` // the same when the host knows nothing: each replaces the one before
	Killed Spread `json:"killed_seconds"` // the same from the kill of the host, its start included

	Asked  int `json:"asked"`  // messages after each return, one of each adapter
	Lost   int `json:"lost"`   // of them, not answered
	Stale  int `json:"stale"`  // slots with another session than the newest, or one that should be empty
	Untold int `json:"untold"` // replaced, and closed otherwise

	Retries int `json:"retries"` // that it took some to be let in
}

// OK reports whether everybody came back and nobody was left behind.
func (r *StormReport) OK() bool { return r.Asked > 0 && r.Lost+r.Stale+r.Untold == 0 }

// storm is the adapters of one run.
type storm struct {
	StormConfig
	dir    string
	host   *child
	tokens []string
	conns  []*websocket.Conn
	round  int

	retries atomic.Int64
}

// Storm attaches adapters, cuts all of them off and lets all of them come back
// at once, again and again: by resetting their connections, by forgetting them,
// and by killing the host. Whoever came back must be answered.
func Storm(ctx context.Context, c StormConfig) (r StormReport, err error) {
	switch {
	case c.Adapters < 1 || c.Adapters > maxConns/2:
		return r, fmt.Errorf("adapters: found %d, expected 1 to %d", c.Adapters, maxConns/2)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return r, fmt.Errorf("rounds: found %d, expected 1 to %d", c.Rounds, maxRounds)
	}
	if err := allowFiles(2 * c.Adapters); err != nil {
		return r, err
	}
	s := &storm{StormConfig: c, conns: make([]*websocket.Conn, c.Adapters)}
	if s.dir, err = os.MkdirTemp(c.Dir, "pontoon-bench-"); err != nil {
		return r, fmt.Errorf("make data directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	if s.host, err = startHost(ctx, c.Exe, s.dir); err != nil {
		return r, err
	}
	defer func() { s.host.kill() }()
	c.Progress.say(fmt.Sprintf("making %d channels", c.Adapters))
	if s.tokens, err = provision(ctx, s.host, "storm", c.Adapters); err != nil {
		return r, err
	}
	r = StormReport{Machine: DescribeMachine(s.dir), Adapters: c.Adapters, Rounds: c.Rounds}
	return r, s.run(ctx, &r)
}

func (s *storm) run(ctx context.Context, r *StormReport) error {
	defer s.reset()
	if err := s.attach(ctx); err != nil {
		return err
	}
	ways := []struct {
		name string
		cut  func(context.Context, *StormReport) error
		took []float64
		to   *Spread
	}{{"reset", s.byReset, nil, &r.Reset}, {"silent", s.bySilence, nil, &r.Silent}, {"killed", s.byKill, nil, &r.Killed}}
	for round := range s.Rounds {
		for i := range ways {
			w := &ways[i]
			began := now()
			if err := w.cut(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.took = append(w.took, (now() - began).Seconds())
			s.Progress.say(fmt.Sprintf("round %d of %d: all %d back after %s in %.2f s", round+1, s.Rounds, s.Adapters, w.name, w.took[round]))
			if err := s.check(ctx, r); err != nil {
				return err
			}
		}
	}
	r.Retries = int(s.retries.Load())
	for i := range ways {
		*ways[i].to = SpreadOf(ways[i].took)
	}
	s.reset()
	return s.empty(ctx, r)
}

// attach lets all of them in at once. Whoever is not let in tries again, as
// adapters do: a host that is busy may take longer than register may.
func (s *storm) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stormTimeout)
	defer cancel()
	return each(s.Adapters, s.Adapters, func(i int) error {
		for {
			ws, _, err := connect(ctx, s.host.bridge(), s.tokens[i])
			if err == nil {
				s.conns[i] = ws
				return nil
			}
			s.retries.Add(1)
			select {
			case <-ctx.Done():
				return fmt.Errorf("adapter %d: %w", i, err)
			case <-time.After(stormPause/2 + rand.N(stormPause)):
			}
		}
	})
}

// reset ends all connections as a machine does that goes down.
func (s *storm) reset() {
	for _, ws := range s.conns {
		if ws == nil {
			continue
		}
		if conn, ok := ws.NetConn().(*corked); ok {
			if tcp, ok := conn.Conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
		}
		_ = ws.Close()
	}
}

func (s *storm) byReset(ctx context.Context, _ *StormReport) error {
	s.reset()
	return s.attach(ctx)
}

// bySilence lets them come back while the connections before still stand. Each
// of those must be told that it was replaced.
func (s *storm) bySilence(ctx context.Context, r *StormReport) error {
	before := s.conns
	s.conns = make([]*websocket.Conn, s.Adapters)
	if err := s.attach(ctx); err != nil {
		return err
	}
	told := make([]bool, s.Adapters)
	_ = each(s.Adapters, dialers, func(i int) error {
		defer func() { _ = before[i].Close() }()
		_ = before[i].SetReadDeadline(time.Now().Add(grace))
		_, _, err := before[i].ReadMessage()
		told[i] = websocket.IsCloseError(err, int(wire.CloseReplaced))
		return nil
	})
	for _, ok := range told {
		if !ok {
			r.Untold++
		}
	}
	return nil
}

func (s *storm) byKill(ctx context.Context, _ *StormReport) (err error) {
	s.host.kill()
	if s.host, err = startHost(ctx, s.Exe, s.dir); err != nil {
		return err
	}
	s.reset()
	return s.attach(ctx)
}

// check lets each say something that must be answered to it, and counts who is
// attached.
func (s *storm) check(ctx context.Context, r *StormReport) error {
	s.round++
	r.Asked += s.Adapters
	lost := make([]bool, s.Adapters)
	_ = each(s.Adapters, dialers, func(i int) error {
		lost[i] = !s.answers(s.conns[i], i)
		return nil
	})
	for _, l := range lost {
		if l {
			r.Lost++
		}
	}
	n, err := s.attached(ctx)
	r.Stale += max(n-s.Adapters, s.Adapters-n)
	return err
}

func (s *storm) answers(ws *websocket.Conn, i int) bool {
	ctx := wire.Raw(fmt.Sprintf(`"%d of %d"`, i, s.round))
	in := wire.Inbound{Type: wire.TypeMessage, UserID: "u", Text: "there?", Routing: wire.Routing{SessionKey: "s", ReplyCtx: ctx}}
	if ws.WriteMessage(websocket.TextMessage, in.Append(nil)) != nil {
		return false
	}
	_ = ws.SetReadDeadline(time.Now().Add(dialTimeout))
	_, frame, err := ws.ReadMessage()
	if err != nil {
		return false
	}
	out, err := wire.DecodeOutbound(frame)
	return err == nil && out.Type == wire.TypeSend && out.ReplyCtx == ctx
}

// attached is how many slots are taken.
func (s *storm) attached(ctx context.Context) (n int, err error) {
	api, err := s.host.rest()
	if err != nil {
		return 0, err
	}
	defer api.close()
	for cursor := ""; ; {
		var page struct {
			Adapters   []json.RawMessage `json:"adapters"`
			NextCursor string            `json:"next_cursor"`
		}
		if err := api.call(ctx, http.MethodGet, "/adapters?limit=500&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			return n, err
		}
		n += len(page.Adapters)
		if cursor = page.NextCursor; cursor == "" {
			return n, nil
		}
	}
}

// empty waits until nobody is attached any more: all have gone.
func (s *storm) empty(ctx context.Context, r *StormReport) error {
	for end := time.Now().Add(dialTimeout); ; {
		n, err := s.attached(ctx)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			r.Stale += n
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Print writes the report for people.
func (r *StormReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d adapters come back at once, %d rounds\n\n", r.Machine, r.Adapters, r.Rounds)
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tab, "CUT OFF BY\tALL BACK AFTER, S")
	fmt.Fprintf(tab, "reset\t%s\nsilence: each replaces itself\t%s\nkill and start of the host\t%s\n", r.Reset.Show(2), r.Silent.Show(2), r.Killed.Show(2))
	if err := tab.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d messages not answered, %d slots stale, %d replaced and not told; %d tries were in vain\n", r.Lost, r.Asked, r.Stale, r.Untold, r.Retries)
	return err
}
