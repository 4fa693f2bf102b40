package agui_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/agent"
	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/bridge"
	"github.com/pontoon-bridge/pontoon/host/internal/command"
	"github.com/pontoon-bridge/pontoon/host/internal/front"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// wait bounds everything that a test waits for.
const wait = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// script is an agent that does what the test says.
type script func(ctx context.Context, t hub.Turn, r hub.Reply) error

func (s script) Handle(ctx context.Context, t hub.Turn, r hub.Reply) error { return s(ctx, t, r) }

// host is a whole host in this process, on a socket of its own.
type host struct {
	t   *testing.T
	dir string

	shared string // a directory whose files may be sent by their paths

	store *sqlite.Store
	files *attach.Store
	hub   *hub.Hub
	front *agui.Front
	url   string
	admin string        // the operator's key
	key   string        // one of scope agent:run, with id "1"
	skew  *atomic.Int64 // of the clock of attachments, in nanoseconds
	stop  func()
}

type setup struct {
	dir     string
	agent   script // that the channel is routed to; nil = echo
	options agui.Options
	origins []string
}

// making serializes api.New, which sets a variable of its library.
var making sync.Mutex

func start(t *testing.T, s setup) *host {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	h := &host{t: t, dir: s.dir, shared: t.TempDir(), skew: new(atomic.Int64)}
	log := slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	h.store, err = sqlite.Open(t.Context(), blank.Dir(t, s.dir), sqlite.Options{Names: attach.Names})
	must(err)
	keys, err := auth.OpenKeys(s.dir)
	must(err)
	h.admin, err = auth.ReadKey(s.dir)
	must(err)
	h.files, err = attach.Open(s.dir, attach.Options{
		Base: func() string { return h.url }, Log: log, MaxBytes: 1 << 20, Files: []string{h.shared},
		Now: func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) },
	})
	must(err)
	agents := hub.Fixed{"echo": &agent.Echo{Assets: "http://pontoon.test/assets/", Pause: 60 * time.Millisecond}}
	if s.agent != nil {
		agents["script"] = s.agent
	}
	h.hub = hub.New(hub.Options{Store: h.store, Attachments: h.files, Agents: agents, Commands: command.New(), Log: log, TypingDelay: time.Hour})
	_, err = h.hub.Recover(t.Context())
	must(err)
	gate := auth.NewGate(h.store, nil)
	s.options.Store, s.options.Attachments, s.options.Hub, s.options.Log = h.store, h.files, front.Local{Hub: h.hub}, log
	h.front, err = agui.Open(t.Context(), s.options)
	must(err)
	making.Lock()
	handler := api.New(t.Context(), api.Options{
		Store: h.store, Attachments: h.files, Hub: h.hub, Slots: bridge.New(bridge.Local(h.hub), gate, bridge.Options{}), Keys: keys, Gate: gate, Fronts: []front.End{h.front},
		Assets: agent.Assets(), Log: log, Version: "test", Now: time.Now, Ready: h.store.Writable, Origins: s.origins,
	})
	making.Unlock()
	srv := httptest.NewServer(handler)
	h.url = srv.URL
	h.stop = sync.OnceFunc(func() {
		h.front.Close()
		srv.Close()
		h.hub.Close()
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
		if err := h.files.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	if h.key = h.newKey("app"); s.agent != nil {
		h.patch(`{"agent":"script"}`)
	}
	return h
}

// newKey makes a key of scope agent:run.
func (h *host) newKey(name string) string {
	h.t.Helper()
	if h.key != "" || name != "app" {
		return h.made(h.call(h.admin, "POST", "/keys", `{"name":"`+name+`","scopes":["agent:run"]}`))
	}
	status, body := h.call(h.admin, "POST", "/keys", `{"name":"app","scopes":["agent:run"]}`)
	if status == http.StatusConflict { // a host that was here before
		return ""
	}
	return h.made(status, body)
}

func (h *host) made(status int, body string) string {
	h.t.Helper()
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(body), &k); err != nil || status != http.StatusCreated || k.Key == "" {
		h.t.Fatalf("make a key: %d %s", status, body)
	}
	return k.Key
}

