package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

const (
	bridleSecret = "a-secret-of-the-test-that-is-long-enough"
	bridleAPIKey = "an-api-key-of-the-test"
)

// bridleHost is a host with agents of kind bridle, and the key of each.
type bridleHost struct {
	*host
	keys map[string]string
}

// startBridle starts a host with agents of kind bridle.
func startBridle(t *testing.T, names ...string) *bridleHost {
	t.Helper()
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), wrap: []string{
		"env", "PONTOON_BRIDLE_JWT_SECRET=" + bridleSecret, "PONTOON_BRIDLE_API_KEY=" + bridleAPIKey,
	}}
	b := &bridleHost{host: h, keys: map[string]string{}}
	if err := os.MkdirAll(h.data, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), h.data, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b.keys[name] = auth.Generate(auth.AgentKeyPrefix)
		secret := auth.NewCredential(b.keys[name], time.Time{})
		if _, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-" + name, Name: name, Kind: "bridle", Enabled: true}, &secret, ledger.Change{Actor: "test", Action: "agent.create", Detail: json.RawMessage("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h.start("127.0.0.1:0")
	return b
}

// token is a browser's token.
func token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	if _, said := claims["exp"]; !said {
		claims["exp"] = time.Now().Add(time.Hour).Unix()
	}
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(bridleSecret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tokenOf(t *testing.T, sub string) string { return token(t, jwt.MapClaims{"sub": sub}) }

// call makes a request of Bridle's HTTP side and returns status and body.
func (b *bridleHost) call(ctx context.Context, token, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+"/api/agent"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(out)), err
}

func (b *bridleHost) expect(token, method, path, body string, status int) string {
	b.t.Helper()
	got, out, err := b.call(b.t.Context(), token, method, path, body)
	if err != nil || got != status {
		b.t.Fatalf("%s %s: %d %s %v, expected %d", method, path, got, out, err, status)
	}
	return out
}

// heard is what a client of the package said that it heard.
type heard struct {
	ID    string
	Event string
	Args  []json.RawMessage
}

// clients are clients of the socket.io-client package, in a process of node.
type clients struct {
	t     *testing.T
	p     *process
	lines []heard
	used  []bool
}

func startClients(t *testing.T, url string) *clients {
	t.Helper()
	dir := nodePackages(t, "bridle")
	p := startProcess(t, nil, "node", filepath.Join(dir, "client.mjs"), url)
	c := &clients{t: t, p: p}
	t.Cleanup(func() { // before it is told to stop
		_ = p.in.Close()
		p.waitExit()
	})
	return c
}

func (c *clients) do(command map[string]any) {
	c.t.Helper()
	b, err := json.Marshal(command)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.p.in.Write(append(b, '\n')); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clients) connect(id, namespace string, handshake map[string]any, transports ...string) {
	c.t.Helper()
	if len(transports) == 0 {
		transports = []string{"polling", "websocket"}
	}
	c.do(map[string]any{"op": "connect", "id": id, "namespace": namespace, "auth": handshake, "transports": transports})
}

func (c *clients) emit(id, event string, data any) {
	c.t.Helper()
	c.do(map[string]any{"op": "emit", "id": id, "event": event, "data": data})
}

func (c *clients) close(id string) { c.do(map[string]any{"op": "close", "id": id}) }

// read takes what was heard since.
func (c *clients) read() {
	out := c.p.out.String()
	if end := strings.LastIndexByte(out, '\n'); end >= 0 {
		for _, line := range strings.Split(out[:end], "\n")[len(c.lines):] {
			var h heard
			if err := json.Unmarshal([]byte(line), &h); err != nil {
				c.t.Fatalf("%s: %v", line, err)
			}
			c.lines, c.used = append(c.lines, h), append(c.used, false)
		}
	}
}

// hear waits for the client's next event of the name, and reads its first
// argument into v, if it is not nil. Other events stay for later.
func (c *clients) hear(id, event string, v any) {
	c.t.Helper()
	deadline := time.Now().Add(wait)
	for {
		c.read()
		for i, h := range c.lines {
			if c.used[i] || h.ID != id || h.Event != event {
				continue
			}
			c.used[i] = true
			if v == nil {
				return
			}
			if err := json.Unmarshal(h.Args[0], v); err != nil {
				c.t.Fatalf("%s %s: %v", id, event, err)
			}
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s did not hear %s; all that was heard:\n%s\n%s", id, event, c.p.out.String(), c.p.errs.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// heardMore reports an event that nobody waited for.
func (c *clients) heardMore(id, event string) bool {
	c.read()
	for i, h := range c.lines {
		if !c.used[i] && h.ID == id && h.Event == event {
			return true
		}
	}
	return false
}

// bridleMessage is what goes over a socket, as far as tests look at it.
type bridleMessage struct {
	Type         string            `json:"type"`
	ClientID     string            `json:"clientId"`
	Text         string            `json:"text"`
	Parts        []json.RawMessage `json:"parts"`
	MessageID    string            `json:"messageId"`
	TS           int64             `json:"ts"`
	Capabilities json.RawMessage   `json:"capabilities"`
	Prompt       string            `json:"prompt"`
}

func (m *bridleMessage) parts() string {
	b, err := json.Marshal(m.Parts)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// browse connects a browser and waits until it is welcome.
func (c *clients) browse(id, agent, token string, transports ...string) {
	c.t.Helper()
	c.connect(id, "/ws/client", map[string]any{"token": token, "agentId": agent}, transports...)
	c.hear(id, "welcome", nil)
}

// serveAs connects an agent and waits until it is let in.
func (c *clients) serveAs(id, agent, key string, transports ...string) {
	c.t.Helper()
	c.connect(id, "/ws/agent", map[string]any{"apiKey": key, "agentId": agent}, transports...)
	c.hear(id, "connect", nil)
	c.emit(id, "register", map[string]any{})
	c.emit(id, "ping", map[string]any{})
	c.hear(id, "pong", nil) // it would have been sent away before
}
