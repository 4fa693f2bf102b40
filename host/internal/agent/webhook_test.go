package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/safehttp"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// far is an agent on a socket of its own. It answers the n-th call, from 0 on,
// as told.
func far(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request, body []byte)) (url string, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // whoever called gave up
			return
		}
		answer(int(calls.Add(1))-1, w, r, body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook", calls
}

// configOf is a config as an operator writes it: the url, on this machine, and more.
func configOf(url, more string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"url":%q,"allow_private":true%s}`, url, more))
}

// webhook makes an agent that is not patient.
func webhook(t *testing.T, config json.RawMessage) *Webhook {
	t.Helper()
	w, err := NewWebhook(config, safehttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	w.first = time.Millisecond
	return w
}

func secretField() (secret, field string) {
	secret = NewWebhookSecret()
	return secret, fmt.Sprintf(`,"secret":%q`, secret)
}

func TestWebhookIsSigned(t *testing.T) {
	secret, _ := secretField()
	older, _ := secretField()
	url, _ := far(t, func(_ int, w http.ResponseWriter, r *http.Request, body []byte) {
		for _, s := range []string{secret, older} {
			wh, err := standardwebhooks.NewWebhook(s)
			if err != nil {
				t.Error(err)
			} else if err := wh.Verify(body, r.Header); err != nil {
				t.Error(err)
			}
		}
		stranger, _ := standardwebhooks.NewWebhook(NewWebhookSecret())
		if err := stranger.Verify(body, r.Header); err == nil {
			t.Error("any secret verifies it")
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Own") != "1" || r.Header.Get("webhook-id") != asked("").ID.String() {
			t.Errorf("%s %v", r.Method, r.Header)
		}
		f, err := agentwire.DecodeFromHost(body)
		if err != nil || f.Type != agentwire.TypeTurn || f.Turn.TurnID != asked("").ID.String() || f.Turn.Text() != "hello" || f.Turn.Channel != "chat" || f.Turn.ConversationID != "room" ||
			f.Turn.UserID != "u" || f.Turn.UserName != "User" || f.Turn.Repeated || f.Turn.HistoryCursor == "" || len(f.Turn.Capabilities) != 7 {
			t.Errorf("%+v, %v", f.Turn, err)
		}
		_, _ = io.WriteString(w, `{"text":"hi"}`)
	})
	a := webhook(t, configOf(url, fmt.Sprintf(`,"secret":%q,"secrets":[%q],"headers":{"X-Own":"1"}`, secret, older)))
	s := new(spoken)
	if err := a.Handle(t.Context(), asked("hello"), s); err != nil {
		t.Error(err)
	}
	s.want(t, "hi")
}

func TestWebhookAnswers(t *testing.T) {
	_, field := secretField()
	for name, c := range map[string]struct {
		status     int
		body, want string
		err        string
	}{
		"text":            {200, `{"text":"a"}`, "a", ""},
		"list":            {200, `[{"typing":true},{"text":"a"},{"text":"b","buttons":[[{"text":"Yes","value":"y"}]]}]`, "typing|a|b\n[Yes][custom]", ""},
		"typing and text": {200, `{"typing":true,"text":"a"}`, "typing|a", ""},
		"here":            {200, `{"conversation_id":"room","text":"a"}`, "a", ""},
		"image":           {201, `{"image":{"url":"https://a.example.org/x.png","caption":"c"}}`, "", ""},
		"update":          {200, `{"text":"a","update":{"preview_handle":"h"}}`, "a", ""},
		"nothing":         {200, "  \n", "", ""},
		"none":            {200, "[]", "", ""},
		"202":             {202, `anything at all`, "", ""},
		"204":             {204, "", "", ""},
		"no JSON":         {200, "ok", "", `answer: found "ok", expected a JSON object or a list`},
		"half":            {200, `{"text":`, "", "answer: unexpected EOF"},
		"more":            {200, `{"text":"a"}{}`, "", "found more behind the object"},
		"no content":      {200, `{}`, "", "answer: found no content, expected text"},
		"unknown field":   {200, `{"txt":"a"}`, "", `unknown field "txt"`},
		"wrong type":      {200, `{"text":1}`, "", "text: found a number, expected a string"},
		"in the list":     {200, `[{"text":"a"},{"image":{"url":"x"}}]`, "", "answer: [1]: image.url: expected an http or https url"},
		"elsewhere":       {200, `[{"text":"a"},{"text":"b","conversation_id":"x"}]`, "", "[1]: conversation_id: found another one"},
		"path":            {200, `{"file":{"path":"/etc/passwd"}}`, "", "file.path: found a path of the host's machine"},
		"path in a part":  {200, `{"parts":[{"type":"file","fileName":"x","path":"/etc/passwd"}]}`, "", "parts[0].path: found a path"},
		"host's metadata": {200, `{"text":"a","metadata":{"notice":true}}`, "", "metadata.notice: found a key that only the host sets"},
		"unknown message": {200, `{"text":"a","update":{"message_id":"nope"}}`, "", "update.message_id: no such message"},
		"empty update":    {200, `{"text":"a","update":{}}`, "", "update: found neither"},
		"too large":       {200, `{"text":"` + strings.Repeat("x", maxAnswer) + `"}`, "", "more than 4194304 bytes"},
		"too many":        {200, "[" + strings.Repeat(`{"text":"a"},`, maxAnswers) + `{"text":"a"}]`, "", "expected at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := far(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) {
				w.WriteHeader(c.status)
				if c.status != http.StatusNoContent {
					_, _ = io.WriteString(w, c.body)
				}
			})
			s := new(spoken)
			err := webhook(t, configOf(url, field)).Handle(t.Context(), asked("x"), s)
			if err == nil != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
			if errors.Is(err, hub.ErrAway) || calls.Load() != 1 {
				t.Errorf("%v, %d calls", err, calls.Load())
			}
			if name == "image" {
				c.want = s.messages[0].Text + "[vision]"
			}
			s.want(t, c.want)
		})
	}
}

// What the host alone sets is refused whichever key it is, also the handle, which an agent
// names in update.
func TestWebhookReservedMetadata(t *testing.T) {
	_, field := secretField()
	keys := message.HostKeys()
	url, _ := far(t, func(n int, w http.ResponseWriter, _ *http.Request, _ []byte) {
		_, _ = fmt.Fprintf(w, `{"text":"a","metadata":{"own":1,%q:"x"}}`, keys[n])
	})
	a := webhook(t, configOf(url, field))
	for _, key := range keys {
		s := new(spoken)
		if err := a.Handle(t.Context(), asked("x"), s); err == nil || !strings.Contains(err.Error(), "metadata."+key+": found a key that only the host sets") {
			t.Errorf("%s: %v", key, err)
		}
		s.want(t, "")
	}
}

func TestWebhookIsTriedAgain(t *testing.T) {
	_, field := secretField()
	var mu sync.Mutex
	seen := map[string]bool{} // ids, bodies
	url, calls := far(t, func(n int, w http.ResponseWriter, r *http.Request, body []byte) {
		mu.Lock()
		seen[r.Header.Get("webhook-id")+" "+string(body)] = true
		mu.Unlock()
		switch n {
		case 0:
			w.WriteHeader(http.StatusBadGateway)
		case 1: // the connection breaks within the answer
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"text":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusTooEarly)
		case 3:
			w.WriteHeader(http.StatusRequestTimeout)
		default:
			_, _ = io.WriteString(w, `{"text":"at last"}`)
		}
	})
	s := new(spoken)
	if err := webhook(t, configOf(url, field)).Handle(t.Context(), asked("x"), s); err != nil {
		t.Fatal(err)
	}
	s.want(t, "at last")
	if calls.Load() != 5 || len(seen) != 1 {
		t.Errorf("%d calls, seen as %d", calls.Load(), len(seen))
	}
}

func TestWebhookRetryAfter(t *testing.T) {
	_, field := secretField()
	url, _ := far(t, func(n int, w http.ResponseWriter, _ *http.Request, _ []byte) {
		if n == 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	began := time.Now()
	if err := webhook(t, configOf(url, field)).Handle(t.Context(), asked("x"), new(spoken)); err != nil || time.Since(began) < time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	url, calls := far(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if err := webhook(t, configOf(url, field)).Handle(t.Context(), asked("x"), new(spoken)); !errors.Is(err, hub.ErrAway) || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "99999999999": 0, now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// What trying again does not mend is not tried again, and is not absence.
func TestWebhookRefusals(t *testing.T) {
	_, field := secretField()
	for _, status := range []int{300, 301, 307, 400, 401, 403, 404, 410, 422} {
		url, calls := far(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "why\n\x00\xff "+strings.Repeat("x", 3*maxWords))
		})
		err := webhook(t, configOf(url, field)).Handle(t.Context(), asked("x"), new(spoken))
		if err == nil || errors.Is(err, hub.ErrAway) || calls.Load() != 1 || !strings.Contains(err.Error(), fmt.Sprint(status)) ||
			status >= 400 && (!errors.Is(err, hub.ErrTurnRefused) || !strings.Contains(err.Error(), ": why \x00\uFFFD xxx") || len(err.Error()) > maxWords+100) {
			t.Errorf("%d: %v after %d calls", status, err, calls.Load())
		}
	}
	url, calls := far(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	err := webhook(t, configOf(url, field+`,"attempts":2`)).Handle(t.Context(), asked("x"), new(spoken))
	if err == nil || errors.Is(err, hub.ErrAway) || errors.Is(err, hub.ErrTurnRefused) || calls.Load() != 2 { // it was there
		t.Errorf("500: %v after %d calls", err, calls.Load())
	}
}

func TestWebhookOnThisMachineOnlyIfAllowed(t *testing.T) {
	_, field := secretField()
	url, calls := far(t, func(int, http.ResponseWriter, *http.Request, []byte) {})
	config := json.RawMessage(strings.Replace(string(configOf(strings.Replace(url, "127.0.0.1", "localhost", 1), field)), `"allow_private":true`, `"allow_private":false`, 1))
	err := webhook(t, config).Handle(t.Context(), asked("x"), new(spoken))
	var refused *safehttp.Refused
	if !errors.As(err, &refused) || errors.Is(err, hub.ErrAway) || calls.Load() != 0 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	if err := CheckWebhook(json.RawMessage(strings.Replace(string(configOf(url, field)), "true", "false", 1))); err == nil || !strings.HasPrefix(err.Error(), "url: 127.0.0.1 is a loopback") {
		t.Error(err)
	}
}

// An agent that fails again and again is left alone for a while, and then asked
// once.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 3
		r := newRemote(Remote{}, safehttp.Options{}, tries)
		defer func() { _ = r.Close() }()
		broken, calls := true, 0
		var last time.Time // when it was called
		ask := func() error {
			turn := asked("x")
			_, err := try(t.Context(), r, &turn, func() (bool, error) {
				last = time.Now()
				if calls++; broken {
					return false, &statusError{code: http.StatusServiceUnavailable}
				}
				return true, nil
			})
			return err
		}
		for range tripAfter/tries + 1 {
			if err := ask(); !errors.Is(err, hub.ErrAway) {
				t.Fatal(err)
			}
		}
		if calls != tripAfter {
			t.Errorf("%d calls, expected that the breaker let %d through", calls, tripAfter)
		}
		time.Sleep(time.Until(last.Add(restAfterTrip - time.Millisecond)))
		if err := ask(); !errors.Is(err, hub.ErrAway) || calls != tripAfter {
			t.Errorf("%v and %d calls before its rest was over", err, calls-tripAfter)
		}
		time.Sleep(2 * time.Millisecond)
		if err := ask(); !errors.Is(err, hub.ErrAway) || calls != tripAfter+1 {
			t.Errorf("%v and %d calls after the rest, expected one", err, calls-tripAfter)
		}
		broken = false
		if err := ask(); !errors.Is(err, hub.ErrAway) || calls != tripAfter+1 {
			t.Errorf("%v and %d calls, expected that it rests again", err, calls-tripAfter)
		}
		time.Sleep(restAfterTrip + time.Millisecond)
		for range 2 {
			if err := ask(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNobodyThere(t *testing.T) {
	_, field := secretField()
	err := webhook(t, configOf("http://"+port.Free(t)+"/?key=hidden", field+`,"attempts":2`)).Handle(t.Context(), asked("x"), new(spoken))
	if !errors.Is(err, hub.ErrAway) || errors.Is(err, hub.ErrLeft) || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

func TestWebhookTimeout(t *testing.T) {
	_, field := secretField()
	over := make(chan struct{})
	hangs := func() (string, *atomic.Int32) {
		return far(t, func(_ int, _ http.ResponseWriter, r *http.Request, _ []byte) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		})
	}
	defer close(over)
	// A call that is given up before it arrives is none that the agent saw: on a busy
	// machine that takes longer.
	for timeout := 30 * time.Millisecond; ; timeout *= 4 {
		url, calls := hangs() // anew: a call that was given up may still arrive
		a := webhook(t, configOf(url, field+`,"attempts":2`))
		a.timeout = timeout
		if err := a.Handle(t.Context(), asked("x"), new(spoken)); !errors.Is(err, hub.ErrLate) || errors.Is(err, hub.ErrAway) {
			t.Errorf("with a timeout of %s: %v", timeout, err)
		}
		n := calls.Load()
		if n == 2 {
			break
		}
		if n > 2 || timeout > await.Limit {
			t.Fatalf("%d calls with a timeout of %s, want 2", n, timeout)
		}
	}
	// The user stops: the call ends at once, and is no fault of the agent's.
	url, calls := hangs()
	a := webhook(t, configOf(url, field))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	go func() {
		await.Until(t, "the call", func() bool { return calls.Load() > 0 })
		cancel(stopped)
	}()
	if err := a.Handle(ctx, asked("x"), new(spoken)); !errors.Is(err, stopped) || a.breaker.Counts().TotalFailures != 0 {
		t.Errorf("%v, %+v", err, a.breaker.Counts())
	}
}

func TestWebhookConfig(t *testing.T) {
	_, field := secretField()
	for config, want := range map[string]string{
		`{}`: "url: found none", `{"url":"https://a.example.org/"}`: "secret: found 0",
		`{"url":"https://a.example.org/","secret":"whsec_c2hvcnQ="}`:                      "secret: expected each to be whsec_",
		`{"url":"https://a.example.org/","secret":"hidden"}`:                              "secret: expected each to be whsec_",
		`{"url":"https://u:hidden@a.example.org/"` + field + `}`:                          "url: found a user or password",
		`{"url":"https://a.example.org/","Ural":1` + field + `}`:                          `unknown field "Ural"`,
		`{"url":"https://a.example.org/","timeout":30` + field + `}`:                      `found 30, expected a time such as "30s"`,
		`{"url":"https://a.example.org/","timeout":"1ms"` + field + `}`:                   "timeout: found 1ms, expected from 1s to 5m0s",
		`{"url":"https://a.example.org/","attempts":11` + field + `}`:                     "attempts: found 11",
		`{"url":"https://a.example.org/","attempts":-1` + field + `}`:                     "attempts: found a number",
		`{"url":"https://a.example.org/","headers":{"a b":"hidden"}` + field + `}`:        "headers: found \"a b\"",
		`{"url":"https://a.example.org/","headers":{"A":"hidden\n"}` + field + `}`:        "headers.A: found a value",
		`{"url":"https://a.example.org/","headers":{"Host":"hidden"}` + field + `}`:       "headers.Host: the host sets",
		`{"url":"https://a.example.org/","headers":{"webhook-id":"hidden"}` + field + `}`: "headers.webhook-id: the host sets",
		`{"url":"https://a.example.org/","allow_private":["10.0.0.1"]` + field + `}`:      `[0]: found "10.0.0.1"`,
		`{"url":"https://a.example.org/","secrets":["a","b","c","d"]` + field + `}`:       "secret: found 5",
	} {
		if err := CheckWebhook(json.RawMessage(config)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
	if err := CheckWebhook(json.RawMessage(`{"url":"https://a.example.org/","timeout":"10s","attempts":3,"allow_private":["10.0.0.0/8"],"headers":{"Authorization":"Bearer x"}` + field + `}`)); err != nil {
		t.Error(err)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`{"text":"a"}`, `[{"typing":true},{"parts":[{"type":"x"}]}]`, `{"card":{"elements":[]}}`, `{"buttons":[[{"text":"a"}]],"update":{}}`, `nothing`, `{"metadata":{"notice":1},"text":""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		answers, err := readAnswers(raw, "room")
		if err != nil && answers != nil {
			t.Error("an error and answers")
		}
		for _, a := range answers {
			if a.message == nil && a.typing == nil {
				t.Errorf("%q: an answer that says nothing", raw)
			}
		}
	})
}
