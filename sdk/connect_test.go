package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// The optional interfaces, one type each, to be put together.
type (
	withCards   struct{}
	withButtons struct{}
	withMedia   struct{}
	withTyper   struct{}
	withEditor  struct{}
	withReactor struct{ withEditor }
	withRich    struct{}
	withStreams struct{}
	withProfile struct{ is Profile }
)

func (withCards) SendCard(context.Context, Target, *wire.Card) (Receipt, error) {
	return Receipt{}, nil
}
func (withButtons) SendButtons(context.Context, Target, string, [][]wire.Button) (Receipt, error) {
	return Receipt{}, nil
}
func (withMedia) SendImage(context.Context, Target, wire.Image) (Receipt, error) {
	return Receipt{}, nil
}
func (withMedia) SendFile(context.Context, Target, wire.File) (Receipt, error) {
	return Receipt{}, nil
}
func (withTyper) Typing(context.Context, Target, bool) error { return nil }
func (withEditor) Edit(context.Context, Target, string, string) (Receipt, error) {
	return Receipt{}, nil
}
func (withEditor) Delete(context.Context, Target, string) error { return nil }
func (withReactor) React(context.Context, Target, string, string, bool) error {
	return nil
}
func (withRich) SendParts(context.Context, Target, string, []message.Part) (Receipt, error) {
	return Receipt{}, nil
}
func (withStreams) Stream(context.Context, Target, Draft) (Receipt, error) { return Receipt{}, nil }
func (w withProfile) Profile() Profile                                     { return w.is }

// everything is an adapter that can do all there is.
type everything struct {
	*plain
	withCards
	withButtons
	withMedia
	withTyper
	withReactor
	withRich
	withStreams
	withProfile
}

func TestRegisterDeclaresWhatTheAdapterImplements(t *testing.T) {
	p := &plain{}
	for name, c := range map[string]struct {
		adapter Adapter
		want    []string
	}{
		"nothing optional": {p, []string{"text", "ack"}},
		"cards": {struct {
			*plain
			withCards
		}{plain: p}, []string{"text", "card", "ack"}},
		"media means image and file": {struct {
			*plain
			withMedia
		}{plain: p}, []string{"text", "image", "file", "ack"}},
		"buttons and typing": {struct {
			*plain
			withButtons
			withTyper
		}{plain: p}, []string{"text", "buttons", "typing", "ack"}},
		"threads": {struct {
			*plain
			withProfile
		}{p, withProfile{Profile{RepliesInThread: true}}}, []string{"text", "reply_to_message", "ack"}},
		"forms alone": {struct {
			*plain
			withRich
			withProfile
		}{plain: p, withProfile: withProfile{Profile{Parts: []string{message.TypeUI}}}}, []string{"text", "ack", "form"}},
		"an editor deletes too": {struct {
			*plain
			withEditor
		}{plain: p}, []string{"text", "update_message", "ack", "delete_message"}},
		"everything": {everything{plain: p, withProfile: withProfile{Profile{RepliesInThread: true}}}, wire.CapNamesFor("1.1")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			run(t, h, c.adapter, Options{})
			got := receive(t, "register", h.peers)
			if !slices.Equal(got.register.Register.Capabilities, c.want) {
				t.Errorf("capabilities = %v, want %v", got.register.Register.Capabilities, c.want)
			}
		})
	}
}

func TestRegisterFrame(t *testing.T) {
	h := newHost(t)
	run(t, h, &plain{}, Options{})
	p := receive(t, "register", h.peers)
	if got := p.header.Get("X-Bridge-Token"); got != testToken {
		t.Errorf("X-Bridge-Token = %q, want the token", got)
	}
	if p.query != "" || strings.Contains(p.first, testToken) {
		t.Errorf("token outside the header: query %q, frame %s", p.query, p.first)
	}
	var frame struct {
		Type, Platform string
		Metadata       map[string]string
	}
	if err := json.Unmarshal([]byte(p.first), &frame); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.first, `"profile":{"in_flight":16}`) || p.register.Register.Protocol != "1.1" {
		t.Errorf("register frame = %s, want protocol 1.1 and nothing of the platform", p.first)
	}
	if frame.Type != "register" || frame.Platform != "test" || frame.Metadata["sdk"] != "go" {
		t.Errorf("register frame = %s", p.first)
	}
}

