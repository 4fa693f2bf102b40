package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// What an operator takes away ends at once, with a code that says: do not come
// back.
func TestRevoked(t *testing.T) {
	t.Parallel()
	h := start(t)
	tokenID := func(row ledger.Channel) int64 {
		tokens, err := h.store.Credentials(t.Context(), ledger.OfChannel(row.Key), 0, 10)
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
			h.operator("DELETE", fmt.Sprintf("/channels/%s/tokens/%d", row.Name, tokenID(row)), "", 204)
		}, "token revoked"},
		"disabled": {func(row ledger.Channel) { h.operator("PATCH", "/channels/"+row.Name, `{"enabled":false}`, 200) }, "channel disabled"},
		"deleted":  {func(row ledger.Channel) { h.operator("DELETE", "/channels/"+row.Name, "", 204) }, "channel deleted"},
		"rotated":  {func(row ledger.Channel) { h.operator("POST", "/channels/"+row.Name+"/tokens", `{"overlap":"0s"}`, 201) }, "token expired"},
	} {
		t.Run(name, func(t *testing.T) {
			row, other := h.channel(name), h.channel("beside-"+name)
			c, beside := h.attach(t, row), h.attach(t, other)
			c.works()
			tt.end(row)
			c.wantClose(4003, tt.reason)
			beside.works()
			eventually(t, "detached", func() bool { return !h.attached(row) })
			c = h.dial(t, credentials{})
			c.send(registerFrame(tokenOf(row.Name)))
			c.want(ackFailed("invalid token"))
			c.wantClose(1008, "invalid token")
		})
	}
}

// Of a channel's sessions only those of the older tokens end.
func TestRotated(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("rotated")
	c := h.attach(t, row)
	h.operator("POST", "/channels/rotated/tokens", `{"token":"the-next-token-of-it","overlap":"1h"}`, 201)
	c.works()
	c = places{"-", "-", "-", "the-next-token-of-it"}.open(t, h)
	c.want(ackOK)
	h.operator("POST", "/channels/rotated/tokens", `{"token":"the-last-token-of-it","overlap":"2s"}`, 201)
	c.works()
	c.wantClose(4003, "token expired")
	c = places{"-", "-", "-", "the-last-token-of-it"}.open(t, h)
	c.want(ackOK)
	c.works()
}

// A token's own end ends the session too.
func TestTokenExpiresWhileAttached(t *testing.T) {
	t.Parallel()
	h := start(t)
	row := h.channel("expires")
	secret := auth.NewCredential("lives-for-a-moment", time.Now().Add(3*time.Second))
	if _, err := h.store.RotateCredential(t.Context(), ledger.OfChannel(row.Key), secret, time.Now().Add(time.Hour), ledger.Change{Actor: "test", Action: "test"}); err != nil {
		t.Fatal(err)
	}
	c := places{"-", "-", "-", "lives-for-a-moment"}.open(t, h)
	c.want(ackOK)
	c.works()
	c.wantClose(4003, "token expired")
}

// A host that stops writes what waits, then says that it will be back.
func TestDraining(t *testing.T) {
	t.Parallel()
	h := start(t, func(s *setup) { s.smallBuffer = true })
	row := h.channel("draining")
	c, idle := h.slow(t, row), h.attach(t, h.channel("idle"))
	if n := h.burst(row, 100, 40_000); n != 100 {
		t.Fatalf("%d messages were taken", n)
	}
	var want []string
	for _, e := range h.history(row) {
		want = append(want, unasked("c", e.Text))
	}
	unregistered := h.dial(t, credentials{}) // now: it may stay so for ten seconds
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.stop()
	}()
	idle.wantClose(1001, "the host is stopping")
	unregistered.wantClose(1001, "the host is stopping")
	c.want(want...)
	c.wantClose(1001, "the host is stopping")
	receive(t, "end of the host", stopped)
	h = h.again()
	h.attach(t, row).works()
	for _, e := range h.history(row)[:100] {
		if e.State != ledger.Sent {
			t.Errorf("%.40s", line(e))
		}
	}
}

// A host that stops, or is full, answers before the upgrade.
func TestNoMoreConnections(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, h *host) {
		t.Helper()
		_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+h.addr+"/api/v1/channels/bridge/ws", nil)
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
	h := start(t, func(s *setup) { s.bridge.MaxSessions = 2 })
	row := h.channel("full")
	c, unregistered := h.attach(t, row), h.dial(t, credentials{})
	eventually(t, "the second is counted", h.slots.Full)
	refused(t, h)
	c.works()
	_ = unregistered.ws.Close()
	eventually(t, "there is room", func() bool { return !h.slots.Full() })
	h.attach(t, row).works()
	h.slots.Close()
	refused(t, h)
}

// A defect in one session costs that session, and frees its slot.
func TestSessionPanics(t *testing.T) {
	t.Parallel()
	h := start(t)
	row, other := h.channel("panics"), h.channel("other")
	beside := h.attach(t, other)
	h.log.mu.Lock()
	h.log.panic = "adapter attached channel=panics"
	h.log.mu.Unlock()
	c := h.dial(t, credentials{})
	c.send(registerFrame(tokenOf(row.Name)))
	if _, code := c.rest(); code != 1013 {
		t.Errorf("closed with %d, want 1013", code)
	}
	eventually(t, "slot is free", func() bool { return !h.attached(row) })
	beside.works()
	h.attach(t, row).works()
}