// patch changes the front end's channel.
func (h *host) patch(body string) {
	h.t.Helper()
	if status, got := h.call(h.admin, "PATCH", "/channels/agui", body); status != http.StatusOK {
		h.t.Fatalf("PATCH %s: %d %s", body, status, got)
	}
}

// open sends a request and returns its answer, whose body the caller closes.
func (h *host) open(ctx context.Context, key, method, path string, header http.Header, body io.Reader) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, h.url+"/api/v1"+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if req.Header.Get("Content-Type") == "" && body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func (h *host) call(key, method, path, body string) (int, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	defer cancel()
	resp := h.open(ctx, key, method, path, nil, strings.NewReader(body))
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatalf("%s %s: %v after %q", method, path, err, b)
	}
	return resp.StatusCode, string(b)
}

// event is any AG-UI event.
type event struct {
	Type, MessageID, Delta, Name, Code, Message string
	ThreadID, RunID, Role                       string
	ToolCallID, ToolCallName, ParentMessageID   string
	Content                                     *string
	Value                                       json.RawMessage
	Metadata                                    map[string]any
}

// input is the body of a run with one message.
func input(thread, run, id string, content any) string {
	b, err := json.Marshal(map[string]any{
		"threadId": thread, "runId": run, "messages": []any{map[string]any{"id": id, "role": "user", "content": content}},
		"tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// run runs to the end and returns the events.
func (h *host) run(key, body string) []event {
	h.t.Helper()
	status, raw := h.call(key, "POST", "/agent/run", body)
	if status != http.StatusOK {
		h.t.Fatalf("run %s: %d %s", body, status, raw)
	}
	return events(h.t, raw)
}

// events reads a whole stream, and checks its framing and its order.
func events(t *testing.T, raw string) []event {
	t.Helper()
	var out []event
	if strings.Contains(raw, "\r") || !strings.HasSuffix(raw, "\n\n") {
		t.Errorf("found a wrong line end in %q", raw)
	}
	for _, block := range strings.Split(strings.TrimSuffix(raw, "\n\n"), "\n\n") {
		if block == ": alive" {
			continue
		}
		data, ok := strings.CutPrefix(block, "data: ")
		var e event
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("found %q, expected data: and one line", block)
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%q: %v", block, err)
		}
		out = append(out, e)
	}
	check(t, out)
	return out
}

// check holds the rules of AG-UI against the events of one run.
func check(t *testing.T, all []event) {
	t.Helper()
	texts, calls := map[string]bool{}, map[string]bool{}
	for i, e := range all {
		last := i == len(all)-1
		switch e.Type {
		case "RUN_STARTED":
			if i != 0 {
				t.Errorf("event %d is RUN_STARTED", i)
			}
		case "RUN_FINISHED":
			if !last || len(texts)+len(calls) > 0 {
				t.Errorf("event %d of %d is RUN_FINISHED, open are %v %v", i, len(all), texts, calls)
			}
		case "RUN_ERROR":
			if !last || e.Message == "" {
				t.Errorf("event %d of %d is RUN_ERROR %q", i, len(all), e.Message)
			}
		case "TEXT_MESSAGE_START":
			if texts[e.MessageID] || e.MessageID == "" || e.Role != "assistant" {
				t.Errorf("event %d begins %q", i, e.MessageID)
			}
			texts[e.MessageID] = true
		case "TEXT_MESSAGE_CONTENT":
			if !texts[e.MessageID] || e.Delta == "" {
				t.Errorf("event %d adds %q to %q", i, e.Delta, e.MessageID)
			}
		case "TEXT_MESSAGE_END":
			if !texts[e.MessageID] {
				t.Errorf("event %d ends %q", i, e.MessageID)
			}
			delete(texts, e.MessageID)
		case "TOOL_CALL_START":
			calls[e.ToolCallID] = true
		case "TOOL_CALL_ARGS", "TOOL_CALL_END":
			if !calls[e.ToolCallID] {
				t.Errorf("event %d is of the call %q", i, e.ToolCallID)
			}
			if e.Type == "TOOL_CALL_END" {
				delete(calls, e.ToolCallID)
			}
		case "TOOL_CALL_RESULT":
			if e.Content == nil || e.MessageID == "" || e.ToolCallID == "" {
				t.Errorf("event %d is a result without content", i)
			}
		case "CUSTOM":
			if e.Name == "" || e.Value == nil {
				t.Errorf("event %d is a custom one without name or value", i)
			}
		default:
			t.Errorf("event %d is %q", i, e.Type)
		}
	}
	if len(all) == 0 || all[0].Type != "RUN_STARTED" || !strings.HasPrefix(all[len(all)-1].Type, "RUN_") {
		t.Errorf("found %+v", all)
	}
}

// texts are the messages of a run by what they say, in their order.
func texts(all []event) []string {
	var out []string
	at := map[string]int{}
	for _, e := range all {
		switch e.Type {
		case "TEXT_MESSAGE_START":
			at[e.MessageID] = len(out)
			out = append(out, "")
		case "TEXT_MESSAGE_CONTENT":
			out[at[e.MessageID]] += e.Delta
		}
	}
	return out
}

func find(all []event, typ, name string) *event {
	for i := range all {
		if all[i].Type == typ && all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// reader reads a run while it goes on.
type reader struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Reader
	end  context.CancelFunc
	all  []event
}

// begin begins a run and returns once it has begun.
func (h *host) begin(key, body string) *reader {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	resp := h.open(ctx, key, "POST", "/agent/run", nil, strings.NewReader(body)) //nolint:bodyclose // end does
	r := &reader{t: h.t, resp: resp, in: bufio.NewReader(resp.Body), end: func() { cancel(); _ = resp.Body.Close() }}
	h.t.Cleanup(r.end)
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		h.t.Fatalf("begin: %d %s", resp.StatusCode, b)
	}
	r.until("RUN_STARTED")
	return r
}

// until reads to the next event of the type.
func (r *reader) until(typ string) event {
	r.t.Helper()
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			r.t.Fatalf("waiting for %s after %d events: %v", typ, len(r.all), err)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.t.Fatal(err)
		}
		if r.all = append(r.all, e); e.Type == typ {
			return e
		}
	}
}

