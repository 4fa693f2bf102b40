package irc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestMain(m *testing.M) {
	// InspIRCd lets users in once a second: the tests wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	leaks.Main(m)
}

// patience bounds every wait of a test.
const patience = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// quick is defaultTiming for tests.
var quick = timing{
	dial: patience, register: patience, write: patience,
	pingAfter: patience, pongWithin: patience, confirm: patience,
	upkeep: 20 * time.Millisecond, rejoin: 100 * time.Millisecond, rejoinMax: 400 * time.Millisecond,
	regain: 100 * time.Millisecond, retryFirst: 20 * time.Millisecond, retryMax: 200 * time.Millisecond,
	stable: time.Minute, finish: time.Second,
}

// bench is an adapter that runs, with a test in place of the host.
type bench struct {
	*Adapter
	t      *testing.T
	events chan sdk.Event
	log    *logBuffer
	stop   func() // ends Run and waits for it

	telling sync.Mutex // guards said
	said    []sdk.Status
}

// Status implements sink.
func (b *bench) Status(_ context.Context, s sdk.Status) {
	b.telling.Lock()
	defer b.telling.Unlock()
	b.said = append(b.said, s)
}

// platform waits until the newest status is of this state, and returns it.
func (b *bench) platform(state wire.PlatformState) (s sdk.Status) {
	b.t.Helper()
	eventually(b.t, "the platform is "+string(state), func() bool {
		b.telling.Lock()
		defer b.telling.Unlock()
		if n := len(b.said); n > 0 {
			s = b.said[n-1]
		}
		return s.State == state
	})
	return s
}

// Deliver implements sink.
func (b *bench) Deliver(ctx context.Context, e sdk.Event) error {
	select {
	case b.events <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logBuffer is a log that a test reads while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// run starts an adapter. It ends with t; its log is shown if t fails.
func run(t *testing.T, cfg Config, change ...func(*timing)) *bench {
	t.Helper()
	if cfg.Nick == "" {
		cfg.Nick = "robo"
	}
	if cfg.Flood == (Flood{}) {
		cfg.Flood = Flood{Burst: 100, Interval: Duration(time.Millisecond)}
	}
	set, err := cfg.check()
	if err != nil {
		t.Fatal(err)
	}
	tune := quick
	for _, f := range change {
		f(&tune)
	}
	b := &bench{Adapter: New(), t: t, events: make(chan sdk.Event, 100), log: &logBuffer{}}
	c := newClient(set, tune, b, slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	b.use(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.serve(ctx); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	b.stop = func() { cancel(); <-done }
	t.Cleanup(func() {
		b.stop()
		if t.Failed() {
			t.Logf("adapter's log:\n%s", b.log)
		}
	})
	return b
}

// expect is the next event.
func (b *bench) expect() sdk.Event {
	b.t.Helper()
	select {
	case e := <-b.events:
		return e
	case <-time.After(patience):
		b.t.Fatal("no event")
		panic("unreachable")
	}
}

// target is where the host would answer e.
func target(t *testing.T, e sdk.Event) sdk.Target {
	t.Helper()
	ctx, err := json.Marshal(e.ReplyCtx)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Target{SessionKey: e.SessionKey, ConversationID: e.ConversationID, ReplyCtx: ctx}
}

// say sends and fails the test if that fails.
func (b *bench) say(to sdk.Target, text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := b.Send(ctx, to, text); err != nil {
		b.t.Fatalf("send: %v", err)
	}
}

// logged waits for a line with all of parts.
func (b *bench) logged(parts ...string) {
	b.t.Helper()
	eventually(b.t, "log line with "+strings.Join(parts, ", "), func() bool {
		for line := range strings.SplitSeq(b.log.String(), "\n") {
			found := true
			for _, p := range parts {
				found = found && strings.Contains(line, p)
			}
			if found {
				return true
			}
		}
		return false
	})
}

// meet is a server with alice and the adapter in #ops.
func meet(t *testing.T, cfg Config) (*irctest.Server, *irctest.User, *bench) {
	t.Helper()
	srv := irctest.Start(t, irctest.Options{})
	alice := srv.Dial(t, "alice")
	alice.Join("#ops")
	cfg.Server = srv.Addr
	cfg.Channels = []string{"#ops"}
	b := run(t, cfg)
	alice.ExpectJoin("robo", "#ops")
	return srv, alice, b
}

func TestSetupRefusesConfig(t *testing.T) {
	t.Parallel()
	err := New().Setup(t.Context(), sdk.Config{})
	var refused *sdk.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "server: found") {
		t.Fatalf("got %v, want a refusal that names server", err)
	}
}

func TestSendOffline(t *testing.T) {
	t.Parallel()
	var retry *sdk.RetryError
	if _, err := New().Send(context.Background(), sdk.Target{ConversationID: "alice"}, "hi"); !errors.As(err, &retry) {
		t.Fatalf("before Run: got %v, want Retry", err)
	}
	b := run(t, Config{Server: "127.0.0.1:1"})
	if _, err := b.Send(context.Background(), sdk.Target{ConversationID: "alice"}, "hi"); !errors.As(err, &retry) {
		t.Fatalf("while unconnected: got %v, want Retry", err)
	}
}
