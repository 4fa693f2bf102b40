package hosttest

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Frame is one frame in either direction, decoded.
type Frame map[string]any

// Peer is an adapter for tests that are about something else: it reads all the time,
// and looks at what frames say and not at their bytes, which Client does.
type Peer struct {
	T      *testing.T
	WS     *websocket.Conn
	Frames chan Frame // closed with the connection
	code   int        // close code, once Frames is closed
}

// PeerDial opens a connection without registering; query begins with "?", or is "".
func (h *Host) PeerDial(query string, header http.Header) *Peer {
	h.T.Helper()
	ws, resp, err := websocket.DefaultDialer.DialContext(h.T.Context(), "ws://"+h.Addr+wire.Path+query, header)
	if err != nil {
		h.T.Fatal(err)
	}
	_ = resp.Body.Close()
	p := &Peer{T: h.T, WS: ws, Frames: make(chan Frame, 4096)}
	go p.read()
	h.T.Cleanup(func() {
		_ = ws.Close()
		for range p.Frames { // until it has ended
		}
	})
	return p
}

func (p *Peer) read() {
	defer close(p.Frames)
	for {
		var f Frame
		if err := p.WS.ReadJSON(&f); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				p.code = closed.Code
			}
			return
		}
		p.Frames <- f
	}
}

// Peer registers with the token and these capabilities.
func (h *Host) Peer(token string, caps ...string) *Peer {
	h.T.Helper()
	p := h.PeerDial("", http.Header{"X-Bridge-Token": {token}})
	p.Send(Frame{"type": "register", "platform": "test", "capabilities": caps})
	if ack := p.Next("register_ack"); ack["ok"] != true {
		h.T.Fatalf("register_ack: %v", ack)
	}
	return p
}

// Refused checks that the token opens nothing.
func (h *Host) Refused(token string) {
	h.T.Helper()
	p := h.PeerDial("", http.Header{"X-Bridge-Token": {token}})
	p.Send(Frame{"type": "register"})
	if ack := p.Next("register_ack"); ack["ok"] != false || ack["error"] != wire.RefusedInvalidToken {
		h.T.Fatalf("register_ack: %v", ack)
	}
	p.Closed(int(wire.CloseRefused))
}

// Send writes a frame.
func (p *Peer) Send(f Frame) {
	p.T.Helper()
	if err := p.WS.WriteJSON(f); err != nil {
		p.T.Fatal(err)
	}
}

// Say sends a message of alice.
func (p *Peer) Say(conversation, text string) {
	p.T.Helper()
	p.Send(Frame{"type": "message", "conversation_id": conversation, "user_id": "alice", "text": text})
}

// Next returns the next frame, which must be of this type.
func (p *Peer) Next(kind string) Frame {
	p.T.Helper()
	f := await.Value(p.T, "a frame of type "+kind, p.Frames)
	if f == nil {
		p.T.Fatalf("connection closed with %d, expected a frame of type %s", p.code, kind)
	}
	if f["type"] != kind {
		p.T.Fatalf("found frame %v, expected type %s", f, kind)
	}
	return f
}

// Ask says something and checks the text that answers it.
func (p *Peer) Ask(conversation, text, answer string) {
	p.T.Helper()
	p.Say(conversation, text)
	if f := p.Next("send"); f["text"] != answer {
		p.T.Fatalf("%q is answered with %q, expected %q", text, f["text"], answer)
	}
}

// Closed checks the code that the host closes with; frames before it don't count.
func (p *Peer) Closed(code int) {
	p.T.Helper()
	for await.Value(p.T, "the connection is closed", p.Frames) != nil {
	}
	if p.code != code {
		p.T.Fatalf("closed with %d, expected %d", p.code, code)
	}
}
