package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/agui"
)

func newAGUI(t *testing.T, config json.RawMessage) *AGUI {
	t.Helper()
	a, err := NewAGUI(config, safehttp.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	a.first = time.Millisecond
	return a
}

func writeStream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, stream(events...))
	_ = http.NewResponseController(w).Flush()
}

func TestAGUIRequest(t *testing.T) {
	for name, c := range map[string]struct {
		payload json.RawMessage
		config  string
		want    string // of the forwardedProps; "" = absent
	}{
		"absent": {}, "null": {payload: []byte("null"), want: "null"}, "object": {payload: []byte(`{"locale":"zh"}`), want: `{"locale":"zh"}`},
		"of the config":      {config: `,"forwarded_props":{"a":1}`, want: `{"a":1}`},
		"not of the config":  {payload: []byte(`{}`), config: `,"forwarded_props":{"a":1}`, want: `{}`},
		"null over the rest": {payload: []byte(`null`), config: `,"forwarded_props":{"a":1}`, want: `null`},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := far(t, func(_ int, w http.ResponseWriter, r *http.Request, body []byte) {
				input, err := agui.ParseRun(body)
				if err != nil {
					t.Error(err)
				}
				if r.Header.Get("Accept") != "text/event-stream" || r.Header.Get("Authorization") != "Bearer x" || input.ThreadID != "room" || input.RunID != asked("").ID.String() ||
					string(input.More["state"]) != "{}" || string(input.More["tools"]) != "[]" || string(input.More["context"]) != "[]" {
					t.Errorf("%v\n%s", r.Header, body)
				}
				if string(input.ForwardedProps) != c.want || strings.Contains(string(body), "forwardedProps") != (c.want != "") {
					t.Errorf("forwardedProps are %s, want %s", input.ForwardedProps, c.want)
				}
				if n := len(input.Messages); n != 1 || input.Messages[0].Role != agui.RoleUser || string(input.Messages[0].Content) != `"hello"` {
					t.Errorf("%+v", input.Messages)
				}
				writeStream(w, "RUN_STARTED", "TEXT_MESSAGE_CHUNK messageId a delta hi", "RUN_FINISHED")
			})
			turn := asked("hello")
			if c.payload != nil {
				turn.Message.Meta = message.Meta{agui.MetaPayload: c.payload}
			}
			s := new(spoken)
			if err := newAGUI(t, configOf(url, c.config+`,"headers":{"Authorization":"Bearer x"}`)).Handle(t.Context(), turn, s); err != nil {
				t.Error(err)
			}
			s.want(t, "typing|~hi|hi")
		})
	}
}

// A run that has begun is not begun again, whatever becomes of it.
func TestAGUIIsBegunOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"breaks off":   {func(w http.ResponseWriter) { writeStream(w, "RUN_STARTED"); panic(http.ErrAbortHandler) }, "after 1 events: "},
		"ends early":   {func(w http.ResponseWriter) { writeStream(w, "RUN_STARTED") }, "expected RUN_FINISHED"},
		"no answer":    {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF"},
		"another type": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, `content-type: found "text/html`},
		"refused":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnprocessableEntity) }, "answered 422"},
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := far(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) { c.answer(w) })
			err := newAGUI(t, configOf(url, "")).Handle(t.Context(), asked("x"), new(spoken))
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, hub.ErrAway) || calls.Load() != 1 {
				t.Errorf("%v after %d calls", err, calls.Load())
			}
		})
	}
	url, calls := far(t, func(n int, w http.ResponseWriter, _ *http.Request, _ []byte) {
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		writeStream(w, "RUN_FINISHED")
	})
	if err := newAGUI(t, configOf(url, "")).Handle(t.Context(), asked("x"), new(spoken)); err != nil || calls.Load() != 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// What ends a turn ends the agent's request, at once.
