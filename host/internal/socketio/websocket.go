package socketio

import (
	"net/http"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// serveWebSocket begins a session that is a WebSocket from the start.
func (c *conn) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	ws, err := transport.Upgrade(w, r)
	if err != nil {
		c.end("not upgraded") // the request is answered
		return
	}
	c.enqueue(opening(c.id, []string{}, &c.s.Options))
	if !c.s.spawn(func() { c.run(ws, nil) }) {
		drop(ws)
		c.end("the host is stopping")
	}
}

// drop ends a WebSocket that nobody reads.
func drop(ws transport.Conn) {
	_ = ws.Close(wire.CloseDraining, "the host is stopping")
	for {
		if _, err := ws.Read(); err != nil {
			return
		}
	}
}

// upgrade lets a session change from polling to a WebSocket.
func (c *conn) upgrade(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	busy := c.ws != nil || c.probing || c.ended
	if !busy {
		c.probing = true
	}
	c.mu.Unlock()
	if busy {
		refuse(w, http.StatusBadRequest, codeRequest, "Bad request: the session is a WebSocket, or about to be one")
		return
	}
	ws, err := transport.Upgrade(w, r)
	if err != nil {
		c.unprobe()
		return
	}
	if !c.s.spawn(func() { c.run(ws, c.probe) }) {
		drop(ws)
	}
}

func (c *conn) unprobe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// probe waits until the client says that it changes to the WebSocket. The
// session goes on by polling meanwhile, and if it never says so.
func (c *conn) probe(ws transport.Conn) bool {
	late := time.AfterFunc(upgradeTimeout, func() { _ = ws.Close(wire.CloseRefused, "upgrade timeout") })
	defer late.Stop()
	ended := make(chan struct{})
	defer close(ended)
	if !c.s.spawn(func() {
		select {
		case <-c.ctx.Done():
			_ = ws.Close(wire.CloseDraining, "the session has ended")
		case <-ended:
		}
	}) {
		return false
	}
	b, err := ws.Read()
	if err != nil || string(b) != string(eioPing)+probe || ws.Write([]byte(string(eioPong)+probe)) != nil {
		return false
	}
	c.queue.Wake() // the poll that waits
	b, err = ws.Read()
	return err == nil && len(b) == 1 && b[0] == eioUpgrade
}

// run makes the WebSocket what carries the session, after begin said yes, and
// reads it to its end.
func (c *conn) run(ws transport.Conn, begin func(transport.Conn) bool) {
	if begin != nil && !begin(ws) {
		c.unprobe()
		drop(ws)
		return
	}
	c.mu.Lock()
	c.ws, c.probing = ws, false
	c.mu.Unlock()
	close(c.switched)
	c.queue.Wake()
	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := c.queue.Serve(ws, c.ctx.Done()); err != nil {
			c.end("write: " + err.Error())
			return
		}
		c.endDropped()
	}()
	for {
		b, err := ws.Read()
		if err != nil {
			c.end(err.Error())
			break
		}
		if err := c.guard(func() error { return c.take(b) }); err != nil {
			c.end(err.Error()) // goes on until the writer has closed it
		}
	}
	<-written
}
