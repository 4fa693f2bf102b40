package api_test

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// adapter is what the API shows of the one that is attached to a channel.
func adapter(h *hosttest.Host, channel string) api.Adapter {
	h.T.Helper()
	status, text := h.Ask(http.MethodGet, "/adapters", "")
	var list struct{ Adapters []api.Adapter }
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != http.StatusOK {
		h.T.Fatalf("%d %s: %v", status, text, err)
	}
	for _, a := range list.Adapters {
		if a.Channel == channel {
			return a
		}
	}
	h.T.Fatalf("nobody is attached to %s: %s", channel, text)
	return api.Adapter{}
}

// wantFrames waits until so many frames of a channel's adapter are counted.
func wantFrames(h *hosttest.Host, channel string, in, out uint64) {
	h.T.Helper()
	var a api.Adapter
	await.UntilElse(h.T, func() bool {
		a = adapter(h, channel)
		return a.FramesIn >= in && a.FramesOut >= out
	}, func() string { return "frames are not counted" })
	if a.FramesIn != in || a.FramesOut != out {
		h.T.Errorf("%s: %d frames in, %d out, expected %d and %d", channel, a.FramesIn, a.FramesOut, in, out)
	}
}

// TestAdapterFrames: each frame counts once, also what is refused and what nobody
// reads; another connection begins anew.
func TestAdapterFrames(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	row, other := h.Channel("counted"), h.Channel("other")
	c := h.Attach(t, row)
	h.Attach(t, other)
	wantFrames(h, "counted", 0, 1) // the acknowledgement of register, which came before it was attached
	c.Send(hosttest.Say("c", "hi"))
	c.Want(hosttest.Answer("c", "echo: hi"))
	wantFrames(h, "counted", 1, 2)
	c.Send(`{"type":"ping"}`)
	c.Want(`{"type":"pong"}`)
	c.Send(`{"type":"nonsense"}`)
	if _, err := c.Next(); err != nil { // told why
		t.Fatal(err)
	}
	wantFrames(h, "counted", 3, 4)
	h.MustSend(row, "c", "1")
	h.MustSend(row, "c", "2")
	c.Want(hosttest.Routed("send", "c", `"text":"1"`), hosttest.Routed("send", "c", `"text":"2"`))
	wantFrames(h, "counted", 3, 6)
	wantFrames(h, "other", 0, 1)
	h.Attach(t, row)
	wantFrames(h, "counted", 0, 1)
}

// TestAdapterRoundTrip: how long the latest ping took is known once it is answered,
// and by no answer that was not asked for.
func TestAdapterRoundTrip(t *testing.T) {
	t.Parallel()
	const late = 60 * time.Millisecond
	h := hosttest.Start(t, func(s *hosttest.Setup) { s.Bridge.PingInterval = 400 * time.Millisecond })
	row := h.Channel("pinged")
	c := h.Dial(t, hosttest.Credentials{})
	var asked atomic.Bool
	pong := c.WS.PingHandler()
	c.WS.SetPingHandler(func(text string) error {
		asked.Store(true)
		<-time.After(late) // a slow adapter
		return pong(text)
	})
	c.Register(row)
	if err := c.WS.WriteControl(websocket.PongMessage, nil, time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	c.Send(hosttest.Say("c", "hi"))
	c.Want(hosttest.Answer("c", "echo: hi")) // so the pong was read
	if took := adapter(h, "pinged").RoundTripMS; took != nil && !asked.Load() {
		t.Errorf("answered within %g ms before it was asked", *took)
	}
	read := make(chan struct{})
	go func() { // reads, so that pings are met
		defer close(read)
		_, _ = c.Next()
	}()
	var took *float64
	await.Until(t, "a ping is answered", func() bool {
		took = adapter(h, "pinged").RoundTripMS
		return took != nil
	})
	if least, most := float64(late.Milliseconds()), float64(await.Limit.Milliseconds()); *took < least || *took > most {
		t.Errorf("the ping took %g ms, expected at least %g", *took, least)
	}
	_ = c.WS.Close()
	await.Value(t, "the reader ends", read)
}
