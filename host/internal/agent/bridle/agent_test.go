package bridle

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/host/internal/socketio"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const wait = await.Limit

// outbox notes what agents send on their own.
type outbox struct {
	mu   sync.Mutex // guards said
	said []string
}

func (o *outbox) Send(_ context.Context, row ledger.Channel, out hub.Outgoing) (hub.Sent, error) {
	o.note(row.Name + " " + out.Conversation + " " + out.Agent + ": " + out.Message.Text)
	return hub.Sent{}, nil
}

func (o *outbox) Typing(_ context.Context, row ledger.Channel, conversation string, _ bool) error {
	o.note(row.Name + " " + conversation + " types")
	return nil
}

func (o *outbox) note(s string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, s)
}

func (o *outbox) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.said, "; ")
}

// board is nobody who wants to know.
type board struct{}

func (*board) AgentBack(string) {}
func (*board) AgentGone(string) {}

// replies notes the answers to one turn.
type replies struct {
	o    *outbox
	held chan struct{} // Last waits until it is closed; nil = it does not
}

func (r *replies) Send(context.Context, message.Message) (ledger.MessageID, error) { return 0, nil }
func (r *replies) Last(_ context.Context, m message.Message, _ func(ledger.MessageID, error)) error {
	if r.held != nil {
		<-r.held
	}
	r.o.note("answer: " + m.Text)
	return nil
}
func (r *replies) Transfer(context.Context, string, string) error { return nil }
func (r *replies) Stream(text string)                             { r.o.note("stream: " + text) }
func (r *replies) Typing(bool)                                    { r.o.note("typing") }

type setup struct {
	*Agents
	t     *testing.T
	url   string
	out   *outbox
	agent *Agent
	key   string
	id    int64 // of the key
}

var change = ledger.Change{Actor: "test", Action: "test", Detail: json.RawMessage("{}")}