func TestReconnectAfterTheConnectionIsLost(t *testing.T) {
	for name, lose := range map[string]func(*peer){
		"draining 1001": func(p *peer) { _ = p.conn.Close(wire.CloseDraining, "") },
		"overload 1013": func(p *peer) { _ = p.conn.Close(wire.CloseOverload, "") },
		"too slow 4008": func(p *peer) { _ = p.conn.Close(wire.CloseTooSlow, "") },
		"refused 1008":  func(p *peer) { _ = p.conn.Close(wire.CloseRefused, "") },
		"normal 1000":   func(p *peer) { _ = p.conn.Close(wire.CloseNormal, "") },
		"no close frame": func(p *peer) {
			_ = p.conn.SetReadDeadline(time.Now()) // the reader of the host gives up and closes the socket
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			var runs atomic.Int32
			texts := make(chan string, 10)
			r := run(t, h, &plain{
				run: func(ctx context.Context, _ *Host) error {
					runs.Add(1)
					<-ctx.Done()
					return nil
				},
				send: func(_ context.Context, _ Target, text string) error {
					texts <- text
					return nil
				},
			}, Options{})
			for i := range 3 {
				p := receive(t, "connection", h.peers)
				p.write(t, send("c", fmt.Sprint(i)))
				if got := receive(t, "send", texts); got != fmt.Sprint(i) {
					t.Errorf("send = %q, want %d", got, i)
				}
				lose(p)
			}
			receive(t, "connection", h.peers)
			eventually(t, "the adapter's Run is called", func() bool { return runs.Load() > 0 }) // who stops before that has none
			r.stop()
			if err := r.wait(t); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("the adapter's Run was called %d times, want once", n)
			}
		})
	}
}

func TestFinalWordsEndRunWithoutANewDial(t *testing.T) {
	closeWith := func(code wire.CloseCode) func(*testHost, *testing.T) {
		return func(h *testHost, t *testing.T) {
			_ = receive(t, "connection", h.peers).conn.Close(code, "for good")
		}
	}
	refuse := func(reason string) func(*testHost, *testing.T) {
		return func(h *testHost, _ *testing.T) {
			h.mu.Lock()
			h.refuse = func(int) string { return reason }
			h.mu.Unlock()
		}
	}
	for name, c := range map[string]struct {
		before, after func(*testHost, *testing.T)
		want          func(error) bool
		text          string
	}{
		"replaced 4001": {nil, closeWith(wire.CloseReplaced), func(err error) bool { return errors.Is(err, ErrReplaced) }, "4001"},
		"revoked 4003":  {nil, closeWith(wire.CloseRevoked), func(err error) bool { return errors.Is(err, ErrRevoked) }, "4003"},
		"unknown 4010": {nil, closeWith(4010), func(err error) bool {
			var closed *transport.CloseError
			return errors.As(err, &closed) && closed.Code == 4010
		}, "4010"},
		"invalid token": {refuse("invalid token"), nil, func(err error) bool {
			var refused *RegisterError
			return errors.As(err, &refused)
		}, "invalid token"},
		"missing token": {refuse("missing token"), nil, func(err error) bool {
			var refused *RegisterError
			return errors.As(err, &refused)
		}, "missing token"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if c.before != nil {
				c.before(h, t)
			}
			r := run(t, h, &plain{}, Options{})
			if c.after != nil {
				c.after(h, t)
			}
			err := r.wait(t)
			if err == nil || !c.want(err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Run = %v, want it to tell %s", err, name)
			}
			if n := h.count(); n != 1 {
				t.Errorf("dialled %d times, want once", n)
			}
		})
	}
}

func TestDialIsRepeatedAndLoggedOnce(t *testing.T) {
	h := newHost(t)
	h.reject = func(n int) int {
		if n <= 5 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	h.refuse = func(n int) string {
		if n == 6 {
			return "come back later" // not one of the final reasons
		}
		return ""
	}
	r := run(t, h, &plain{}, Options{})
	receive(t, "connection", h.peers)
	eventually(t, "log line", func() bool { return strings.Contains(r.logs.String(), "connected to the host\"") })
	if n := strings.Count(r.logs.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings for one outage, want one:\n%s", n, r.logs)
	}
}

func TestBackoffGrowsAndIsJittered(t *testing.T) {
	b := defaultTiming.backoff()
	var last time.Duration
	for i := range 20 {
		last = b.NextBackOff()
		if i == 0 && (last < 250*time.Millisecond || last > 750*time.Millisecond) {
			t.Errorf("first wait = %s, want 500 ms ± half", last)
		}
	}
	if last < 15*time.Second || last > 45*time.Second {
		t.Errorf("last wait = %s, want 30 s ± half", last)
	}
}

func TestHostThatNeverAnswersRegister(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int32
	up := websocket.Upgrader{}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		tries.Add(1)
		_, _ = io.Copy(io.Discard, ws.UnderlyingConn()) // reads, never answers, not even a close
		_ = ws.Close()
	})}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	quickly := quick()
	quickly.register = 20 * time.Millisecond
	r := run(t, nil, &plain{}, Options{URL: "http://" + l.Addr().String(), timing: quickly})
	eventually(t, "second try", func() bool { return tries.Load() >= 2 })
	if !strings.Contains(r.logs.String(), errNoAck.Error()) {
		t.Errorf("log does not say why:\n%s", r.logs)
	}
}

