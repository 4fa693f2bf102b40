package bridge_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func bridgeDefaults() bridge.Options { return bridge.New(nil, nil, bridge.Options{}).Options }

func TestPing(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("ping"))
	c.Send(`{"type":"ping"}`)
	c.Want(`{"type":"pong"}`)
	c.Send(`{"type":"ping","message_id":"m1","extra":[1]}`, `{"type":"ping"}`)
	c.Want(`{"type":"pong"}`, `{"type":"pong"}`)
}

// The protocol's 54 and 60 seconds, scaled.
const (
	testPing    = 400 * time.Millisecond
	testSilence = 2 * time.Second
)

func quickPulse(s *hosttest.Setup) {
	s.Bridge.PingInterval, s.Bridge.SilenceTimeout = testPing, testSilence
}

func TestSilence(t *testing.T) {
	t.Parallel()
	if d := bridgeDefaults(); d.PingInterval != 54*time.Second || d.SilenceTimeout != 60*time.Second {
		t.Errorf("defaults = %s and %s, want 54 s and 60 s", d.PingInterval, d.SilenceTimeout)
	}
	h := hosttest.Start(t, quickPulse)
	t.Run("pinged and dropped", func(t *testing.T) {
		t.Parallel()
		row := h.Channel("silent")
		pings, from := 0, time.Now()
		c := h.Attach(t, row)
		c.WS.SetPingHandler(func(string) error { // does not answer
			pings++
			return nil
		})
		c.WantClose(1008, "silent for too long")
		if took := time.Since(from); took < testSilence-testPing {
			t.Errorf("dropped after %s, want %s", took, testSilence)
		}
		if pings < 1 {
			t.Errorf("%d pings", pings)
		}
		await.Until(t, "detached", func() bool { return !h.Attached(row) })
	})
	ways := map[string]func(c *hosttest.Client){
		"pongs":           nil, // gorilla's own
		"pings as frames": func(c *hosttest.Client) { c.Raw(hosttest.RawFrame(true, hosttest.OpPing, "")) },
		"pong frames":     func(c *hosttest.Client) { c.Raw(hosttest.RawFrame(true, hosttest.OpPong, "")) },
		"ignored frames":  func(c *hosttest.Client) { c.Raw(hosttest.RawFrame(true, hosttest.OpText, `{"type":"pong"}`)) },
		"refused frames":  func(c *hosttest.Client) { c.Raw(hosttest.RawFrame(true, hosttest.OpText, `{}`)) },
		"half frames":     func(c *hosttest.Client) { c.Raw(hosttest.RawFrame(false, hosttest.OpContinuation, " ")) },
	}
	for name, live := range ways {
		t.Run("alive by "+name, func(t *testing.T) {
			t.Parallel()
			row := h.Channel(strings.ReplaceAll(name, " ", "-"))
			staysAlive(t, h, row, live, name == "half frames")
		})
	}
}

// staysAlive keeps a connection for twice the silence that would end it.
func staysAlive(t *testing.T, h *hosttest.Host, row ledger.Channel, live func(*hosttest.Client), inside bool) {
	c := h.Attach(t, row)
	if live != nil {
		c.WS.SetPingHandler(func(string) error { return nil })
	}
	if inside {
		c.Raw(hosttest.RawFrame(false, hosttest.OpText, " "))
	}
	var last atomic.Value
	read := make(chan struct{})
	go func() { // reads, so that pings are met
		defer close(read)
		for {
			got, err := c.Next()
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
		c.Raw(hosttest.RawFrame(true, hosttest.OpContinuation, hosttest.Say("c", "still here")))
	} else {
		c.Raw(hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "still here")))
	}
	await.Until(t, "answer", func() bool { return last.Load() == hosttest.Answer("c", "echo: still here") })
	_ = c.WS.Close()
	await.Value(t, "the reader ends", read)
}
