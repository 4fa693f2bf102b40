package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Both transports of the real client, and the change from one to the other, carry
// a question and its answer.
func TestBridleRoundTrip(t *testing.T) {
	h := startBridle(t, "helper")
	c := startClients(t, h.url)
	for name, transports := range map[string][]string{"polling": {"polling"}, "websocket": {"websocket"}, "upgraded": {"polling", "websocket"}} {
		agent, browser, user := "agent-"+name, "browser-"+name, "user-"+name
		c.serveAs(agent, "helper", h.keys["helper"], transports...)
		c.connect(browser, "/ws/client", map[string]any{
			"token": tokenOf(t, user), "agentId": "helper", "capabilities": []string{"forms"}, "prompt": "They look at /pricing", "unknown": 1,
		}, transports...)
		var first string
		c.hear(browser, "connect", &first)
		if len(transports) == 1 && first != transports[0] {
			t.Errorf("%s: connected by %s", name, first)
		}
		var welcome struct{ ClientID string }
		c.hear(browser, "welcome", &welcome)
		var status struct {
			Type, AgentID string
			Connected     bool
		}
		c.hear(browser, "agent_status", &status)
		if welcome.ClientID != user || status.Type != "agent_status" || status.AgentID != "helper" || !status.Connected {
			t.Errorf("%s: welcome %+v, status %+v", name, welcome, status)
		}
		if len(transports) == 2 {
			c.hear(browser, "upgrade", nil)
			c.hear(agent, "upgrade", nil)
		}

		c.emit(browser, "message", map[string]any{"text": "Hello"})
		var asked bridleMessage
		c.hear(agent, "message", &asked)
		if asked.Type != "message" || asked.ClientID != user || asked.Text != "Hello" || asked.parts() != `[{"text":"Hello","type":"text"}]` && asked.parts() != `[{"type":"text","text":"Hello"}]` ||
			asked.MessageID == "" || string(asked.Capabilities) != `["forms"]` || asked.Prompt != "They look at /pricing" {
			t.Errorf("%s: the agent got %+v", name, asked)
		}
		c.emit(agent, "typing", map[string]any{"clientId": user, "ts": 1})
		c.hear(browser, "typing", nil)
		for _, text := range []string{"Hi", "Hi there"} {
			c.emit(agent, "stream", map[string]any{"clientId": user, "text": text, "parts": []any{}, "messageId": "m1", "ts": 2})
			var part bridleMessage
			c.hear(browser, "stream", &part)
			if part.Type != "stream" || part.Text != text || part.MessageID == "" {
				t.Errorf("%s: %+v", name, part)
			}
		}
		c.emit(agent, "stream_end", map[string]any{"clientId": user, "text": "Hi there!", "messageId": "m1", "ts": 3})
		var end bridleMessage
		c.hear(browser, "stream_end", &end)
		if end.Type != "stream_end" || end.Text != "Hi there!" || len(end.Parts) != 1 || end.TS == 0 {
			t.Errorf("%s: %+v", name, end)
		}
		c.emit(agent, "message", map[string]any{"clientId": user, "text": "By the way", "messageId": "m2", "ts": 4}) // nobody asked
		var more bridleMessage
		c.hear(browser, "message", &more)
		if more.Text != "By the way" || more.MessageID == end.MessageID {
			t.Errorf("%s: %+v", name, more)
		}
		c.emit(browser, "ping", map[string]any{})
		c.hear(browser, "pong", nil)
		var lines transcriptOf
		h.transcript(tokenOf(t, user), "", &lines)
		if got := lines.String(); got != "web: user Hello, assistant Hi there!, assistant By the way" {
			t.Errorf("%s: %s", name, got)
		}
		c.close(browser)
		c.close(agent)
	}
}

type transcriptOf struct {
	Channel  string
	Messages []struct {
		ID, Role, Text string
		TS             int64
	}
}

func (l transcriptOf) String() string {
	var all []string
	for _, m := range l.Messages {
		all = append(all, m.Role+" "+m.Text)
	}
	return l.Channel + ": " + strings.Join(all, ", ")
}

