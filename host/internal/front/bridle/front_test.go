package bridle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	agents "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const (
	wait   = await.Limit
	secret = "a-secret-of-the-test-that-is-long-enough"
)

// slow is an agent that answers when it is told to.
type slow struct {
	asked  chan string
	answer chan string // "" = none
}

func (s *slow) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error {
	s.asked <- t.Message.Text
	select {
	case text := <-s.answer:
		if text == "" {
			return nil
		}
		if text == "fail" {
			return errors.New("a defect of the agent")
		}
		_, err := r.Send(ctx, message.Text(text))
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clock is when calls have waited for long enough.
type clock struct{ late chan time.Time }

func (c clock) after(time.Duration) (<-chan time.Time, func()) { return c.late, func() {} }

// ring ends all waiting, and that of a call which does not wait yet: an agent is
// asked before its caller does.
func (c clock) ring() { close(c.late) }

type setup struct {
	*Front
	t     *testing.T
	url   string
	slow  *slow
	clock clock
}

func start(t *testing.T, change func(*Options)) *setup {
	t.Helper()
	dir := t.TempDir()
	st, err := sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := attach.Open(dir, attach.Options{Base: func() string { return "http://host.test" }})
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{t: t, slow: &slow{make(chan string, 16), make(chan string, 16)}, clock: clock{make(chan time.Time)}}
	h := hub.New(hub.Options{Store: st, Attachments: files, Commands: command.New(), Agents: hub.Fixed{"echo": &agent.Echo{}, "slow": s.slow}})
	a := agents.New(agents.Options{Store: st, Out: h, Board: h})
	o := Options{Store: st, Attachments: files, Hub: front.Local{Hub: h}, Agents: a, Secret: secret, After: s.clock.after}
	if change != nil {
		change(&o)
	}
	if s.Front, err = Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Routes(door{mux})
	web := httptest.NewServer(mux)
	s.url = web.URL
	t.Cleanup(func() {
		s.Close()
		web.Close()
		http.DefaultClient.CloseIdleConnections()
		h.Close()
		a.Close()
		_ = files.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// door serves the front end's routes as they are, without the API around them.
type door struct{ mux *http.ServeMux }

func (d door) Operation(front.Operation, front.Handler) { panic("Bridle has no operations") }

func (d door) Handle(pattern string, h front.Handler) {
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			status := http.StatusInternalServerError
			var refused *front.Refusal
			if errors.As(err, &refused) {
				status = refused.Status
			}
			http.Error(w, err.Error(), status)
		}
	})
}

func (s *setup) token(sub string) string {
	s.t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *setup) call(ctx context.Context, sub, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+"/api/agent"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.token(sub))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(b)), err
}

// outcome is what became of a call in another goroutine.
type outcome struct {
	status int
	body   string
	err    error
}

func (s *setup) sync(ctx context.Context, sub, agent, text string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		status, body, err := s.call(ctx, sub, "POST", "/"+agent+"/message/sync", `{"text":"`+text+`"}`)
		done <- outcome{status, body, err}
	}()
	return done
}

func (s *setup) asked(want string) {
	s.t.Helper()
	select {
	case got := <-s.slow.asked:
		if got != want {
			s.t.Fatalf("the agent was asked %q, expected %q", got, want)
		}
	case <-time.After(wait):
		s.t.Fatalf("the agent was not asked %q", want)
	}
}

// eventually waits for a condition; what says which.
var eventually = await.Until

// idle reports that no call waits, and nothing is remembered of one.
func (s *setup) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting == 0 && len(s.syncs) == 0 && len(s.Front.asked) == 0 && len(s.ids) == 0
}

