package sdk

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// pulledConn has no silence but the one that the test makes: on a busy machine an
// answer may be late, which must not end the connection too soon.
type pulledConn struct {
	transport.Conn
	silenced *atomic.Int64 // since when, as time.Time.UnixNano; 0 = it is not
}

func (c *pulledConn) Heard() time.Time {
	at := c.silenced.Load()
	if at == 0 {
		return time.Now()
	}
	if heard := c.Conn.Heard(); heard.UnixNano() > at {
		return heard
	}
	return time.Unix(0, at)
}

// A host that falls silent without an end is noticed and dialled again, whether
// the network swallows what is sent or takes nothing.
func TestTortureHalfOpen(t *testing.T) {
	for _, how := range []string{toxic.Drop, toxic.Stall} {
		t.Run(how, func(t *testing.T) {
			h := newHost(t)
			proxy := toxic.New(t, strings.TrimPrefix(h.URL, "http://"))
			quickly := quick()
			quickly.silence = 400 * time.Millisecond
			var silenced atomic.Int64
			dial := dialWebSocket("ws://"+proxy.Addr()+wire.Path, testToken)
			a, hosts := handed()
			r := run(t, h, a, Options{timing: quickly, dial: func(ctx context.Context) (transport.Conn, error) {
				c, err := dial(ctx)
				if err != nil {
					return nil, err
				}
				return &pulledConn{c, &silenced}, nil
			}})
			first, host := receive(t, "first connection", h.peers), receive(t, "Run", hosts)
			deliver := func(p *peer, text string) {
				t.Helper()
				if err := host.Deliver(t.Context(), Event{SessionKey: "s", Text: text}); err != nil {
					t.Fatal(err)
				}
				if got := receive(t, text, p.frames); !strings.Contains(got, text) {
					t.Fatalf("the host read %s, want %s", got, text)
				}
			}
			deliver(first, "before")
			proxy.Silence(how)
			began := time.Now()
			silenced.Store(began.UnixNano())
			eventually(t, "silence is noticed", func() bool { return strings.Contains(r.logs.String(), errSilent.Error()) })
			if took := time.Since(began); took < quickly.silence/2 {
				t.Errorf("noticed after %s: something else ended the connection", took)
			}
			silenced.Store(0)
			proxy.Restore()
			second := receive(t, "second connection", h.peers)
			t.Logf("connected again after %s", time.Since(began).Round(time.Millisecond))
			deliver(second, "after")
		})
	}
}