func (b *bridleHost) transcript(token, query string, v *transcriptOf) {
	b.t.Helper()
	*v = transcriptOf{}
	out := b.expect(token, "GET", "/helper/transcript"+query, "", 200)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		b.t.Fatal(err)
	}
}

// Parts go through as they are, in all forms that Bridle has.
func TestBridleParts(t *testing.T) {
	h := startBridle(t, "helper")
	c := startClients(t, h.url)
	c.serveAs("agent", "helper", bridleAPIKey, "websocket")
	c.browse("browser", "helper", tokenOf(t, "u1"), "websocket")

	image := map[string]any{"type": "image", "base64": "iVBORw0KGgo=", "mediaType": "image/png"}
	c.emit("browser", "message", map[string]any{"text": "Look", "images": []any{map[string]any{"base64": "iVBORw0KGgo=", "mediaType": "image/png"}}})
	var asked bridleMessage
	c.hear("agent", "message", &asked)
	want, err := json.Marshal([]any{map[string]any{"type": "text", "text": "Look"}, image})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the older form of images", asked.parts(), string(want))

	form := `{"type":"ui","uiId":"f1","components":[{"type":"heading","text":"Who are you?"},{"type":"input","name":"name","required":true},{"type":"checkbox","name":"ok","label":"OK","default":true}],"submit":{"label":"Send"}}`
	file := `{"type":"file","url":"https://cdn.example.com/a.pdf","name":"a.pdf","mimeType":"application/pdf"}`
	answer := `[{"type":"text","text":"Fill this in"},` + form + `,` + file + `,{"type":"image","base64":"iVBORw0KGgo=","mediaType":"image/png"},{"type":"hologram","n":12345678901234567890}]`
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "Fill this in", "parts": json.RawMessage(answer), "messageId": "a1", "ts": 1})
	var got bridleMessage
	c.hear("browser", "message", &got)
	// JSON.parse of the client rounds the number: it is exact on the wire.
	same(t, "the answer's parts", got.parts(), strings.Replace(answer, "12345678901234567890", "12345678901234567000", 1))
	if got.Text != "Fill this in" {
		t.Errorf("text %q", got.Text)
	}

	submit := `[{"type":"ui_submit","uiId":"f1","values":{"name":"Ann","ok":true,"many":["a","b"]}}]`
	c.emit("browser", "message", map[string]any{"text": "", "parts": json.RawMessage(submit)})
	c.hear("agent", "message", &asked)
	same(t, "the form filled in", asked.parts(), submit)
	c.emit("agent", "message", map[string]any{"clientId": "u1", "parts": []any{map[string]any{"type": "text", "text": "Thanks"}}})
	c.hear("browser", "message", &got)
	if got.Text != "Thanks" {
		t.Errorf("the roll-up is %q", got.Text)
	}

	for name, data := range map[string]any{"nothing": map[string]any{}, "no parts": map[string]any{"parts": []any{}}} {
		c.do(map[string]any{"op": "emit", "id": "browser", "event": "message", "data": data, "ack": true})
		var failed struct{ Code, Message string }
		c.hear("browser", "bridle_error", &failed)
		var ack struct {
			OK    bool
			Error string
		}
		c.hear("browser", "ack", &ack)
		if failed.Code != "EMPTY_MESSAGE" || ack.OK || ack.Error == "" {
			t.Errorf("%s: %+v, %+v", name, failed, ack)
		}
	}
	var lines transcriptOf
	h.transcript(tokenOf(t, "u1"), "", &lines)
	if len(lines.Messages) != 4 {
		t.Errorf("history: %v", lines)
	}
}

// same compares JSON.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	norm := func(s string) string {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("%s: %v in %s", what, err, s)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if norm(got) != norm(want) {
		t.Errorf("%s:\n%s\nexpected\n%s", what, got, want)
	}
}