func TestAGUIIsCancelled(t *testing.T) {
	gone := make(chan struct{}, 1)
	url, _ := far(t, func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) {
		writeStream(w, "RUN_STARTED", "TEXT_MESSAGE_CONTENT messageId a delta half")
		<-r.Context().Done()
		gone <- struct{}{}
	})
	a := newAGUI(t, configOf(url, ""))
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &spoken{shown: make(chan string, 1)}
	stopped := errors.New("stopped")
	ended := make(chan error, 1)
	go func() { ended <- a.Handle(ctx, asked("x"), s) }()
	await.Value(t, "the beginning is shown", s.shown)
	cancel(stopped)
	if err := await.Value(t, "the turn ends", ended); !errors.Is(err, stopped) {
		t.Error(err)
	}
	await.Value(t, "the request ends", gone)
	s.want(t, "typing|~half")
}

func TestAGUITimes(t *testing.T) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	silent := func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) {
		writeStream(w, "RUN_STARTED")
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}
	busy := func(_ int, w http.ResponseWriter, r *http.Request, _ []byte) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
				return
			}
			writeStream(w)
			time.Sleep(5 * time.Millisecond)
		}
	}
	for want, c := range map[string]struct {
		far    func(int, http.ResponseWriter, *http.Request, []byte)
		change func(*AGUIConfig)
	}{
		"it was silent for 30ms": {silent, func(c *AGUIConfig) { c.IdleTimeout = Period(30 * time.Millisecond) }},
		"the run took too long":  {busy, func(c *AGUIConfig) { c.Timeout = Period(300 * time.Millisecond) }},
	} {
		url, _ := far(t, func(n int, w http.ResponseWriter, r *http.Request, body []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			c.far(n, w, r, body)
		})
		a := newAGUI(t, configOf(url, ""))
		c.change(&a.config)
		if err := a.Handle(t.Context(), asked("x"), new(spoken)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAGUIConfig(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "url: found none", `{"url":"https://a.example.org/","history":-1}`: "history: found -1", `{"url":"https://a.example.org/","history":501}`: "history: found 501",
		`{"url":"https://a.example.org/","forwarded_props":[]}`: "forwarded_props: expected an object", `{"url":"https://a.example.org/","secret":"x"}`: `unknown field "secret"`,
		`{"url":"https://a.example.org/","timeout":"2h"}`: "timeout: found 2h", `{"url":"https://a.example.org/","idle_timeout":"1ns"}`: "idle_timeout: found 1ns",
		`{"url":"http://169.254.169.254/","allow_private":true}`: "url: 169.254.169.254 is a link-local",
	} {
		if err := CheckAGUI(json.RawMessage(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	if err := CheckAGUI(json.RawMessage(`{"url":"https://a.example.org/","history":10,"timeout":"1m","idle_timeout":"10s","forwarded_props":{}}`)); err != nil {
		t.Error(err)
	}
}

func TestPaired(t *testing.T) {
	var all []agui.Message
	raw := `[{"role":"tool","toolCallId":"old","content":"1"},{"role":"user","content":"a"},
		{"role":"assistant","toolCalls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"u","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","toolCallId":"t","content":"2"},{"role":"assistant","toolCalls":[{"id":"v","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"assistant","content":"b","toolCalls":[{"id":"w","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"c"}]`
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		t.Fatal(err)
	}
	var got []string
	var made []told
	for _, m := range all {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, told{raw: raw})
		if len(m.ToolCalls) > 0 || m.Role == agui.RoleTool {
			made[len(made)-1].tools = &m
		}
	}
	for _, one := range paired(made) {
		var m agui.Message
		if err := json.Unmarshal(one.raw, &m); err != nil || one.err != nil {
			t.Fatal(err, one.err)
		}
		line := m.Role + string(m.Content) + m.ToolCallID
		for _, c := range m.ToolCalls {
			line += "+" + callID(c)
		}
		got = append(got, line)
	}
	if want := `user"a" assistant+t tool"2"t assistant"b" user"c"`; strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
}
