package bridge_test

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// adapter is what the API shows of the one that is attached to a channel.
func (h *host) adapter(channel string) api.Adapter {
	h.t.Helper()
	status, text := h.ask(http.MethodGet, "/adapters", "")
	var list struct{ Adapters []api.Adapter }
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != http.StatusOK {
		h.t.Fatalf("%d %s: %v", status, text, err)
	}
	for _, a := range list.Adapters {
		if a.Channel == channel {
			return a
		}
	}
	h.t.Fatalf("nobody is attached to %s: %s", channel, text)
	return api.Adapter{}
}

// wantFrames waits until so many frames of a channel's adapter are counted.
func (h *host) wantFrames(channel string, in, out uint64) {
	h.t.Helper()
	var a api.Adapter
	eventuallyOr(h.t, func() bool {
		a = h.adapter(channel)
		return a.FramesIn >= in && a.FramesOut >= out
	}, func() string { return "frames are not counted" })
	if a.FramesIn != in || a.FramesOut != out {
		h.t.Errorf("%s: %d frames in, %d out, expected %d and %d", channel, a.FramesIn, a.FramesOut, in, out)
	}
}

// TestAdapterFrames: each frame counts once, also what is refused and what nobody
// reads; another connection begins anew.
func TestAdapterFrames(t *testing.T) {
	t.Parallel()
	h := start(t)
	row, other := h.channel("counted"), h.channel("other")
	c := h.attach(t, row)
	h.attach(t, other)
	h.wantFrames("counted", 0, 1) // the acknowledgement of register, which came before it was attached
	c.send(say("c", "hi"))
	c.want(answer("c", "echo: hi"))
	h.wantFrames("counted", 1, 2)
	c.send(`{"type":"ping"}`)
	c.want(`{"type":"pong"}`)
	c.send(`{"type":"nonsense"}`)
	if _, err := c.next(); err != nil { // told why
		t.Fatal(err)
	}
	h.wantFrames("counted", 3, 4)
	h.mustSend(row, "c", "1")
	h.mustSend(row, "c", "2")
	c.want(routed("send", "c", `"text":"1"`), routed("send", "c", `"text":"2"`))
	h.wantFrames("counted", 3, 6)
	h.wantFrames("other", 0, 1)
	h.attach(t, row)
	h.wantFrames("counted", 0, 1)
}

// TestAdapterRoundTrip: how long the latest ping took is known once it is answered,
// and by no answer that was not asked for.
func TestAdapterRoundTrip(t *testing.T) {
	t.Parallel()
	const late = 60 * time.Millisecond
	h := start(t, quickPulse)
	row := h.channel("pinged")
	c := h.dial(t, credentials{})
	var asked atomic.Bool
	pong := c.ws.PingHandler()
	c.ws.SetPingHandler(func(text string) error {
		asked.Store(true)
		<-time.After(late) // a slow adapter
		return pong(text)
	})
	c.register(row)
	if err := c.ws.WriteControl(websocket.PongMessage, nil, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c.send(say("c", "hi"))
	c.want(answer("c", "echo: hi")) // so the pong was read
	if took := h.adapter("pinged").RoundTripMS; took != nil && !asked.Load() {
		t.Errorf("answered within %g ms before it was asked", *took)
	}
	read := make(chan struct{})
	go func() { // reads, so that pings are met
		defer close(read)
		_, _ = c.next()
	}()
	var took *float64
	eventually(t, "a ping is answered", func() bool {
		took = h.adapter("pinged").RoundTripMS
		return took != nil
	})
	if least, most := float64(late.Milliseconds()), float64(patience.Milliseconds()); *took < least || *took > most {
		t.Errorf("the ping took %g ms, expected at least %g", *took, least)
	}
	_ = c.ws.Close()
	<-read
}