func TestBridleRefusedHandshakes(t *testing.T) {
	h := startBridle(t, "helper", "other")
	c := startClients(t, h.url)
	good := tokenOf(t, "u1")
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"sub": "u1"}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	hs512, err := jwt.NewWithClaims(jwt.SigningMethodHS512, jwt.MapClaims{"sub": "u1"}).SignedString([]byte(bridleSecret))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	refused := func(name, namespace string, handshake map[string]any, code string) {
		t.Helper()
		n++
		id := fmt.Sprintf("c%d", n)
		c.connect(id, namespace, handshake, []string{"polling", "websocket"}[n%2])
		var failed struct{ Code string }
		c.hear(id, "bridle_error", &failed)
		var why string
		c.hear(id, "disconnect", &why)
		if failed.Code != code || why != "io server disconnect" || c.heardMore(id, "welcome") {
			t.Errorf("%s: %s, %s", name, failed.Code, why)
		}
	}
	const browsers, agents = "/ws/client", "/ws/agent"
	hour := time.Now().Add(time.Hour).Unix()
	refused("errNothing", browsers, nil, "MISSING_TOKEN")
	refused("errNoToken", browsers, map[string]any{"agentId": "helper"}, "MISSING_TOKEN")
	refused("errNoAgent", browsers, map[string]any{"token": good}, "MISSING_AGENT_ID")
	for name, token := range map[string]any{
		"errGarbage": "garbage", "errNone": none, "errHS512": hs512, "errNumber": 7, "errSignature": good[:len(good)-2] + "AA",
		"errExpired": token(t, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(-time.Minute).Unix()}),
		"errEarly":   token(t, jwt.MapClaims{"sub": "u1", "nbf": hour}), "errNoSub": token(t, jwt.MapClaims{"exp": hour}),
		"errAdminByName": token(t, jwt.MapClaims{"sub": "admin"}), "errHostsName": token(t, jwt.MapClaims{"sub": "pontoon:x"}),
		"errNoExp": token(t, jwt.MapClaims{"sub": "u1", "exp": nil}), "errExpText": token(t, jwt.MapClaims{"sub": "u1", "exp": strconv.FormatInt(hour, 10)}),
		"errControl": token(t, jwt.MapClaims{"sub": "a\nb"}), "errLong": token(t, jwt.MapClaims{"sub": strings.Repeat("x", 257)}),
	} {
		refused(name, browsers, map[string]any{"token": token, "agentId": "helper"}, "INVALID_TOKEN")
	}
	refused("errSlash", browsers, map[string]any{"token": good, "agentId": "a/b"}, "FORBIDDEN")
	refused("errNoKey", agents, map[string]any{"agentId": "helper"}, "MISSING_TOKEN")
	refused("errNoName", agents, map[string]any{"apiKey": bridleAPIKey}, "MISSING_AGENT_ID")
	refused("errWrongKey", agents, map[string]any{"apiKey": bridleAPIKey + "x", "agentId": "helper"}, "INVALID_TOKEN")
	refused("errOthersKey", agents, map[string]any{"apiKey": h.keys["other"], "agentId": "helper"}, "INVALID_TOKEN")
	refused("errNoName", agents, map[string]any{"apiKey": bridleAPIKey, "agentId": "No Name"}, "INVALID_TOKEN")
	refused("errNoSuchAgent", agents, map[string]any{"apiKey": h.keys["helper"], "agentId": "nobody"}, "INVALID_TOKEN")
	refused("errOtherKind", agents, map[string]any{"apiKey": bridleAPIKey, "agentId": "echo"}, "INVALID_TOKEN")

	c.connect("elsewhere", "/", nil)
	var why string
	c.hear("elsewhere", "connect_error", &why)
	if why != "Invalid namespace" {
		t.Errorf("another namespace: %s", why)
	}
	c.do(map[string]any{"op": "connect", "id": "page", "namespace": browsers, "auth": map[string]any{"token": good, "agentId": "helper"},
		"transports": []string{"websocket"}, "headers": map[string]string{"Origin": "https://evil.example.com"}})
	c.hear("page", "connect_error", nil)
	for _, secret := range []string{bridleSecret, bridleAPIKey, h.keys["helper"], good} {
		if strings.Contains(h.errs.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// All browsers of a user are served, what one of them said is not said to the
// others, and another user hears nothing.
func TestBridleManyBrowsers(t *testing.T) {
	h := startBridle(t, "helper", "other")
	c := startClients(t, h.url)
	c.browse("one", "helper", tokenOf(t, "u1"), "websocket")
	var status struct{ Connected bool }
	if c.hear("one", "agent_status", &status); status.Connected {
		t.Error("an agent is there that is not")
	}
	c.emit("one", "message", map[string]any{"text": "Anybody?"})
	var away bridleMessage
	c.hear("one", "message", &away)
	if away.Text != "Agent is not connected. Please try again later." {
		t.Errorf("absent: %q", away.Text)
	}
	c.serveAs("agent", "helper", h.keys["helper"], "websocket")
	if c.hear("one", "agent_status", &status); !status.Connected {
		t.Error("nobody said that the agent has come")
	}
	var asked bridleMessage
	c.hear("agent", "message", &asked) // it has waited
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "Me, to " + asked.Text})
	var late bridleMessage
	if c.hear("one", "message", &late); late.Text != "Me, to Anybody?" {
		t.Errorf("after the agent came: %q", late.Text)
	}
	c.browse("two", "helper", tokenOf(t, "u1"), "polling")
	c.browse("stranger", "helper", tokenOf(t, "u2"), "websocket")
	c.browse("elsewhere", "other", tokenOf(t, "u1"), "websocket")
	c.browse("boss", "helper", token(t, jwt.MapClaims{"sub": "u3", "roles": []string{"ADMIN"}}), "websocket")

	c.emit("two", "message", map[string]any{"text": "Now?"})
	c.hear("agent", "message", &asked)
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "Yes"})
	for _, id := range []string{"one", "two"} {
		var got bridleMessage
		if c.hear(id, "message", &got); got.Text != "Yes" {
			t.Errorf("%s got %q", id, got.Text)
		}
	}
	c.emit("boss", "message", map[string]any{"text": "Report"})
	if c.hear("agent", "message", &asked); asked.ClientID != "admin" {
		t.Errorf("an admin is %q", asked.ClientID)
	}
	c.emit("agent", "message", map[string]any{"clientId": "admin", "text": "All well"})
	c.hear("boss", "message", nil)
	c.emit("agent", "message", map[string]any{"clientId": "nobody", "text": "Hello?"})
	var failed struct{ Code, ClientID string }
	if c.hear("agent", "bridle_error", &failed); failed.Code != "UNKNOWN_CLIENT" || failed.ClientID != "nobody" {
		t.Errorf("%+v", failed)
	}
	for _, id := range []string{"one", "two", "stranger", "elsewhere", "boss"} {
		if c.heardMore(id, "message") {
			t.Errorf("%s heard what was not for it:\n%s", id, c.p.out.String())
		}
	}

	var health struct {
		OK, AgentConnected bool
		BrowserClients     int
		AgentID            string
	}
	read := func(path string) {
		t.Helper()
		health.AgentID = ""
		if err := json.Unmarshal([]byte(h.expect("", "GET", path, "", 200)), &health); err != nil {
			t.Fatal(err)
		}
	}
	if read("/health"); !health.OK || !health.AgentConnected || health.BrowserClients != 4 {
		t.Errorf("%+v", health)
	}
	if read("/helper/health"); !health.AgentConnected || health.BrowserClients != 3 || health.AgentID != "helper" {
		t.Errorf("%+v", health)
	}
	if read("/other/health"); health.AgentConnected || health.BrowserClients != 1 {
		t.Errorf("%+v", health)
	}
	for _, path := range []string{"/agents", "/list"} {
		same(t, path, h.expect(tokenOf(t, "u1"), "GET", path, "", 200), `[{"agentId":"echo","clients":0},{"agentId":"helper","clients":3}]`)
	}
	c.close("agent")
	if c.hear("one", "agent_status", &status); status.Connected {
		t.Error("nobody said that the agent has gone")
	}
}

