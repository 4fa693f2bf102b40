package webchat

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// client speaks the page's side of the stream.
type client struct {
	t       *testing.T
	conn    *websocket.Conn
	key     string
	epoch   string
	entries []*entry // as shown: by their place, each once
	rev     uint64
	typing  bool
	ready   bool
	refused []map[string]any
	frames  chan map[string]any
}

func hexID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// dial opens a stream without hello.
func (r *rig) dial(header http.Header) (*websocket.Conn, *http.Response, error) {
	return websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(r.url, "http")+"/stream", header)
}

// client opens a conversation; key "" is a new one. before, if not nil, is what
// the page already has.
func (r *rig) client(t *testing.T, key string, before *client) *client {
	t.Helper()
	if key == "" {
		key = hexID()
	}
	conn, resp, err := r.dial(http.Header{"Origin": {r.url}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	c := &client{t: t, conn: conn, key: key, frames: make(chan map[string]any, 4096)}
	hello := map[string]any{"type": "hello", "key": key}
	if before != nil {
		c.entries, c.rev, c.epoch = before.entries, before.rev, before.epoch
		hello["epoch"], hello["since"] = before.epoch, before.rev
	}
	t.Cleanup(func() { _ = conn.Close() })
	c.send(hello)
	go c.read()
	c.until("ready", func() bool { return c.ready })
	return c
}

func (c *client) read() {
	defer close(c.frames)
	for {
		var f struct {
			Type  string
			Entry *entry
			On    bool
			Epoch string
			ID    string
			Retry float64
			Why   string `json:"reason"`
		}
		if err := c.conn.ReadJSON(&f); err != nil {
			return
		}
		c.frames <- map[string]any{"type": f.Type, "entry": f.Entry, "on": f.On, "epoch": f.Epoch, "id": f.ID, "retry": f.Retry, "reason": f.Why}
	}
}

func (c *client) send(v any) {
	c.t.Helper()
	if err := c.conn.WriteJSON(v); err != nil {
		c.t.Fatal(err)
	}
}

// until takes frames until ok.
func (c *client) until(what string, ok func() bool) {
	c.t.Helper()
	timeout := time.After(within)
	for !ok() {
		select {
		case f, open := <-c.frames:
			if !open {
				c.t.Fatalf("%s: the stream has ended", what)
			}
			c.take(f)
		case <-timeout:
			c.t.Fatalf("%s: not after %s; entries %v", what, within, c.texts())
		}
	}
}

func (c *client) take(f map[string]any) {
	switch f["type"] {
	case "welcome":
		if epoch := f["epoch"].(string); epoch != c.epoch {
			c.epoch, c.rev, c.entries = epoch, 0, nil
		}
	case "ready":
		c.ready = true
	case "typing":
		c.typing = f["on"].(bool)
	case "refused":
		c.refused = append(c.refused, f)
	case "entry":
		e := f["entry"].(*entry)
		if e.Rev <= c.rev {
			c.t.Errorf("revision %d comes after %d", e.Rev, c.rev)
		}
		c.rev = e.Rev
		at, known := slices.BinarySearchFunc(c.entries, e, func(a, b *entry) int { return int(a.Number) - int(b.Number) })
		if !known {
			c.entries = slices.Insert(c.entries, at, e)
		}
		c.entries[at] = e
	}
}

// said is an entry as kind:text, or one for each of its pieces.
func said(e *entry) string {
	if e.Kind != kindMessage {
		return string(e.Kind) + ":" + e.Text
	}
	var all []string
	for _, p := range e.Pieces {
		all = append(all, string(p.Kind)+":"+p.Text)
	}
	return strings.Join(all, "|")
}

func (c *client) texts() []string {
	var all []string
	for _, e := range c.entries {
		all = append(all, said(e))
	}
	return all
}

// say sends text and returns its id.
func (c *client) say(text string) string {
	c.t.Helper()
	id := hexID()
	c.send(map[string]any{"type": "say", "id": id, "text": text})
	return id
}

// answer says something and waits for a message of the host that is one piece of
// this kind.
func (c *client) answer(text string, k kind) (*piece, *entry) {
	c.t.Helper()
	id := c.say(text)
	var found *entry
	c.until("answer to "+text, func() bool {
		mine := slices.IndexFunc(c.entries, func(e *entry) bool { return e.Client == id })
		if mine < 0 {
			return false
		}
		for _, e := range c.entries[mine:] {
			if e.alone(k) != nil {
				found = e
			}
		}
		return found != nil
	})
	return found.Pieces[0], found
}

// of is what became of something said.
func (c *client) of(id string) state {
	for _, e := range c.entries {
		if e.Client == id {
			return e.State
		}
	}
	return ""
}

// conversation is the id that the host knows.
func (c *client) conversation() string { return conversationOf(c.key) }
