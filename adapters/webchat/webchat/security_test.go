package webchat

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestHostAndOrigin(t *testing.T) {
	r := startRig(t, `,"hosts":["chat.example.org","named.example.org:8443"]`)
	_, port, err := net.SplitHostPort(r.address())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{r.address(), "", 200},
		{"localhost:" + port, "", 200},
		{"LOCALHOST:" + port, "http://localhost:" + port, 200},
		{"[::1]:" + port, "", 200},
		{"127.9.9.9:" + port, "", 200},
		{"127.0.0.1", "", 403}, // another port's
		{"127.0.0.1:1", "", 403},
		{"evil.example:" + port, "", 403},           // DNS rebinding
		{"127.0.0.1.evil.example:" + port, "", 403}, // and its look-alikes
		{"localhost.evil.example:" + port, "", 403},
		{"192.168.1.5:" + port, "", 403},
		{"0.0.0.0:" + port, "", 403},
		{"chat.example.org", "", 200},
		{"chat.example.org:9", "https://chat.example.org:9", 200},
		{"named.example.org:8443", "https://named.example.org:8443", 200},
		{"named.example.org", "", 403},
		{r.address(), r.url, 200},
		{r.address(), "https://" + r.address(), 403},
		{r.address(), "http://evil.example", 403},
		{r.address(), "null", 403},
		{r.address(), "http://localhost:" + port, 403}, // another name has another storage
	} {
		req, err := http.NewRequest("GET", r.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("Host %q, Origin %q: status %d, expected %d", c.host, c.origin, resp.StatusCode, c.want)
		}
	}
	for name, header := range map[string]http.Header{
		"noOrigin":      {},
		"foreignOrigin": {"Origin": {"http://evil.example"}},
		"foreignHost":   {"Origin": {"http://evil.example:" + port}, "Host": {"evil.example:" + port}},
	} {
		conn, resp, err := r.dial(header)
		if err == nil {
			_ = conn.Close()
		}
		if resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("stream, %s: found %v, expected status 403", name, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
	}
	resp, err := http.Post(r.url+"/", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", resp.StatusCode)
	}
}

func TestHeaders(t *testing.T) {
	r := startRig(t, `,"title":"A <b>title</b> & more"`)
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/frame.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml"} {
		resp, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != 200 || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || len(resp.Cookies()) != 0 {
			t.Errorf("%s: %d %v", path, resp.StatusCode, h)
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy %q lacks %q", path, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
}

// The first frame must open a conversation.
func TestHello(t *testing.T) {
	r := startRig(t, "")
	for name, frame := range map[string]string{
		"noKey": `{"type":"hello"}`, "shortKey": `{"type":"hello","key":"00"}`, "otherKey": `{"type":"hello","key":"` + strings.Repeat("G", 32) + `"}`,
		"say": `{"type":"say","id":"` + hexID() + `","text":"x"}`, "noJSON": `hello`, "unknownField": `{"type":"hello","key":"` + hexID() + `","x":1}`, "array": `[]`,
	} {
		conn, resp, err := r.dial(http.Header{"Origin": {r.url}})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if err := conn.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		if _, text, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("%s: found %q, %v, expected close 1008", name, text, err)
		}
		_ = conn.Close()
	}
}

// The last page too many is told so.
func TestManyStreams(t *testing.T) {
	r := startRig(t, "")
	for range maxStreams {
		conn, resp, err := r.dial(http.Header{"Origin": {r.url}})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.WriteJSON(map[string]any{"type": "hello", "key": hexID()}); err != nil {
			t.Fatal(err)
		}
	}
	conn, resp, err := r.dial(http.Header{"Origin": {r.url}})
	if err == nil {
		_ = conn.Close()
	}
	if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("found %v, expected status 503", err)
	}
	_ = resp.Body.Close()
}

// What the host sends must be an address that runs nothing, in a conversation
// that can be one.
func TestRefused(t *testing.T) {
	a := New()
	ctx := context.Background()
	to := sdk.Target{ConversationID: conversationOf(hexID())}
	for _, url := range []string{
		"", "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "data:image/svg+xml;base64,AAAA",
		"vbscript:x", "file:///etc/passwd", "//evil.example/x", "http:evil", "\x01http://x", "blob:http://x/1",
	} {
		if _, err := a.SendImage(ctx, to, wire.Image{URL: url}); err == nil {
			t.Errorf("image %q is accepted", url)
		}
		if _, err := a.SendFile(ctx, to, wire.File{URL: url}); err == nil {
			t.Errorf("file %q is accepted", url)
		}
	}
	if _, err := a.SendImage(ctx, to, wire.Image{URL: "data:image/png;base64,iVBORw0KGgo="}); err != nil {
		t.Error(err)
	}
	if _, err := a.SendFile(ctx, to, wire.File{URL: "data:image/png;base64,iVBORw0KGgo="}); err == nil {
		t.Error("a data url is accepted as a file")
	}
	for _, id := range []string{"", "ops", strings.Repeat("a", 25), strings.ToUpper(to.ConversationID)} {
		if _, err := a.Send(ctx, sdk.Target{ConversationID: id}, "x"); err == nil || !strings.Contains(err.Error(), "conversation_id: found") {
			t.Errorf("conversation %q: found %v", id, err)
		}
	}
}
