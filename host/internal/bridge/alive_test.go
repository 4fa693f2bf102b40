package bridge_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

func bridgeDefaults() bridge.Options { return bridge.New(nil, nil, bridge.Options{}).Options }

func TestPing(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("ping"))
	c.send(`{"type":"ping"}`)
	c.want(`{"type":"pong"}`)
	c.send(`{"type":"ping","message_id":"m1","extra":[1]}`, `{"type":"ping"}`)
	c.want(`{"type":"pong"}`, `{"type":"pong"}`)
}

// The protocol's 54 and 60 seconds, scaled.
const (
	testPing    = 400 * time.Millisecond
	testSilence = 2 * time.Second
)

func quickPulse(s *setup) { s.bridge.PingInterval, s.bridge.SilenceTimeout = testPing, testSilence }

func TestSilence(t *testing.T) {
	t.Parallel()
	if d := bridgeDefaults(); d.PingInterval != 54*time.Second || d.SilenceTimeout != 60*time.Second {
		t.Errorf("defaults = %s and %s, want 54 s and 60 s", d.PingInterval, d.SilenceTimeout)
	}
	h := start(t, quickPulse)
	t.Run("pinged and dropped", func(t *testing.T) {
		t.Parallel()
		row := h.channel("silent")
		pings, from := 0, time.Now()
		c := h.attach(t, row)
		c.ws.SetPingHandler(func(string) error { // does not answer
			pings++
			return nil
		})
		c.wantClose(1008, "silent for too long")
		if took := time.Since(from); took < testSilence-testPing {
			t.Errorf("dropped after %s, want %s", took, testSilence)
		}
		if pings < 1 {
			t.Errorf("%d pings", pings)
		}
		eventually(t, "detached", func() bool { return !h.attached(row) })
	})
	ways := map[string]func(c *client){
		"pongs":           nil, // gorilla's own
		"pings as frames": func(c *client) { c.raw(frame(true, opPing, "")) },
		"pong frames":     func(c *client) { c.raw(frame(true, opPong, "")) },
		"ignored frames":  func(c *client) { c.raw(frame(true, opText, `{"type":"pong"}`)) },
		"refused frames":  func(c *client) { c.raw(frame(true, opText, `{}`)) },
		"half frames":     func(c *client) { c.raw(frame(false, opContinuation, " ")) },
	}
	for name, live := range ways {
		t.Run("alive by "+name, func(t *testing.T) {
			t.Parallel()
			row := h.channel(strings.ReplaceAll(name, " ", "-"))
			staysAlive(t, h, row, live, name == "half frames")
		})
	}
}

// staysAlive keeps a connection for twice the silence that would end it.
func staysAlive(t *testing.T, h *host, row ledger.Channel, live func(*client), inside bool) {
	c := h.attach(t, row)
	if live != nil {
		c.ws.SetPingHandler(func(string) error { return nil })
	}
	if inside {
		c.raw(frame(false, opText, " "))
	}
	var last atomic.Value
	read := make(chan struct{})
	go func() { // reads, so that pings are met
		defer close(read)
		for {
			got, err := c.next()
			if err != nil {
				return
			}
			last.Store(got)
		}
	}()
	tick := time.NewTicker(testPing / 2)
	defer tick.Stop()
	for end := time.Now().Add(2 * testSilence); time.Now().Before(end); <-tick.C {
		if live != nil {
			live(c)
		}
	}
	if inside {
		c.raw(frame(true, opContinuation, say("c", "still here")))
	} else {
		c.raw(frame(true, opText, say("c", "still here")))
	}
	eventually(t, "answer", func() bool { return last.Load() == answer("c", "echo: still here") })
	_ = c.ws.Close()
	<-read
}
