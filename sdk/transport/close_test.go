package transport

import (
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What comes in while the close frame waits for its turn to be written must not
// end the stream before it.
func TestCloseFrameComesBeforeTheEnd(t *testing.T) {
	host, adapter := pair(t)
	hostEnd, adapterEnd := ends(host), ends(adapter)
	host.socket.mu.Lock() // another write is at it
	closed := make(chan error, 1)
	go func() { closed <- host.Close(wire.CloseReplaced, "why") }()
	await.Until(t, "Close begins", host.closed.Load)
	if err := adapter.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, host.socket.mu.Unlock)
	wantCode(t, adapterEnd, wire.CloseReplaced, "why")
	if err := receive(t, "Close", closed); err != nil {
		t.Error(err)
	}
	_ = receive(t, "host's own end", hostEnd)
}