// The answer of a call that waits is the one to its own message; one whose client
// goes leaves nothing behind.
func TestBridleHTTP(t *testing.T) {
	h := startBridle(t, "helper")
	c := startClients(t, h.url)
	u1 := tokenOf(t, "u1")
	c.serveAs("agent", "helper", h.keys["helper"], "websocket")

	h.expect("", "POST", "/helper/message", `{"text":"a"}`, 401)
	h.expect("garbage", "POST", "/helper/message/sync", `{"text":"a"}`, 401)
	h.expect("", "GET", "/agents", "", 401)
	h.expect("", "GET", "/helper/transcript", "", 401)
	h.expect("", "DELETE", "/helper/transcript", "", 401)
	h.expect(u1, "POST", "/helper/message", `{}`, 400)
	h.expect(u1, "POST", "/helper/message/sync", `{}`, 400)
	h.expect(u1, "POST", "/helper/message", `{"text":5}`, 400)
	h.expect(u1, "POST", "/helper/message", `nonsense`, 400)
	h.expect(u1, "POST", "/helper/message", `{"text":"`+strings.Repeat("x", 300_000)+`"}`, 413)
	h.expect(u1, "POST", "/nobody/message", `{"text":"a"}`, 404)
	h.expect(u1, "GET", "/helper/transcript?channel=admin", "", 403)
	h.expect(u1, "GET", "/helper/transcript?channel=x", "", 400)

	same(t, "message", h.expect(u1, "POST", "/helper/message", `{"text":"first"}`, 200), `{"ok":true}`)
	answered := make(chan string, 1)
	failed := make(chan error, 1)
	go func() {
		status, out, err := h.call(t.Context(), u1, "POST", "/helper/message/sync", `{"text":"second"}`)
		if err != nil || status != 200 {
			failed <- fmt.Errorf("%d %s %w", status, out, err)
			return
		}
		answered <- out
	}()
	var asked bridleMessage
	c.hear("agent", "message", &asked)
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "to " + asked.Text})
	c.hear("agent", "message", &asked)
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "to " + asked.Text})
	select {
	case out := <-answered:
		var got bridleMessage
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Text != "to second" || got.MessageID == "" || got.TS == 0 || got.Type != "" {
			t.Errorf("%s %v", out, err)
		}
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(wait):
		t.Fatal("the call that waits is not answered")
	}

	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, _, err := h.call(ctx, u1, "POST", "/helper/message/sync", `{"text":"third"}`)
		failed <- err
	}()
	c.hear("agent", "message", &asked)
	leave()
	if err := await.Value(t, "the call that was given up returns", failed); err == nil {
		t.Error("the call that was given up has an answer")
	}
	same(t, "health", h.expect("", "GET", "/helper/health", "", 200), `{"ok":true,"agentConnected":true,"browserClients":0,"agentId":"helper"}`)
	c.emit("agent", "message", map[string]any{"clientId": "u1", "text": "to third"})

	var lines transcriptOf
	eventually(t, "the last answer is stored", func() bool {
		h.transcript(u1, "?channel=web", &lines)
		return len(lines.Messages) == 6
	})
	same(t, "clear", h.expect(u1, "DELETE", "/helper/transcript?channel=web", "", 200), `{"ok":true}`)
	var cleared bridleMessage
	c.hear("agent", "session_clear", &cleared)
	if cleared.ClientID != "u1" || cleared.Type != "session_clear" {
		t.Errorf("%+v", cleared)
	}
	if h.transcript(u1, "", &lines); len(lines.Messages) != 0 || lines.Messages == nil {
		t.Errorf("after it was cleared: %v", lines)
	}
	if rows := h.cli("messages", "bridle"); !strings.Contains(rows, "to third") {
		t.Errorf("what was cleared is gone:\n%s", rows)
	}
	boss := token(t, jwt.MapClaims{"roles": []string{"ADMIN"}})
	if h.transcript(boss, "", &lines); lines.Channel != "admin" {
		t.Errorf("%v", lines)
	}
}