func TestSilence(t *testing.T) {
	t.Run("quiet host that answers pings stays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const limit = time.Minute
			c := &quietConn{heard: time.Now(), travels: limit / 10}
			l := newLink(c)
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				l.watch(limit)
			}()
			time.Sleep(10 * limit)
			c.mu.Lock()
			if c.closed || c.pings < 9 || c.pings > 12 { // one for each time that it was nearly over
				t.Errorf("after ten times the limit: closed %t, %d pings", c.closed, c.pings)
			}
			c.travels = 3 * limit // from now on answers come too late
			c.mu.Unlock()
			changed := time.Now()
			<-watched
			if took := time.Since(changed); !c.closed || took > limit+2*limit/5 {
				t.Errorf("closed %t, given up after %s", c.closed, took)
			}
		})
	})
	t.Run("the answer to a ping is heard", func(t *testing.T) {
		h := newHost(t)
		c, err := dialWebSocket(strings.Replace(h.URL, "http", "ws", 1)+wire.Path, testToken)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(registerFrame("test", wire.CapText, nil)); err != nil {
			t.Fatal(err)
		}
		receive(t, "connection", h.peers)
		if _, err := c.Read(); err != nil { // register_ack
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read()
			ended <- err
		}()
		before := c.Heard()
		if err := c.Ping(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "pong", func() bool { return c.Heard().After(before) })
		_ = c.Close(wire.CloseNormal, "")
		_ = receive(t, "end", ended) // which was ours
	})
	t.Run("dead host is left", func(t *testing.T) {
		h := newHost(t)
		quickly := quick()
		quickly.silence = 50 * time.Millisecond
		frozen := make(chan struct{})
		first := true
		dial := dialWebSocket(strings.Replace(h.URL, "http", "ws", 1)+wire.Path, testToken)
		r := run(t, h, &plain{}, Options{timing: quickly, dial: func(ctx context.Context) (transport.Conn, error) {
			c, err := dial(ctx)
			if err == nil && first {
				first = false
				return &deafConn{Conn: c, ended: frozen}, nil
			}
			return c, err
		}})
		receive(t, "connection", h.peers)
		receive(t, "connection that took its place", h.peers)
		receive(t, "first connection's end", frozen)
		if !strings.Contains(r.logs.String(), errSilent.Error()) {
			t.Errorf("log does not say why:\n%s", r.logs)
		}
	})
	t.Run("adapter that takes its time is not silence", func(t *testing.T) {
		h := newHost(t)
		c, err := dialWebSocket(strings.Replace(h.URL, "http", "ws", 1)+wire.Path, testToken)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := newLink(c)
		if err := l.write(t.Context(), registerFrame("test", wire.CapText, nil)); err != nil {
			t.Fatal(err)
		}
		p := receive(t, "connection", h.peers)
		l.reading.Store(0) // nobody reads
		watched := make(chan struct{})
		go func() {
			l.watch(20 * time.Millisecond)
			close(watched)
		}()
		before := p.conn.Heard()
		eventually(t, "pings", func() bool { return p.conn.Heard().Sub(before) > 200*time.Millisecond })
		select {
		case <-watched:
			t.Error("the connection was given up")
		default:
		}
		l.end()
		receive(t, "watch ends", watched)
		l.abandon("")
	})
}

// quietConn hears nothing but the answers to its pings.
type quietConn struct {
	transport.Conn
	mu      sync.Mutex // guards what follows
	heard   time.Time
	travels time.Duration // that an answer needs
	pings   int
	closed  bool
}

func (c *quietConn) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

func (c *quietConn) Ping() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings++
	time.AfterFunc(c.travels, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = time.Now()
	})
	return nil
}

func (c *quietConn) Close(wire.CloseCode, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// deafConn hears the host's first frame and then nothing: a connection whose
// packets no longer arrive.
type deafConn struct {
	transport.Conn
	reads int
	heard time.Time
	ended chan struct{}
}

func (c *deafConn) Heard() time.Time { return c.heard }

func (c *deafConn) Read() ([]byte, error) {
	if c.reads++; c.reads == 1 {
		c.heard = time.Now()
		return c.Conn.Read()
	}
	for {
		if _, err := c.Conn.Read(); err != nil {
			close(c.ended)
			return nil, transport.ErrClosed
		}
	}
}
