package bridge_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait, for the disk and for timeouts, more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, toxic.Left()...)
}

// patience is how long anything may take before a test gives up.
const patience = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// eventuallyOr is eventually for a message that depends on what was seen last.
var eventuallyOr = await.UntilElse

// token is the first token of every channel that a test makes; the channel's
// name follows it.
const token = "a-token-of-the-operator-for-"

// setup is what a test may change before its host starts.
type setup struct {
	dir         string
	agents      map[string]hub.Agent  // beside those that are rows
	kinds       map[string]agent.Kind // of rows
	typing      time.Duration         // an hour unless changed: no test sees it by chance
	grace       time.Duration
	ack         time.Duration // an adapter's time to acknowledge
	ttl         time.Duration // of what is queued
	retry       time.Duration // of agents that are away
	rate        int           // frames a second of a channel
	bridge      bridge.Options
	store       sqlite.Options
	now         func() time.Time // of the gate
	gate        func(bridge.Gate) bridge.Gate
	steady      *steadyClock
	refuseQuery bool
	smallBuffer bool // the host's sockets hold little
}

// host is a whole host in this process, on a socket of its own.
type host struct {
	t   *testing.T
	dir string

	shared string // a directory whose files may be sent by their paths

	store *sqlite.Store
	files *attach.Store
	hub   *hub.Hub
	slots *bridge.Slots

	roster *agent.Roster

	key  string // the operator's
	addr string
	log  *recorder

	stopOnce sync.Once
	stopped  func()
}

// making serializes api.New, which sets a variable of its library.
var making sync.Mutex

// start runs a host until the test ends or calls stop.
func start(t *testing.T, change ...func(*setup)) *host {
	t.Helper()
	s := setup{agents: map[string]hub.Agent{}, typing: time.Hour}
	for _, c := range change {
		c(&s)
	}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	h := &host{t: t, dir: s.dir, shared: t.TempDir(), log: new(recorder)}
	log := slog.New(h.log)
	s.store.Log, s.bridge.Log = log, log
	var err error
	if h.store, err = sqlite.Open(t.Context(), s.dir, s.store); err != nil {
		t.Fatal(err)
	}
	keys, err := auth.OpenKeys(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.key, err = auth.ReadKey(s.dir); err != nil {
		t.Fatal(err)
	}
	if s.agents["echo"] == nil {
		s.agents["echo"] = &agent.Echo{Assets: "http://pontoon.test/assets/", Pause: 100 * time.Millisecond}
	}
	if h.files, err = attach.Open(s.dir, attach.Options{Base: func() string { return "http://" + h.addr }, Log: log, Files: []string{h.shared}}); err != nil {
		t.Fatal(err)
	}
	h.roster = agent.NewRoster(log)
	h.roster.Register("echo", agent.Kind{Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil }})
	for name, k := range s.kinds {
		h.roster.Register(name, k)
	}
	if s.steady == nil {
		s.steady = new(steadyClock)
	}
	h.hub = hub.New(hub.Options{Steady: s.steady.Now, After: s.steady.After, Store: h.store, Attachments: h.files, Agents: both{s.agents, h.roster}, Commands: command.New(), Log: log, TypingDelay: s.typing, RecoverGrace: s.grace, AckTimeout: s.ack, TTL: s.ttl, Now: s.store.Now, Rate: s.rate, AwayRetry: s.retry})
	if err := h.roster.Load(t.Context(), h.store); err != nil {
		t.Fatal(err)
	}
	if _, err := h.hub.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	gate := auth.NewGate(h.store, s.now)
	var admits bridge.Gate = gate
	if s.gate != nil {
		admits = s.gate(gate)
	}
	h.slots = bridge.New(bridge.Local(h.hub), admits, s.bridge)
	making.Lock()
	handler := api.New(t.Context(), api.Options{
		Store: h.store, Attachments: h.files, Hub: h.hub, Slots: h.slots, Agents: h.roster, Keys: keys, Assets: agent.Assets(), Log: log, Version: "test",
		Now: time.Now, Ready: h.store.Writable, RefuseQueryToken: s.refuseQuery,
	})
	making.Unlock()
	h.serve(handler, gate, s.smallBuffer)
	return h
}