// Without a secret nobody is let in, and that is said.
func TestBridleOff(t *testing.T) {
	h := &bridleHost{host: startHost(t)}
	out := h.expect(tokenOf(t, "u1"), "POST", "/echo/message", `{"text":"a"}`, 503)
	if !strings.Contains(out, "PONTOON_BRIDLE_JWT_SECRET") {
		t.Error(out)
	}
	c := startClients(t, h.url)
	c.connect("browser", "/ws/client", map[string]any{"token": tokenOf(t, "u1"), "agentId": "echo"})
	var failed struct{ Code string }
	c.hear("browser", "bridle_error", &failed)
	c.hear("browser", "disconnect", nil)
	if failed.Code != "BRIDLE_OFF" {
		t.Errorf("%+v", failed)
	}
}

// A browser talks to an agent of any kind, and history outlives the host.
// An agent that nobody made is made when it comes with the host's key, and stays.
// What belongs into the handshake may be in the url.
func TestBridleNewcomer(t *testing.T) {
	h := startBridle(t)
	c := startClients(t, h.url)
	inURL := func(id, namespace string, query map[string]string) {
		c.do(map[string]any{"op": "connect", "id": id, "namespace": namespace, "query": query, "transports": []string{"polling", "websocket"}})
	}
	inURL("agent", "/ws/agent", map[string]string{"apiKey": bridleAPIKey, "agentId": "newcomer"})
	c.hear("agent", "connect", nil)
	c.emit("agent", "ping", map[string]any{})
	c.hear("agent", "pong", nil)
	inURL("browser", "/ws/client", map[string]string{"token": tokenOf(t, "u1"), "agentId": "newcomer"})
	c.hear("browser", "welcome", nil)
	c.emit("browser", "message", map[string]any{"text": "Hello"})
	var got bridleMessage
	c.hear("agent", "message", &got)
	if got.Text != "Hello" {
		t.Errorf("%+v", got)
	}
	var row struct{ Kind string }
	h.json(&row, "agent", "show", "newcomer")
	if row.Kind != "bridle" {
		t.Errorf("the agent is of kind %q", row.Kind)
	}
	if strings.Contains(h.errs.String(), bridleAPIKey) || strings.Contains(h.errs.String(), tokenOf(t, "u1")) {
		t.Error("a secret is in the log")
	}
}

