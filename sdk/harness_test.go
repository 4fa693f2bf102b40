package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	awaits "github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) { leaks.Main(m, toxic.Left()...) }

const (
	patience  = awaits.Limit
	testToken = "pnt_a-token-nobody-may-log"
)

func quick() *timing {
	return &timing{
		register: patience, silence: patience, firstWait: 2 * time.Millisecond, lastWait: 20 * time.Millisecond,
		settled: 50 * time.Millisecond, grace: patience, abandon: patience,
	}
}

// eventually waits for a condition; what says which.
var eventually = awaits.Until

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	return awaits.Value(t, what, c)
}

// testHost is a host on loopback that speaks real frames.
type testHost struct {
	*httptest.Server
	peers chan *peer // every connection whose register was accepted

	mu       sync.Mutex
	requests int
	all      []*peer
	refuse   func(request int) string // reason of a failed register_ack, "" = accept
	reject   func(request int) int    // HTTP status in place of an upgrade, 0 = upgrade
	grant    wire.Caps                // 0 = this host speaks protocol 1.0 alone
	window   int                      // that it grants
	ahead    int                      // messages of a conversation that it sends at once
	cursor   string                   // that it has committed
	serving  sync.WaitGroup
}

// peer is one registered connection as the host sees it.
type peer struct {
	conn     *transport.WebSocket
	header   http.Header
	query    string
	first    string        // the register frame
	register *wire.Inbound // and what it says
	frames   chan string
	ended    chan error
}

func newHost(t *testing.T) *testHost {
	h := &testHost{peers: make(chan *peer, 1000)}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(func() {
		h.mu.Lock()
		for _, p := range h.all {
			_ = p.conn.Close(wire.CloseDraining, "test is over")
		}
		h.mu.Unlock()
		h.Close()
		h.serving.Wait()
	})
	return h
}

func (h *testHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

func (h *testHost) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests++
	n, refuse, reject := h.requests, h.refuse, h.reject
	h.serving.Add(1)
	h.mu.Unlock()
	defer h.serving.Done()
	if reject != nil {
		if status := reject(n); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	if r.URL.Path != wire.Path {
		http.NotFound(w, r)
		return
	}
	conn, err := transport.Upgrade(w, r)
	if err != nil {
		return
	}
	p := &peer{conn: conn, header: r.Header, query: r.URL.RawQuery, frames: make(chan string, 10_000), ended: make(chan error, 1)}
	h.mu.Lock()
	h.all = append(h.all, p)
	h.mu.Unlock()
	frame, err := conn.Read()
	if err != nil {
		return
	}
	p.first = string(frame)
	var bad *wire.Error
	if p.register, bad = wire.DecodeInbound(frame); bad != nil {
		panic(fmt.Sprintf("register frame %s: %v", frame, bad))
	}
	reason := ""
	if refuse != nil {
		reason = refuse(n)
	}
	_ = conn.Write(h.acknowledge(p.register.Register, reason).Append(nil))
	if reason != "" {
		_ = conn.Close(wire.CloseRefused, reason)
	} else {
		h.peers <- p
	}
	for {
		frame, err := conn.Read()
		if err != nil {
			p.ended <- err
			return
		}
		p.frames <- string(frame)
	}
}

func (h *testHost) acknowledge(said *wire.Register, reason string) wire.RegisterAck {
	h.mu.Lock()
	defer h.mu.Unlock()
	ack := wire.RegisterAck{OK: reason == "", Error: reason}
	if h.grant != 0 && wire.Negotiate(said.Protocol) == wire.V11 {
		declared, _ := wire.ParseCapsFor(said.Protocol, said.Capabilities)
		ack.Protocol, ack.Channel = "1.1", wire.ChannelRef{ID: "1", Name: "test"}
		ack.Capabilities, ack.Cursor = wire.Effective(declared, h.grant).Names(), h.cursor
		ack.Limits = wire.Limits{MaxFrameBytes: wire.MaxFrame, PingIntervalMS: 54_000, Window: h.window, InFlight: h.ahead}
	}
	return ack
}

func (p *peer) write(t *testing.T, frames ...string) {
	t.Helper()
	raw := make([][]byte, len(frames))
	for i, f := range frames {
		raw[i] = []byte(f)
	}
	if err := p.conn.Write(raw...); err != nil {
		t.Fatalf("host writes: %v", err)
	}
}

func send(conversation, text string) string {
	f := wire.Frame{Type: wire.TypeSend, Text: text}
	return string(f.Append(nil, wire.Routing{SessionKey: conversation, ConversationID: conversation}))
}

// logs keeps what was logged.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// plain is an adapter with the two methods that every one has.
type plain struct {
	run  func(context.Context, *Host) error          // nil = wait for ctx
	send func(context.Context, Target, string) error // nil = succeed
}

func (a *plain) Run(ctx context.Context, h *Host) error {
	if a.run == nil {
		<-ctx.Done()
		return nil
	}
	return a.run(ctx, h)
}

func (a *plain) Send(ctx context.Context, to Target, text string) (Receipt, error) {
	if a.send == nil {
		return Receipt{}, nil
	}
	return Receipt{}, a.send(ctx, to, text)
}

// running is one Run in the background.
type running struct {
	stop func()
	logs *logs
	done chan struct{}
	err  error
}

// run starts Run against h; the test's end stops it and waits.
func run(t *testing.T, h *testHost, a Adapter, o Options) *running {
	r := &running{logs: &logs{}, done: make(chan struct{})}
	if o.URL == "" {
		o.URL = h.URL
	}
	if o.Token == "" {
		o.Token = testToken
	}
	if o.timing == nil {
		o.timing = quick()
	}
	o.Log = r.logs.logger()
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() {
		defer close(r.done)
		r.err = Run(ctx, "test", a, o)
	}()
	t.Cleanup(func() {
		cancel()
		receive(t, "Run ends", r.done)
		if text := r.logs.String(); strings.Contains(text, testToken) {
			t.Errorf("the token is in the log: %s", text)
		}
	})
	return r
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	receive(t, "Run ends", r.done)
	return r.err
}

// handed is an adapter whose Run hands out its Host.
func handed() (*plain, chan *Host) {
	hosts := make(chan *Host, 10)
	return &plain{run: func(ctx context.Context, h *Host) error {
		hosts <- h
		<-ctx.Done()
		return nil
	}}, hosts
}