// said is a message of history.
type said struct {
	ID, Role, CreatedAt, ToolCallID string
	Content                         json.RawMessage
	ToolCalls                       []json.RawMessage
	Metadata                        map[string]any
	Parts                           []message.Part
}

func (h *host) history(key, query string) (messages []said, next string) {
	h.t.Helper()
	status, raw := h.call(key, "GET", "/agent/history?"+query, "")
	var page struct {
		Messages   []said
		NextCursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(raw), &page); err != nil || status != http.StatusOK {
		h.t.Fatalf("history %s: %d %s", query, status, raw)
	}
	return page.Messages, page.NextCursor
}

// stored are the messages of the channel as the operator sees them, newest first.
func (h *host) stored() []struct {
	ID, Direction, Text, State, Reason string
	ConversationID                     string `json:"conversation_id"`
	AuthorID                           string `json:"author_id"`
	Metadata                           map[string]json.RawMessage
	Parts                              []message.Part
} {
	h.t.Helper()
	var page struct {
		Messages []struct {
			ID, Direction, Text, State, Reason string
			ConversationID                     string `json:"conversation_id"`
			AuthorID                           string `json:"author_id"`
			Metadata                           map[string]json.RawMessage
			Parts                              []message.Part
		}
	}
	status, raw := h.call(h.admin, "GET", "/channels/agui/messages?limit=500", "")
	if err := json.Unmarshal([]byte(raw), &page); err != nil || status != http.StatusOK {
		h.t.Fatalf("messages: %d %s", status, raw)
	}
	return page.Messages
}

// upload sends a file.
func (h *host) upload(key, field, name, mimeType string, data []byte) (int, string) {
	h.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="` + field + `"; filename="` + name + `"`}, "Content-Type": {mimeType},
	})
	if err == nil {
		_, err = part.Write(data)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	defer cancel()
	resp := h.open(ctx, key, "POST", "/agent/attachments", http.Header{"Content-Type": {form.FormDataContentType()}}, &b)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