// A call that waits for too long says so, and a late answer is history.
func TestSyncTimeout(t *testing.T) {
	s := start(t, nil)
	done := s.sync(t.Context(), "u1", "slow", "Hello")
	s.asked("Hello")
	s.clock.ring()
	got := await.Value(t, "the call is answered", done)
	var answer struct {
		Text      string `json:"text"`
		MessageID string `json:"messageId"`
		TS        int64  `json:"ts"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 || answer.Text != "Timeout: no response from agent" || answer.MessageID != "" || answer.TS == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if strings.Contains(got.body, "parts") || !strings.Contains(got.body, `"messageId":""`) {
		t.Error(got.body)
	}
	eventually(t, "the call is forgotten", s.idle)
	s.slow.answer <- "too late"
	eventually(t, "the answer is in the transcript", func() bool {
		_, body, err := s.call(t.Context(), "u1", "GET", "/slow/transcript", "")
		return err == nil && strings.Contains(body, "too late")
	})
}

// Calls get the answers to their own messages, whatever order they come in, and
// one that is given up leaves nothing.
func TestSyncAnswers(t *testing.T) {
	s := start(t, nil)
	first := s.sync(t.Context(), "u1", "slow", "one")
	s.asked("one")
	ctx, leave := context.WithCancel(t.Context())
	second := s.sync(ctx, "u1", "slow", "two") // waits its turn
	eventually(t, "the second one is stored", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.ids) == 2
	})
	if _, err := s.Hub.(front.Local).Send(t.Context(), s.row(), hub.Outgoing{Conversation: "slow/u1", Message: message.Text("an operator's")}); err != nil {
		t.Fatal(err)
	}
	s.slow.answer <- "to one"
	if got := await.Value(t, "the call is answered", first); got.status != 200 || !strings.Contains(got.body, `"text":"to one"`) {
		t.Errorf("%+v", got)
	}
	s.asked("two")
	leave()
	if got := await.Value(t, "the call is answered", second); got.err == nil {
		t.Errorf("%+v", got)
	}
	s.slow.answer <- "to two"
	eventually(t, "nothing is left", s.idle)

	third := s.sync(t.Context(), "u1", "slow", "three")
	s.asked("three")
	s.slow.answer <- "fail"
	if got := await.Value(t, "the call is answered", third); got.status != 200 || !strings.Contains(got.body, "Sorry, no answer could be made") {
		t.Errorf("an agent that fails: %+v", got)
	}
	if got := await.Value(t, "the call is answered", s.sync(t.Context(), "u1", "nobody", "x")); got.status != 200 || !strings.Contains(got.body, agents.Away) {
		t.Errorf("an agent that there is not: %+v", got)
	}
	eventually(t, "nothing is left", s.idle)
}

// A browser's message has no metadata: what it brings under that name is dropped, like any
// unknown field.
func TestMetadataDropped(t *testing.T) {
	s := start(t, nil)
	status, body, err := s.call(t.Context(), "u1", "POST", "/slow/message", `{"text":"Hello","metadata":{"links":{"0":"x"},"edits":"1"},"links":{"0":"x"},"bridle":{"rest":{"x":1}}}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s, %v", status, body, err)
	}
	s.asked("Hello")
	s.slow.answer <- ""
	list, err := s.Store.Headings(t.Context(), ledger.Scope{Channel: s.row().Key}, 0, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	page, err := s.Pages.OpenList(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := page.Each(t.Context(), func(int64) {}, func(m *ledger.Entry) error {
		if len(m.Meta) != 0 {
			t.Errorf("stored with metadata %s", m.Meta)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (s *setup) row() ledger.Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel
}

func TestSyncLimits(t *testing.T) {
	s := start(t, func(o *Options) { o.MaxSyncs = 3 })
	var waiting []<-chan outcome
	for i := range 3 {
		waiting = append(waiting, s.sync(t.Context(), fmt.Sprintf("u%d", i), "slow", "x"))
	}
	for range 3 {
		s.asked("x")
	}
	if got := await.Value(t, "the call is answered", s.sync(t.Context(), "u9", "slow", "x")); got.status != http.StatusServiceUnavailable {
		t.Errorf("a fourth call: %+v", got)
	}
	s.Close()
	for _, w := range waiting { // they end with the host
		if got := await.Value(t, "the call is answered", w); got.status != 200 || !strings.Contains(got.body, "Timeout") {
			t.Errorf("%+v", got)
		}
	}
	if got := await.Value(t, "the call is answered", s.sync(t.Context(), "u1", "slow", "x")); got.status != http.StatusServiceUnavailable {
		t.Errorf("after the end: %+v", got)
	}
}

// Operators' settings of the channel count for browsers too.
func TestChannelSettings(t *testing.T) {
	s := start(t, nil)
	set := func(change func(*ledger.Channel)) {
		t.Helper()
		row := s.row()
		change(&row)
		row, err := s.Store.(*sqlite.Store).UpdateChannel(t.Context(), row, ledger.Change{Actor: "test", Action: "test", Detail: json.RawMessage("{}")})
		if err != nil {
			t.Fatal(err)
		}
		s.Hub.(front.Local).Update(row)
		if err := s.Changed(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name string, status int, want string) {
		t.Helper()
		if got := await.Value(t, "the call is answered", s.sync(t.Context(), "u1", "echo", "Hello")); got.status != status || !strings.Contains(got.body, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	expect("as it is", 200, "echo: Hello")
	set(func(c *ledger.Channel) { c.Agents = []string{"slow"} })
	expect("another agent alone", 403, "")
	set(func(c *ledger.Channel) { c.Agents = nil; c.Users = []string{"u2"} })
	expect("another user alone", 403, "this user")
	set(func(c *ledger.Channel) { c.Users = nil; c.Enabled = false })
	expect("disabled", 503, "disabled")
	set(func(c *ledger.Channel) { c.Enabled = true })
	expect("enabled again", 200, "echo: Hello")
}

// A file of this host must be one of this channel.
func TestForeignFiles(t *testing.T) {
	s := start(t, nil)
	put := func(owner string) string {
		t.Helper()
		o, err := s.Attachments.PutBytes(t.Context(), owner, []byte("text of a file"), attach.Claim{Name: "a.txt", MimeType: "text/plain"})
		if err != nil {
			t.Fatal(err)
		}
		return s.Attachments.Sign(o.Ref(), http.MethodGet, 0)
	}
	for name, c := range map[string]struct {
		url    string
		status int
	}{
		"ok": {put(s.row().ID), 200}, "elsewhere": {"https://cdn.example.com/a.txt", 200}, "errAnother": {put("another"), 400},
		"errForged": {put(s.row().ID) + "x", 400},
	} {
		part, err := json.Marshal(map[string]string{"type": "file", "url": c.url, "name": "a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		status, body, err := s.call(t.Context(), "u1", "POST", "/echo/message", `{"text":"","parts":[`+string(part)+`]}`)
		if err != nil || status != c.status || strings.Contains(body, "token=") {
			t.Errorf("%s: %d %s %v, expected %d", name, status, body, err, c.status)
		}
	}
}

func TestPostRate(t *testing.T) {
	var p posts
	for i := range postBurst {
		if !p.allow("u1") {
			t.Fatalf("message %d is one too many", i)
		}
	}
	if p.allow("u1") || !p.allow("u2") {
		t.Error("a user's messages are not counted, or counted for another")
	}
	for i := range maxPosts {
		p.allow(fmt.Sprint(i))
	}
	if len(p.of) != maxPosts || len(p.order) != maxPosts {
		t.Errorf("%d and %d are remembered", len(p.of), len(p.order))
	}
}