func (h *host) serve(handler http.Handler, gate *auth.Gate, smallBuffer bool) {
	srv := httptest.NewUnstartedServer(handler)
	if smallBuffer {
		srv.Listener = smallListener{srv.Listener}
	}
	srv.Start()
	h.addr = srv.Listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, serve := range []func(context.Context) error{gate.Serve, h.slots.Serve} {
		wg.Go(func() {
			if err := serve(ctx); err != nil && !errors.Is(err, context.Canceled) {
				h.t.Error(err)
			}
		})
	}
	h.stopped = func() {
		h.slots.Close()
		srv.Close()
		cancel()
		wg.Wait()
		h.hub.Close()
		h.roster.Close()
		if err := errors.Join(h.store.Close(), h.files.Close()); err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(h.stop)
}

// stop ends the host as the program does, and waits for it.
func (h *host) stop() { h.stopOnce.Do(h.stopped) }

// again starts another host on the same data directory.
func (h *host) again(change ...func(*setup)) *host {
	h.t.Helper()
	h.stop()
	return start(h.t, append([]func(*setup){func(s *setup) { s.dir = h.dir }}, change...)...)
}

// channel makes a channel whose token is tokenOf(name).
func (h *host) channel(name string, change ...func(*ledger.Channel)) ledger.Channel {
	h.t.Helper()
	row := ledger.Channel{ID: uuid.NewString(), Name: name, Kind: "bridge", Enabled: true, Agent: "echo"}
	for _, c := range change {
		c(&row)
	}
	secret := auth.NewCredential(tokenOf(name), time.Time{})
	made, err := h.store.CreateChannel(h.t.Context(), row, &secret, ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		h.t.Fatal(err)
	}
	return made
}

func tokenOf(name string) string { return token + name }

// byName finds a channel that an earlier host made.
func (h *host) byName(name string) ledger.Channel {
	h.t.Helper()
	row, err := h.store.Channel(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return row
}

func withAgent(name string) func(*ledger.Channel) {
	return func(c *ledger.Channel) { c.Agent = name }
}

func withQueue(c *ledger.Channel) { c.Queue = true }

// history is the channel's messages, oldest first.
func (h *host) history(c ledger.Channel) []ledger.Entry {
	h.t.Helper()
	const page = 10_000
	var entries []ledger.Entry
	for last, full := ledger.MessageID(0), true; full; {
		more, err := h.store.Before(context.Background(), ledger.Scope{Channel: c.Key}, last, page)
		if err != nil {
			h.t.Fatal(err)
		}
		if full = ledger.PageFull(more, page); len(more) > 0 {
			last = more[len(more)-1].ID
		}
		entries = append(entries, more...)
	}
	slices.Reverse(entries)
	return entries
}

// line is a message in short: "in handled hello", "out failed/rejected text".
func line(e ledger.Entry) string {
	state := e.State.String()
	if e.Reason != "" {
		state += "/" + string(e.Reason)
	}
	return fmt.Sprintf("%s %s %s", e.Direction, state, e.Text)
}

// wantHistory waits until the channel's messages are these.
func (h *host) wantHistory(c ledger.Channel, want ...string) {
	h.t.Helper()
	var got []string
	eventuallyOr(h.t, func() bool {
		got = got[:0]
		for _, e := range h.history(c) {
			got = append(got, line(e))
		}
		return slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("history:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	})
}

// send is an operator's message to a conversation.
func (h *host) send(c ledger.Channel, conversation, text string) (hub.Sent, error) {
	return h.hub.Send(context.Background(), c, hub.Outgoing{Conversation: conversation, Message: message.Text(text)})
}

func (h *host) mustSend(c ledger.Channel, conversation, text string) {
	h.t.Helper()
	if _, err := h.send(c, conversation, text); err != nil {
		h.t.Fatalf("Send %.40q: %v", text, err)
	}
}

// burst sends n messages of a size at the same time to conversation c, so that
// commits cost little; it returns how many were taken.
func (h *host) burst(c ledger.Channel, n, size int) int {
	h.t.Helper()
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			switch _, err := h.send(c, "c", fmt.Sprint(i, " ", strings.Repeat("x", size))); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, hub.ErrNotAttached):
				h.t.Error(err)
			}
		})
	}
	wg.Wait()
	return int(taken.Load())
}

func (h *host) attached(c ledger.Channel) bool {
	_, ok := h.hub.Attached(c.Key)
	return ok
}

// operator calls the REST API and wants the status.
func (h *host) operator(method, path, body string, status int) {
	h.t.Helper()
	if got, answer := h.ask(method, path, body); got != status {
		h.t.Fatalf("%s %s: status %d, want %d: %.300s", method, path, got, status, answer)
	}
}

// ask calls the REST API.
func (h *host) ask(method, path, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(h.t.Context(), method, "http://"+h.addr+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+h.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// recorder keeps the host's log, for what leaves no other trace.
type recorder struct {
	mu    sync.Mutex
	lines []string
	panic string // a line that makes it panic, as a defect would
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(_ context.Context, l slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := l.Message
	l.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	r.lines = append(r.lines, text)
	if r.panic != "" && strings.HasPrefix(text, r.panic) {
		r.panic = ""
		panic("the log is broken")
	}
	return nil
}

func (r *recorder) count(prefix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, l := range r.lines {
		if strings.HasPrefix(l, prefix) {
			n++
		}
	}
	return n
}

// has reports whether a line begins with prefix and has text in it.
func (r *recorder) has(prefix, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, func(l string) bool { return strings.HasPrefix(l, prefix) && strings.Contains(l, text) })
}

func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	return await.Value(t, what, c)
}

// smallListener's connections hold little, so that a peer that doesn't read is
// noticed after kilobytes and not megabytes.
type smallListener struct{ net.Listener }

const smallBuffer = 128 << 10 // less than a segment of the loopback would make it crawl

func (l smallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		shrink(c)
	}
	return c, err
}

func shrink(c net.Conn) {
	tcp := c.(*net.TCPConn)
	_ = tcp.SetReadBuffer(smallBuffer)
	_ = tcp.SetWriteBuffer(smallBuffer)
}

var allCaps = strings.Join(wire.CapNames(), " ")
