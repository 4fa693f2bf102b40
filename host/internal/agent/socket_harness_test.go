package agent_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	patience = await.Limit
	secret   = "a-secret-of-the-operator-for-" // the name of a channel or agent follows
)

// bed is a whole host in this process, on a socket of its own.
type bed struct {
	t      *testing.T
	dir    string
	opts   agent.SocketOptions
	store  *sqlite.Store
	hub    *hub.Hub
	roster *agent.Roster
	addr   string
	stop   func()
}

var making sync.Mutex // api.New sets a variable of its library

func newBed(t *testing.T, o agent.SocketOptions) *bed { return openBed(t, t.TempDir(), o) }

func openBed(t *testing.T, dir string, o agent.SocketOptions) *bed {
	t.Helper()
	b := &bed{t: t, dir: dir, opts: o}
	log := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b.store, err = sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{Log: log})
	must(err)
	keys, err := auth.OpenKeys(dir)
	must(err)
	files, err := attach.Open(dir, attach.Options{Base: func() string { return "http://" + b.addr }, Log: log})
	must(err)
	b.roster = agent.NewRoster(log)
	b.hub = hub.New(hub.Options{Store: b.store, Attachments: files, Agents: b.roster, Commands: command.New(), Log: log, TypingDelay: time.Hour})
	gate := auth.NewGate(b.store, nil)
	o.Store, o.Door, o.Out, o.Hub, o.Log = b.store, gate, b.hub, b.hub, log
	sockets := agent.NewSockets(o)
	b.roster.Register("echo", agent.Kind{Make: func(ledger.Agent) (hub.Agent, error) { return &agent.Echo{}, nil }})
	b.roster.Register(agent.SocketKind, sockets.Kind())
	must(b.roster.Load(t.Context(), b.store))
	_, err = b.hub.Recover(t.Context())
	must(err)
	slots := bridge.New(bridge.Local(b.hub), gate, bridge.Options{Log: log})
	making.Lock()
	handler := api.New(t.Context(), api.Options{
		Store: b.store, Attachments: files, Hub: b.hub, Slots: slots, AgentSockets: sockets, Keys: keys, Assets: agent.Assets(), Log: log, Version: "test",
		Now: time.Now, Ready: b.store.Writable,
	})
	making.Unlock()
	srv := httptest.NewServer(handler)
	b.addr = srv.Listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, serve := range []func(context.Context) error{gate.Serve, slots.Serve, sockets.Serve} {
		wg.Go(func() { _ = serve(ctx) })
	}
	b.stop = sync.OnceFunc(func() {
		slots.Close()
		sockets.Close()
		srv.Close()
		cancel()
		wg.Wait()
		b.hub.Close()
		b.roster.Close()
		if err := errors.Join(b.store.Close(), files.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

// again starts another host on the same data.
func (b *bed) again() *bed {
	b.t.Helper()
	b.stop()
	return openBed(b.t, b.dir, b.opts)
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), secret) {
		l.t.Errorf("a secret is in the log: %s", p)
	}
	return len(p), nil
}

// agent makes an agent that dials in; its key is secret+name.
func (b *bed) agent(name string, config ...string) ledger.Agent {
	b.t.Helper()
	key := auth.NewCredential(secret+name, time.Time{})
	row, err := b.store.CreateAgent(b.t.Context(), ledger.Agent{ID: uuid.NewString(), Name: name, Kind: agent.SocketKind, Enabled: true, Config: json.RawMessage(cmp.Or(strings.Join(config, ""), "{}"))}, &key, ledger.Change{Actor: "test", Action: "agent.create"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.roster.Set(row)
	return row
}

// channel makes a channel that is routed to an agent; its token is secret+name.
func (b *bed) channel(name, agent string) ledger.Channel {
	b.t.Helper()
	token := auth.NewCredential(secret+name, time.Time{})
	row, err := b.store.CreateChannel(b.t.Context(), ledger.Channel{ID: uuid.NewString(), Name: name, Kind: "bridge", Enabled: true, Agent: agent}, &token, ledger.Change{Actor: "test", Action: "channel.create"})
	if err != nil {
		b.t.Fatal(err)
	}
	return row
}

// reroute makes the row of a channel count.
func (b *bed) reroute(row ledger.Channel) {
	b.t.Helper()
	row, err := b.store.UpdateChannel(b.t.Context(), row, ledger.Change{Actor: "test", Action: "channel.update"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.hub.Update(row)
}

// history is the channel's messages in short, oldest first.
func (b *bed) history(row ledger.Channel) []string {
	b.t.Helper()
	entries, err := b.store.Before(context.Background(), ledger.Scope{Channel: row.Key}, 0, 500)
	if err != nil {
		b.t.Fatal(err)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = fmt.Sprintf("%s %s %s", e.Direction, e.State, e.Text)
		if e.Reason != "" {
			out[i] = fmt.Sprintf("%s %s/%s %s", e.Direction, e.State, e.Reason, e.Text)
		}
	}
	slices.Reverse(out)
	return out
}

func (b *bed) wantHistory(row ledger.Channel, want ...string) {
	b.t.Helper()
	var got []string
	await.UntilElse(b.t, func() bool {
		got = b.history(row)
		return slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("history:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	})
}

func (b *bed) eventually(what string, cond func() bool) {
	b.t.Helper()
	await.Until(b.t, what, cond)
}

// peer is a WebSocket at the host's other end: an adapter or an agent.
type peer struct {
	t      *testing.T
	ws     *websocket.Conn
	frames chan string // nil until hear; closed at the connection's end …
	end    error       // … which is this
}

// hear reads all that comes from now on, also while the test does something else:
// a peer that does not is closed by the host, on a slow machine sooner than a test
// expects. The connection's end, which the bed brings, ends it.
func (p *peer) hear() *peer {
	p.frames = make(chan string, 4096)
	go func() {
		defer close(p.frames)
		for {
			_, frame, err := p.ws.ReadMessage()
			if err != nil {
				p.end = err
				return
			}
			p.frames <- string(frame)
		}
	}()
	return p
}

// next is the next frame, or the error that ended the connection.
func (p *peer) next() (string, error) {
	p.t.Helper()
	if p.frames == nil {
		_ = p.ws.SetReadDeadline(await.Deadline())
		_, frame, err := p.ws.ReadMessage()
		return string(frame), err
	}
	if frame := await.Value(p.t, "a frame", p.frames); frame != "" { // no frame is empty
		return frame, nil
	}
	return "", p.end
}

func (b *bed) dial(path string, header http.Header) *peer {
	b.t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial("ws://"+b.addr+path, header)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	p := &peer{t: b.t, ws: ws}
	b.t.Cleanup(func() { _ = ws.Close() })
	return p
}

func (p *peer) write(frame string) {
	p.t.Helper()
	if err := p.ws.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		p.t.Fatalf("write %s: %v", frame, err)
	}
}

// read returns the next frame.
func (p *peer) read() string {
	p.t.Helper()
	frame, err := p.next()
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	return frame
}

// wantClose reads until the connection is closed, which must be with this code.
func (p *peer) wantClose(code int) {
	p.t.Helper()
	for {
		if frame, err := p.next(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != code {
				p.t.Fatalf("ended with %v, want code %d", err, code)
			}
			return
		} else {
			p.t.Logf("before the close frame: %s", frame)
		}
	}
}

// shows reads the next frame, which must be of this type and hold the texts.
func (p *peer) shows(kind string, texts ...string) map[string]json.RawMessage {
	p.t.Helper()
	frame := p.read()
	var f map[string]json.RawMessage
	if err := json.Unmarshal([]byte(frame), &f); err != nil {
		p.t.Fatal(err)
	}
	ok := string(f["type"]) == `"`+kind+`"`
	for _, text := range texts {
		ok = ok && strings.Contains(frame, text)
	}
	if !ok {
		p.t.Fatalf("read %s, want a frame %s with %q", frame, kind, texts)
	}
	return f
}

// adapter attaches an adapter of protocol 1.1 with these capabilities.
func (b *bed) adapter(channel, caps string) *peer {
	b.t.Helper()
	p := b.dial(wire.Path, http.Header{"X-Bridge-Token": {secret + channel}})
	names, err := json.Marshal(strings.Fields(caps))
	if err != nil {
		b.t.Fatal(err)
	}
	p.write(`{"type":"register","platform":"test","protocol":"1.1","capabilities":` + string(names) + `}`)
	p.shows("register_ack", `"ok":true`)
	return p.hear()
}

// asks says something in conversation c as alice.
func (p *peer) asks(text string) {
	p.t.Helper()
	p.write(`{"type":"message","conversation_id":"c","user_id":"alice","user_name":"Alice","text":"` + text + `","reply_ctx":{"to":"` + text + `"}}`)
}

// connect connects an agent, which hears what comes. extra are further fields of
// hello.
func (b *bed) connect(name, extra string) *peer {
	b.t.Helper()
	return b.deaf(name, extra).hear()
}

// deaf connects an agent that reads what the test reads, and nothing else.
func (b *bed) deaf(name, extra string) *peer {
	b.t.Helper()
	p := b.dial(agentwire.Path, http.Header{"Authorization": {"Bearer " + secret + name}})
	p.write(`{"type":"hello"` + extra + `}`)
	p.shows("hello_ack", `"ok":true`, `"agent":"`+name+`"`)
	return p
}

// turn reads the next frame, which must be a turn with this text.
func (p *peer) turn(text string) *agentwire.Turn {
	p.t.Helper()
	frame := p.read()
	f, err := agentwire.DecodeFromHost([]byte(frame))
	if err != nil || f.Turn == nil || f.Turn.Text() != text {
		p.t.Fatalf("read %s, %v; want a turn %q", frame, err, text)
	}
	return f.Turn
}

// say writes a frame of a turn; rest are its further fields.
func (p *peer) say(kind string, t *agentwire.Turn, rest string) {
	p.t.Helper()
	p.write(`{"type":"` + kind + `","turn_id":"` + t.TurnID + `"` + rest + `}`)
}
