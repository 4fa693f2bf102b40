package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const patience = await.Limit

var quick = &timing{hello: patience, silence: patience, firstWait: 10 * time.Millisecond, lastWait: 50 * time.Millisecond, settled: time.Hour}

// fake is a host's end that the test speaks: the real one is tried in
// host/internal/agent.
type fake struct {
	t     *testing.T
	url   string
	conns chan *transport.WebSocket
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, conns: make(chan *transport.WebSocket, 16)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != agentwire.Path || r.Header.Get("Authorization") != "Bearer a-key" {
			t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		if c, err := transport.Upgrade(w, r); err == nil {
			f.conns <- c
		}
	}))
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

// accept takes a connection and says hello.
func (f *fake) accept() *transport.WebSocket {
	f.t.Helper()
	select {
	case c := <-f.conns:
		f.t.Cleanup(func() {
			_ = c.Close(wire.CloseNormal, "")
			for err := error(nil); err == nil; {
				_, err = c.Read()
			}
		})
		f.read(c, "hello")
		return c
	case <-time.After(patience):
		f.t.Fatal("nobody dials")
		panic("unreachable")
	}
}

// read reads the next frame, which must hold the texts.
func (f *fake) read(c *transport.WebSocket, texts ...string) string {
	f.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	frame, err := c.Read()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(frame), text) {
			f.t.Fatalf("read %s, want %s", frame, texts)
		}
	}
	return string(frame)
}

func (f *fake) write(c *transport.WebSocket, frames ...string) {
	f.t.Helper()
	for _, frame := range frames {
		if err := c.Write([]byte(frame)); err != nil {
			f.t.Fatal(err)
		}
	}
}

const (
	welcome = `{"type":"hello_ack","ok":true,"agent":"a"}`
	turn1   = `{"type":"turn","turn_id":"t1","channel":"c","conversation_id":"","message":{"parts":[{"type":"text","text":"hi"}]}}`
)

// run runs an agent until the test ends; its end comes over the channel.
func run(t *testing.T, f *fake, h Handler) (*Agent, <-chan error) {
	t.Helper()
	a, err := New(Options{URL: f.url, Key: "a-key", timing: quick}, h)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a, ended
}

func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		code wire.CloseCode
		want error // nil = it dials again
	}{
		"refused":  {`{"type":"hello_ack","ok":false,"error":"invalid key"}`, 1008, &RefusedError{}},
		"replaced": {welcome, 4001, ErrReplaced},
		"revoked":  {welcome, 4003, ErrRevoked},
		"draining": {welcome, 1001, nil},
		"slow":     {welcome, 4008, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			_, ended := run(t, f, nil)
			conn := f.accept()
			f.write(conn, c.say)
			_ = conn.Close(c.code, "why")
			if c.want == nil {
				f.accept()
				return
			}
			select {
			case err := <-ended:
				var refused *RefusedError
				ok := errors.Is(err, c.want)
				if name == "refused" {
					ok = errors.As(err, &refused) && refused.Reason == "invalid key"
				}
				if !ok {
					t.Errorf("ended with %v, want %v", err, c.want)
				}
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
		})
	}
	if _, err := New(Options{URL: "http://127.0.0.1:1"}, nil); err == nil {
		t.Error("no key is taken")
	}
	if _, err := New(Options{URL: "ftp://x", Key: "k"}, nil); err == nil {
		t.Error("any url is taken")
	}
}

// A message that the host has not acknowledged goes over the next connection too,
// under the same id; a turn that is handed over again is not answered again.
func TestGoesOn(t *testing.T) {
	f := newFake(t)
	calls := 0
	_, _ = run(t, f, func(ctx context.Context, t *Turn) error {
		calls++
		_, err := t.Reply(ctx, "hello "+t.Text())
		return err
	})
	c := f.accept()
	f.write(c, welcome, turn1)
	f.read(c, `"message_ack","turn_id":"t1"`)
	first := f.read(c, `"message"`, `"hello hi"`, `"turn_id":"t1"`)
	_ = c.Close(wire.CloseDraining, "")
	c = f.accept()
	f.write(c, welcome, turn1)
	if again := f.read(c, `"hello hi"`); again != first {
		t.Errorf("wrote %s, then %s", first, again)
	}
	f.read(c, `"message_ack","turn_id":"t1"`)
	id := first[strings.Index(first, `"message_id":"`)+len(`"message_id":"`):]
	id = id[:strings.Index(id, `"`)]
	f.write(c, `{"type":"message_ack","message_id":"`+id+`","ok":false,"retryable":true}`)
	f.read(c, `"hello hi"`) // so it tries again
	f.write(c, `{"type":"message_ack","message_id":"`+id+`","ok":true}`, `{"type":"ping"}`)
	f.read(c, `"pong"`)
	f.write(c, turn1) // it was over: the host did not know
	if frame := f.read(c); !strings.Contains(frame, `"turn_end"`) && !strings.Contains(frame, `"message_ack"`) {
		t.Errorf("wrote %s", frame)
	}
	if calls != 1 {
		t.Errorf("answered %d times", calls)
	}
}

// How a handler ends is how its turn ends.
func TestHandler(t *testing.T) {
	f := newFake(t)
	var cause error
	cancelled := make(chan struct{})
	_, _ = run(t, f, func(ctx context.Context, t *Turn) error {
		switch t.Text() {
		case "fail":
			return errors.New("no forecast")
		case "panic":
			panic("at once")
		case "wait":
			<-ctx.Done()
			cause = context.Cause(ctx)
			close(cancelled)
			return cause
		}
		t.Typing(true)
		t.Stream("a b")
		return nil
	})
	c := f.accept()
	f.write(c, welcome)
	ask := func(id, text string) {
		f.write(c, strings.NewReplacer("t1", id, "hi", text).Replace(turn1))
		f.read(c, `"message_ack","turn_id":"`+id)
	}
	ask("t1", "fail")
	f.read(c, `"turn_end"`, `"t1"`, `"error":"no forecast"`)
	ask("t2", "panic")
	f.read(c, `"turn_end"`, `"t2"`, `"error":"internal error"`)
	ask("t3", "nothing")
	f.read(c, `"typing"`, `"on":true`)
	f.read(c, `"stream"`, `"a b"`)
	f.read(c, `{"type":"turn_end","turn_id":"t3"}`)
	ask("t4", "wait")
	f.write(c, `{"type":"cancel","turn_id":"t4","reason":"stopped"}`)
	select {
	case <-cancelled:
	case <-time.After(patience):
		t.Fatal("the turn is not cancelled")
	}
	if !errors.Is(cause, ErrCancelled) || !strings.Contains(cause.Error(), "stopped") {
		t.Errorf("cancelled by %v", cause)
	}
}
