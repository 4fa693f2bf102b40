package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// What an operator takes away ends at once, with a code that says: do not come
// back.
func TestRevoked(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	tokenID := func(row ledger.Channel) int64 {
		tokens, err := h.Store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return tokens[0].ID
	}
	for name, tt := range map[string]struct {
		end    func(row ledger.Channel)
		reason string
	}{
		"revoked": {func(row ledger.Channel) {
			h.Operator("DELETE", fmt.Sprintf("/channels/%s/tokens/%d", row.Name, tokenID(row)), "", 204)
		}, "token revoked"},
		"disabled": {func(row ledger.Channel) { h.Operator("PATCH", "/channels/"+row.Name, `{"enabled":false}`, 200) }, "channel disabled"},
		"deleted":  {func(row ledger.Channel) { h.Operator("DELETE", "/channels/"+row.Name, "", 204) }, "channel deleted"},
		"rotated":  {func(row ledger.Channel) { h.Operator("POST", "/channels/"+row.Name+"/tokens", `{"overlap":"0s"}`, 201) }, "token expired"},
	} {
		t.Run(name, func(t *testing.T) {
			row, other := h.Channel(name), h.Channel("beside-"+name)
			c, beside := h.Attach(t, row), h.Attach(t, other)
			c.Works()
			tt.end(row)
			c.WantClose(4003, tt.reason)
			beside.Works()
			await.Until(t, "detached", func() bool { return !h.Attached(row) })
			c = h.Dial(t, hosttest.Credentials{})
			c.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name)))
			c.Want(hosttest.AckFailed("invalid token"))
			c.WantClose(1008, "invalid token")
		})
	}
}

// Of a channel's sessions only those of the older tokens end.
func TestRotated(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("rotated")
	c := h.Attach(t, row)
	h.Operator("POST", "/channels/rotated/tokens", `{"token":"the-next-token-of-it","overlap":"1h"}`, 201)
	c.Works()
	c = places{"-", "-", "-", "the-next-token-of-it"}.open(t, h)
	c.Want(hosttest.AckOK)
	h.Operator("POST", "/channels/rotated/tokens", `{"token":"the-last-token-of-it","overlap":"2s"}`, 201)
	c.WantClose(4003, "token expired")
	c = places{"-", "-", "-", "the-last-token-of-it"}.open(t, h)
	c.Want(hosttest.AckOK)
	c.Works()
}

// A token's own end ends the session too.
func TestTokenExpiresWhileAttached(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row := h.Channel("expires")
	for life := 3 * time.Second; ; life *= 4 { // where a slow machine takes longer to attach
		token := "lives-for-" + life.String()
		secret := auth.NewCredential(token, time.Now().Add(life))
		if _, err := h.Store.RotateCredential(t.Context(), ledger.OfChannel(row.Key), secret, time.Now().Add(time.Hour), ledger.Change{Actor: "test", Action: "test"}); err != nil {
			t.Fatal(err)
		}
		c := places{"-", "-", "-", token}.open(t, h)
		if got := c.MustNext(); got == hosttest.AckOK {
			c.WantClose(4003, "token expired")
			return
		} else if life > time.Minute {
			t.Fatalf("not let in: %s", got)
		}
	}
}

// A host that stops writes what waits, then says that it will be back.
func TestDraining(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.SmallBuffer = true })
	row := h.Channel("draining")
	c, idle := h.AttachSmall(t, row), h.Attach(t, h.Channel("idle"))
	if n := h.Burst(row, 100, 40_000); n != 100 {
		t.Fatalf("%d messages were taken", n)
	}
	unregistered := h.Dial(t, hosttest.Credentials{}) // now: it may stay so for ten seconds
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.Stop()
	}()
	var got []string
	for range 100 { // at once: who does not read for ten seconds is cut off
		got = append(got, c.MustNext())
	}
	c.WantClose(1001, "the host is stopping")
	idle.WantClose(1001, "the host is stopping")
	unregistered.WantClose(1001, "the host is stopping")
	await.Value(t, "end of the host", stopped)
	h = h.Again()
	h.Attach(t, row).Works()
	for i, e := range h.History(row)[:100] {
		if got[i] != hosttest.Unasked("c", e.Text) {
			t.Errorf("frame %d is %.100s, want %.40s", i, got[i], e.Text)
		}
		if e.State != ledger.Sent {
			t.Errorf("%.40s", hosttest.Line(e))
		}
	}
}

// A host that stops, or is full, answers before the upgrade.
func TestNoMoreConnections(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, h *hosttest.Host) {
		t.Helper()
		_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+h.Addr+"/api/v1/channels/bridge/ws", nil)
		if err == nil {
			t.Fatal("upgraded")
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("answered %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	if d := bridgeDefaults(); d.MaxSessions < 10_000 {
		t.Errorf("default = %d", d.MaxSessions)
	}
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Bridge.MaxSessions = 2 })
	row := h.Channel("full")
	c, unregistered := h.Attach(t, row), h.Dial(t, hosttest.Credentials{})
	await.Until(t, "the second is counted", h.Slots.Full)
	refused(t, h)
	c.Works()
	_ = unregistered.WS.Close()
	await.Until(t, "there is room", func() bool { return !h.Slots.Full() })
	h.Attach(t, row).Works()
	h.Slots.Close()
	refused(t, h)
}

// A defect in one session costs that session, and frees its slot.
func TestSessionPanics(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row, other := h.Channel("panics"), h.Channel("other")
	beside := h.Attach(t, other)
	h.Log.PanicAt("adapter attached channel=panics")
	c := h.Dial(t, hosttest.Credentials{})
	c.Send(hosttest.RegisterFrame(hosttest.TokenOf(row.Name)))
	if _, code := c.Rest(); code != 1013 {
		t.Errorf("closed with %d, want 1013", code)
	}
	await.Until(t, "slot is free", func() bool { return !h.Attached(row) })
	beside.Works()
	h.Attach(t, row).Works()
}