func start(t *testing.T, o Options) *setup {
	t.Helper()
	st, err := sqlite.Open(t.Context(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{t: t, out: &outbox{}, key: auth.Generate(auth.AgentKeyPrefix)}
	gate := auth.NewGate(st, nil)
	o.Store, o.Door, o.Out, o.Board = st, gate, s.out, &board{}
	s.Agents = New(o)
	secret := auth.NewCredential(s.key, time.Time{})
	row, err := st.CreateAgent(t.Context(), ledger.Agent{ID: "id", Name: "helper", Kind: Kind, Enabled: true}, &secret, change)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := st.Credentials(t.Context(), ledger.OfAgent(row.Key), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.id = keys[0].ID
	for _, name := range []string{Kind, "telegram"} {
		if _, err := st.CreateChannel(t.Context(), ledger.Channel{ID: uuid.NewString(), Name: name, Kind: name, Enabled: true, Agent: "helper"}, nil, change); err != nil {
			t.Fatal(err)
		}
	}
	made, err := s.Kind().Make(row)
	if err != nil {
		t.Fatal(err)
	}
	s.agent = made.(*Agent)
	io := socketio.New(socketio.Options{Namespaces: map[string]socketio.Namespace{Namespace: s.Agents}, Rate: 1, Burst: 2}) // for browsers
	web := httptest.NewServer(io)
	s.url = "ws" + strings.TrimPrefix(web.URL, "http") + socketio.Path + "?EIO=4&transport=websocket"
	t.Cleanup(func() {
		s.Close()
		io.Close()
		web.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is an agent's end.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func (s *setup) dial(key string) *client {
	s.t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial(s.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	s.t.Cleanup(func() { _ = ws.Close() })
	c := &client{s.t, ws}
	c.hear("0{")
	c.say(`40` + Namespace + `,{"apiKey":"` + key + `","agentId":"helper"}`)
	c.hear("40" + Namespace)
	return c
}

func (s *setup) serve() *client {
	s.t.Helper()
	c := s.dial(s.key)
	c.event("ping", `{}`)
	c.hear(`["pong"`)
	return c
}

func (c *client) say(packet string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(packet)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) event(name, data string) {
	c.t.Helper()
	c.say(`42` + Namespace + `,["` + name + `",` + data + `]`)
}

// hear waits for a packet that holds the text.
func (c *client) hear(text string) string {
	c.t.Helper()
	if err := c.ws.SetReadDeadline(time.Now().Add(wait)); err != nil {
		c.t.Fatal(err)
	}
	for {
		_, b, err := c.ws.ReadMessage()
		if err != nil {
			c.t.Fatalf("did not hear %s: %v", text, err)
		}
		if strings.Contains(string(b), text) {
			return string(b)
		}
	}
}

// turn runs a turn; its error comes over the channel.
func (s *setup) turn(channel, conversation string, r hub.Reply) <-chan error {
	done := make(chan error, 1)
	go func() {
		done <- s.agent.Handle(context.Background(), hub.Turn{ID: 1 << 40, Channel: channel, Conversation: conversation, Message: message.Message{Role: message.RoleUser, Text: "Hello"}}, r)
	}()
	return done
}

func (s *setup) ended(done <-chan error, want error) {
	s.t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			s.t.Fatalf("the turn ended with %v, expected %v", err, want)
		}
	case <-time.After(wait):
		s.t.Fatal("the turn does not end")
	}
}

func (s *setup) noted(want string) {
	s.t.Helper()
	await.UntilElse(s.t, func() bool { return s.out.all() == want }, func() string {
		return "noted: " + s.out.all() + "\nexpected: " + want
	})
}

// An agent speaks for many clients: what browsers may send is no bound of it.
func TestAgentIsNotCountedAsABrowser(t *testing.T) {
	s := start(t, Options{})
	c := s.serve()
	for range 200 {
		c.event("ping", `{}`)
	}
	for range 200 {
		c.hear(`["pong"`)
	}
}

// What comes behind an answer does not overtake it.
func TestOrder(t *testing.T) {
	s := start(t, Options{})
	c := s.serve()
	r := &replies{s.out, make(chan struct{})}
	done := s.turn("telegram", "42", r)
	c.hear(`"clientId":"pontoon:telegram/42"`)
	const who = `{"clientId":"pontoon:telegram/42","text":`
	c.event("typing", who+`""}`)
	s.noted("typing")
	c.event("message", who+`"one"}`)
	c.event("message", who+`"two"}`)
	c.event("stream", who+`"not shown"}`)
	c.event("stream_end", who+`"three"}`)
	c.event("typing", who+`""}`)
	close(r.held)
	s.ended(done, nil)
	s.noted("typing; answer: one; telegram 42 helper: two; telegram 42 helper: three; telegram 42 types")
}

// A turn outlives a connection that comes back soon, and no other.
func TestReconnect(t *testing.T) {
	s := start(t, Options{Grace: wait})
	c := s.serve()
	done := s.turn("telegram", "42", &replies{o: s.out})
	asked := c.hear(`"message"`)
	_ = c.ws.Close()
	c = s.serve2(asked)
	c.event("message", `{"clientId":"pontoon:telegram/42","text":"still here"}`)
	s.ended(done, nil)
	s.noted("answer: still here")

	s = start(t, Options{Grace: 20 * time.Millisecond})
	c = s.serve()
	done = s.turn("telegram", "42", &replies{o: s.out})
	c.hear(`"message"`)
	_ = c.ws.Close()
	s.ended(done, hub.ErrAway)
	s.ended(s.turn("telegram", "42", &replies{o: s.out}), hub.ErrAway)
	if s.agent.Connected() {
		t.Error("it is there after it has gone")
	}
}

// serve2 connects, and is handed over what another connection was.
func (s *setup) serve2(asked string) *client {
	s.t.Helper()
	c := s.dial(s.key)
	if again := c.hear(`"message"`); again != asked {
		s.t.Errorf("handed over again as %s, was %s", again, asked)
	}
	return c
}

// An agent that says nothing does not hold its client up for ever.
func TestPatience(t *testing.T) {
	s := start(t, Options{Patience: 30 * time.Millisecond})
	c := s.serve()
	s.ended(s.turn("telegram", "42", &replies{o: s.out}), nil)
	c.event("message", `{"clientId":"pontoon:telegram/42","text":"late"}`)
	s.noted("telegram 42 helper: late")
}

// A newer connection takes the place of the older; a key that ends, or a row that
// changes, ends the connection.
func TestConnectionEnds(t *testing.T) {
	s := start(t, Options{HostKey: "the-key-of-the-host"})
	first := s.serve()
	second := s.serve()
	first.hear(`"REPLACED"`)
	first.hear("41" + Namespace)
	s.agent.Revoke(s.id + 1) // another key
	if !s.agent.Connected() {
		t.Fatal("another key's end ended the connection")
	}
	s.agent.Revoke(s.id)
	second.hear(`"INVALID_TOKEN"`)
	second.hear("41" + Namespace)

	third := s.serve()
	s.agent.Expire(s.id, time.Now()) // all but this
	s.agent.Expire(s.id+1, time.Now().Add(time.Hour))
	if !s.agent.Connected() {
		t.Fatal("it ended too early")
	}
	s.agent.Expire(s.id+1, time.Now())
	third.hear("41" + Namespace)

	s.key = "the-key-of-the-host"
	fourth := s.serve()
	s.agent.Revoke(0)
	s.agent.Expire(s.id, time.Now())
	if !s.agent.Connected() {
		t.Fatal("the host's key is no key of the agent")
	}
	if err := s.agent.Close(); err != nil {
		t.Fatal(err)
	}
	fourth.hear("41" + Namespace)
	s.dial(s.key).hear(`"INVALID_TOKEN"`) // there is no such agent any more
}

func TestBadFrames(t *testing.T) {
	s := start(t, Options{})
	c := s.serve()
	for name, f := range map[string]struct{ event, data, code string }{
		"errNoClient":  {"message", `{"text":"a"}`, CodeBadMessage},
		"errClient":    {"message", `{"clientId":7,"text":"a"}`, CodeBadMessage},
		"errLong":      {"message", `{"clientId":"` + strings.Repeat("x", 2000) + `","text":"a"}`, CodeBadMessage},
		"errNothing":   {"message", `{"clientId":"u1"}`, CodeBadMessage},
		"errStream":    {"stream", `{"clientId":"u1"}`, CodeBadMessage},
		"errText":      {"stream_end", `{"clientId":"u1","text":7}`, CodeBadMessage},
		"errNoObject":  {"message", `7`, CodeBadMessage},
		"errParts":     {"message", `{"clientId":"u1","parts":[{"no":"type"}]}`, CodeBadMessage},
		"errForeign":   {"message", `{"clientId":"pontoon:telegram/7","text":"a"}`, CodeUnknownClient},
		"errNeverSaid": {"message", `{"clientId":"u1","text":"a"}`, CodeUnknownClient},
	} {
		c.event(f.event, f.data)
		if got := c.hear("bridle_error"); !strings.Contains(got, f.code) {
			t.Errorf("%s: %s", name, got)
		}
	}
	c.event("thinking", `{}`) // of a newer Bridle
	c.event("ping", `{}`)
	c.hear(`["pong"`)
	if s.out.all() != "" {
		t.Error(s.out.all())
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add("message", []byte(`{"clientId":"u1","text":"a","parts":[{"type":"text","text":"a"}]}`))
	f.Add("stream", []byte(`{"clientId":"u1","text":"a"}`))
	f.Add("stream_end", []byte(`{"clientId":"u1","parts":[{"type":"vision","path":"/etc/passwd"},{"type":"image","base64":"AAAA"}]}`))
	f.Add("typing", []byte(`{"clientId":"u1"}`))
	f.Fuzz(func(t *testing.T, event string, data []byte) {
		got, err := readFrame(event, []json.RawMessage{data})
		if err != nil {
			return
		}
		if got.client == "" || len(got.client) > maxClient {
			t.Fatalf("client %q", got.client)
		}
		for _, p := range got.message.Parts {
			if (p.Type == message.TypeFile || p.Type == message.TypeVision) && message.TextField(p.Raw(), "path") != "" {
				t.Fatalf("%s names a file of the host", p.Raw())
			}
		}
		if _, err := messageEvent(got.client, &hub.Turn{Message: got.message}); err != nil {
			t.Fatal(err)
		}
	})
}
