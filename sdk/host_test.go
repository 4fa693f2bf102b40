package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestDeliverFrames(t *testing.T) {
	full := Event{SessionKey: "s", ConversationID: "c", UserID: "u", UserName: "U <&>", Text: "Grüße\n", ReplyCtx: 7}
	pressed := full
	pressed.Action = "cmd:/x"
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"message":     {full, `{"type":"message","session_key":"s","conversation_id":"c","user_id":"u","user_name":"U <&>","text":"Grüße\n","reply_ctx":7}`},
		"card_action": {pressed, `{"type":"card_action","session_key":"s","conversation_id":"c","user_id":"u","user_name":"U <&>","action":"cmd:/x","reply_ctx":7}`},
		"empty text":  {Event{}, `{"type":"message","text":""}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encode(&c.event, "not in 1.0", dialect{})
			if err != nil || string(got) != c.want {
				t.Errorf("encode = %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestDeliverRefusesWhatTheHostWould(t *testing.T) {
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"frame too large":        {Event{Text: strings.Repeat("x", wire.MaxFrame)}, "262144"},
		"long user name":         {Event{UserName: strings.Repeat("x", wire.MaxField+1)}, "UserName"},
		"ReplyCtx no JSON":       {Event{ReplyCtx: json.RawMessage(`{`)}, "ReplyCtx"},
		"ReplyCtx invalid UTF-8": {Event{ReplyCtx: json.RawMessage("\"\xff\"")}, "ReplyCtx"},
		"ReplyCtx a channel":     {Event{ReplyCtx: make(chan int)}, "ReplyCtx"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{links: newLinks(), ids: newIDs()}
			if err := h.Deliver(t.Context(), c.event); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Deliver = %v, want an error that names %s", err, c.want)
			}
		})
	}
}

func TestReplyCtxIsKeptByteForByte(t *testing.T) {
	for name, c := range map[string]struct {
		give any
		want string // in the frame and in the Target; "" = absent
	}{
		"none":              {nil, ""},
		"string":            {"wx-<1>&\u2028", "\"wx-<1>&\u2028\""},
		"number":            {12, `12`},
		"struct":            {struct{ ID int }{3}, `{"ID":3}`},
		"list":              {[]string{"<a>", "b"}, `["<a>","b"]`},
		"raw, spaces kept":  {json.RawMessage(`{"b" : 1,  "a":[ "<&>" ]}`), `{"b" : 1,  "a":[ "<&>" ]}`},
		"raw, big number":   {json.RawMessage(`123456789012345678901234567890.10`), `123456789012345678901234567890.10`},
		"raw, escapes kept": {json.RawMessage(`"\u00e9\/"`), `"\u00e9\/"`},
		"raw false":         {json.RawMessage(`false`), `false`},
		"raw, empty":        {json.RawMessage(nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			targets := make(chan Target, 1)
			a, hosts := handed()
			a.send = func(_ context.Context, to Target, _ string) error {
				targets <- to
				return nil
			}
			run(t, h, a, Options{})
			p := receive(t, "connection", h.peers)
			host := receive(t, "Run", hosts)
			if err := host.Deliver(t.Context(), Event{SessionKey: "s", ReplyCtx: c.give}); err != nil {
				t.Fatal(err)
			}
			in, bad := wire.DecodeInbound([]byte(receive(t, "frame", p.frames)))
			if bad != nil || string(in.ReplyCtx) != c.want {
				t.Fatalf("reply_ctx = %s, %v, want %s", in.ReplyCtx, bad, c.want)
			}
			answer := wire.Frame{Type: wire.TypeSend, Text: "x"}
			p.write(t, string(answer.Append(nil, in.Routing)))
			to := receive(t, "send", targets)
			if string(to.ReplyCtx) != c.want || (to.ReplyCtx == nil) != (c.want == "") {
				t.Errorf("Target.ReplyCtx = %s, want %s", to.ReplyCtx, c.want)
			}
			if err := host.Deliver(t.Context(), Event{SessionKey: "s", ReplyCtx: to.ReplyCtx}); err != nil {
				t.Fatal(err)
			}
			if in, bad = wire.DecodeInbound([]byte(receive(t, "frame", p.frames))); bad != nil || string(in.ReplyCtx) != c.want {
				t.Errorf("echoed reply_ctx = %s, %v, want %s", in.ReplyCtx, bad, c.want)
			}
		})
	}
}

func TestDeliverWaitsForTheConnection(t *testing.T) {
	h := newHost(t)
	var shut atomic.Bool
	h.reject = func(int) int {
		if shut.Load() {
			return 503
		}
		return 0
	}
	a, hosts := handed()
	r := run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)

	shut.Store(true)
	_ = p.conn.Close(wire.CloseDraining, "")
	_ = receive(t, "end of the connection", p.ended)
	eventually(t, "adapter notices", func() bool { return strings.Contains(r.logs.String(), "not connected") })

	t.Run("ctx ends", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := host.Deliver(ctx, Event{Text: "lost"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Deliver = %v, want the context's error", err)
		}
	})

	delivered := make(chan error, 1)
	go func() { delivered <- host.Deliver(t.Context(), Event{Text: "kept"}) }()
	before := h.count()
	eventually(t, "vain attempts", func() bool { return h.count() >= before+3 })
	if len(delivered) > 0 {
		t.Fatalf("Deliver returned %v without a connection", <-delivered)
	}
	shut.Store(false)
	p = receive(t, "new connection", h.peers)
	if err := receive(t, "Deliver", delivered); err != nil {
		t.Errorf("Deliver = %v", err)
	}
	if got := receive(t, "frame", p.frames); !strings.Contains(got, `"kept"`) {
		t.Errorf("frame = %s", got)
	}

	r.stop()
	_ = r.wait(t)
	if err := host.Deliver(t.Context(), Event{}); !errors.Is(err, ErrStopped) {
		t.Errorf("Deliver after the end = %v, want ErrStopped", err)
	}
}

func TestDeliverLosesNothingAndKeepsOrder(t *testing.T) {
	const writers, each = 8, 200
	h := newHost(t)
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if err := host.Deliver(t.Context(), Event{SessionKey: fmt.Sprint(w), Text: fmt.Sprint(i)}); err != nil {
					t.Errorf("Deliver: %v", err)
				}
			}
		})
	}
	group.Wait()
	next := map[string]int{}
	for range writers * each {
		in, bad := wire.DecodeInbound([]byte(receive(t, "frame", p.frames)))
		if bad != nil {
			t.Fatal(bad)
		}
		if in.Text != fmt.Sprint(next[in.SessionKey]) {
			t.Fatalf("writer %s: frame %s arrived when %d was next", in.SessionKey, in.Text, next[in.SessionKey])
		}
		next[in.SessionKey]++
	}
}

// brokenConn fails its second write, as a socket does whose peer is gone.
type brokenConn struct {
	transport.Conn
	writes int
}

func (c *brokenConn) Write(frames ...[]byte) error {
	if c.writes++; c.writes == 2 {
		return errors.New("broken pipe")
	}
	return c.Conn.Write(frames...)
}

func TestDeliverRepeatsAFailedWriteOnTheNextConnection(t *testing.T) {
	h := newHost(t)
	dial := dialWebSocket(strings.Replace(h.URL, "http", "ws", 1)+wire.Path, testToken)
	first := true
	a, hosts := handed()
	run(t, h, a, Options{dial: func(ctx context.Context) (transport.Conn, error) {
		c, err := dial(ctx)
		if err == nil && first {
			first = false
			return &brokenConn{Conn: c}, nil
		}
		return c, err
	}})
	receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	if err := host.Deliver(t.Context(), Event{Text: "once more"}); err != nil {
		t.Errorf("Deliver = %v", err)
	}
	p := receive(t, "new connection", h.peers)
	if got := receive(t, "frame", p.frames); !strings.Contains(got, "once more") {
		t.Errorf("frame = %s", got)
	}
}

func TestConfig(t *testing.T) {
	type server struct {
		Port uint16 `json:"port"`
		TLS  bool   `json:"tls"`
	}
	type config struct {
		Nick   string   `json:"nick"`
		Rooms  []string `json:"rooms"`
		Server server   `json:"server"`
	}
	for name, c := range map[string]struct{ text, want string }{
		"ok":             {`{"nick":"n","rooms":["#a"],"server":{"port":6667,"tls":true}}`, ""},
		"none":           {``, ""},
		"unknown key":    {`{"nick":"n","nickname":"secret"}`, `unknown key "nickname"`},
		"wrong type":     {`{"nick":["secret"]}`, `key "nick": found array, expected a string`},
		"nested":         {`{"server":{"tls":"secret"}}`, `key "server.tls": found string, expected true or false`},
		"out of range":   {`{"server":{"port":70000}}`, `key "server.port": found number, expected uint16`},
		"not an object":  {`["secret"]`, `found array, expected an object`},
		"more behind it": {`{} {"a":"secret"}`, `expected its end`},
		"broken":         {"{\n  \"nick\" \"secret\"}", `line 2, column 10`},
		"cut off":        {"{\n  \"nick\":", `line 2`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{config: json.RawMessage(c.text)}
			var v config
			err := h.Config(&v)
			if c.want == "" {
				if err != nil {
					t.Errorf("Config = %v, want nil", err)
				}
				return
			}
			var refused *RefusedError
			if err == nil || !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("Config = %v, want Refused with %q and no value", err, c.want)
			}
		})
	}
}