func TestBridleEcho(t *testing.T) {
	h := startBridle(t, "helper")
	if away := h.expect(tokenOf(t, "u1"), "POST", "/helper/message/sync", `{"text":"Anybody?"}`, 200); !strings.Contains(away, `"text":"Agent is not connected. Please try again later."`) {
		t.Error(away)
	}
	c := startClients(t, h.url)
	c.browse("browser", "echo", tokenOf(t, "u1"), "websocket")
	c.emit("browser", "message", map[string]any{"text": "Hello"})
	var got bridleMessage
	c.hear("browser", "message", &got)
	if got.Text != "echo: Hello" {
		t.Errorf("%+v", got)
	}
	c.emit("browser", "message", map[string]any{"text": "!buttons"})
	c.hear("browser", "message", &got)
	if !strings.Contains(got.Text, "Pick one:") || len(got.Parts) != 1 {
		t.Errorf("%+v", got)
	}
	c.emit("browser", "message", map[string]any{"text": "/agent nobody"})
	c.hear("browser", "message", &got)
	out := h.expect(tokenOf(t, "u1"), "POST", "/echo/message/sync", `{"text":"wait"}`, 200)
	if !strings.Contains(out, "echo: wait") {
		t.Error(out)
	}
	c.hear("browser", "message", &got) // the same answer
	h.stop()
	c.hear("browser", "disconnect", nil)
	h.again()
	before := h.expect(tokenOf(t, "u1"), "GET", "/echo/transcript", "", 200)
	if strings.Count(before, `"role"`) != 8 {
		t.Error(before)
	}
}
