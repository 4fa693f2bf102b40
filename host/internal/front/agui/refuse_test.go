package agui_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// What is wrong with a request it is told, before anything is stored.
func TestRefuses(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	user := `"messages":[{"id":"m","role":"user","content":"x"}]`
	long := strings.Repeat("x", 600)
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"errDigits":      {`{"threadId":"t","runId":"r",` + user + `,"forwardedProps":{"x":` + strings.Repeat("7", 5_000) + `}}`, 422, "found a number of 5000 characters"},
		"errDeepProps":   {`{"threadId":"t","runId":"r",` + user + `,"forwardedProps":{"x":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}}`, 422, "too_deep"},
		"errNoJSON":      {`{`, 422, "body: "},
		"errNoBody":      {``, 422, "body: "},
		"errList":        {`[]`, 422, "found an array, expected an object"},
		"errNoThread":    {`{"runId":"r",` + user + `}`, 422, "threadId: found nothing"},
		"errNoRun":       {`{"threadId":"t",` + user + `}`, 422, "runId: found nothing"},
		"errThreadType":  {`{"threadId":1,"runId":"r",` + user + `}`, 422, "threadId: found a number"},
		"errLongThread":  {`{"threadId":"` + long + `","runId":"r",` + user + `}`, 422, "body.threadId: found 600 bytes"},
		"errLongRun":     {`{"threadId":"t","runId":"` + long + `",` + user + `}`, 422, "body.runId: found 600 bytes"},
		"errControl":     {`{"threadId":"a\u001fb","runId":"r",` + user + `}`, 422, "body.threadId: found a control character"},
		"errNoMessages":  {`{"threadId":"t","runId":"r"}`, 422, "messages: found nothing"},
		"errEmpty":       {`{"threadId":"t","runId":"r","messages":[]}`, 422, "body.messages: found no message of role user"},
		"errNoUser":      {`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"assistant","content":"x"}]}`, 422, "no message of role user"},
		"errNoID":        {`{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`, 422, "body.messages[0].id: found nothing"},
		"errIDControl":   {`{"threadId":"t","runId":"r","messages":[{"id":"a\n","role":"user","content":"x"}]}`, 422, "body.messages[0].id: found a control"},
		"errNoContent":   {`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user"}]}`, 422, "body.messages[0].content: found nothing"},
		"errContentType": {`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":7}]}`, 422, "messages[0].content: found a number"},
		"errNoPartType":  {`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[{"text":"x"}]}]}`, 422, "content[0].type: found nothing"},
		"errBothUrlData": {input("t", "r", "m", []any{map[string]any{"type": "binary", "mimeType": "application/pdf", "data": "aGk=", "url": "https://example.org/x"}}), 422, "both data and a url"},
		"errForm":        {input("t", "r", "m", []any{map[string]any{"type": "ui_submit", "values": map[string]any{}}}), 422, "body.messages[0].content[0]: "},
		"errDeep":        {`{"threadId":"t","runId":"r","messages":` + strings.Repeat("[", 100_000), 422, "body: "},
		"errHuge":        {input("t", "r", "m", strings.Repeat("x", agui.MaxBody)), 413, "found too much"},
		"errNoParts":     {input("t", "r", "m", make([]struct{ Type, Text string }, 0)), 422, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, raw := h.call(h.key, "POST", "/agent/run", c.body)
			if status != c.status || !strings.Contains(raw, c.want) {
				t.Errorf("%d %.400s", status, raw)
			}
		})
	}
	if n := len(h.stored()); n != 0 {
		t.Errorf("%d messages are stored", n)
	}
}

// Which key opens what.
func TestScopes(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	body := input("t", "r", "m", "hi")
	for name, c := range map[string]struct {
		key, method, path string
		status            int
	}{
		"errNoKey":          {"", "POST", "/agent/run", 401},
		"errWrongKey":       {"pnk_wrong", "POST", "/agent/run", 401},
		"errNoKeyHistory":   {"", "GET", "/agent/history?threadId=t", 401},
		"errNoKeyUpload":    {"", "POST", "/agent/attachments", 401},
		"errChannels":       {h.key, "GET", "/channels", 403},
		"errKeys":           {h.key, "GET", "/keys", 403},
		"errMakeKey":        {h.key, "POST", "/keys", 403},
		"errEvents":         {h.key, "GET", "/events", 403},
		"errMessages":       {h.key, "GET", "/channels/agui/messages", 403},
		"errThread":         {h.key, "GET", "/agent/history?threadId=none", 404},
		"errNoThread":       {h.key, "GET", "/agent/history", 422},
		"errLimit":          {h.key, "GET", "/agent/history?threadId=t&limit=0", 422},
		"errCursor":         {h.key, "GET", "/agent/history?threadId=t&cursor=x", 422},
		"errMethod":         {h.key, "GET", "/agent/run", 405},
		"okRun":             {h.key, "POST", "/agent/run", 200},
		"okRunOfOperator":   {h.admin, "POST", "/agent/run", 200},
		"okKeysForOperator": {h.admin, "GET", "/keys", 200},
	} {
		t.Run(name, func(t *testing.T) {
			status, raw := h.call(c.key, c.method, c.path, body)
			if status != c.status {
				t.Errorf("%d %s", status, raw)
			}
			if strings.Contains(raw, h.key) {
				t.Errorf("tells the key: %s", raw)
			}
		})
	}
}

// Equal threads of two keys never meet, also that of the operator.
func TestThreadsBelongToTheirKey(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	other := h.newKey("other")
	for _, key := range []string{h.key, other, h.admin} {
		if status, raw := h.call(key, "GET", "/agent/history?threadId=t", ""); status != 404 {
			t.Errorf("before its first message: %d %s", status, raw)
		}
		if got := texts(h.run(key, input("t", "r", "m1", "of "+key[len(key)-4:]))); len(got) != 1 || got[0] != "echo: of "+key[len(key)-4:] {
			t.Errorf("got %q", got)
		}
		if m, _ := h.history(key, "threadId=t"); len(m) != 2 || !strings.Contains(string(m[0].Content), "of "+key[len(key)-4:]) {
			t.Errorf("history has %+v", m)
		}
	}
	if status, raw := h.call(other, "GET", "/agent/history?threadId=t~0", ""); status != 404 { // as the operator's is called inside
		t.Errorf("%d %s", status, raw)
	}
	seen := map[string]bool{}
	for _, m := range h.stored() {
		seen[m.ConversationID+" "+m.AuthorID] = true
	}
	for _, want := range []string{"t 1", "t~2 2", "t~0 admin"} {
		if !seen[want] {
			t.Errorf("conversations and authors are %v", seen)
		}
	}
}

func failure(t *testing.T, r *reader) event {
	t.Helper()
	e := r.until("RUN_ERROR")
	check(t, r.all)
	return e
}

// What goes wrong behind the first event is the last one.
func TestRunError(t *testing.T) {
	t.Parallel()
	stuck := func(ctx context.Context, _ hub.Turn, r hub.Reply) error {
		r.Stream("I am")
		<-ctx.Done()
		return ctx.Err()
	}
	t.Run("errRevoked", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{agent: stuck})
		r := h.begin(h.key, input("t", "r", "m", "hi"))
		if status, raw := h.call(h.admin, "DELETE", "/keys/app", ""); status != 204 {
			t.Fatalf("%d %s", status, raw)
		}
		if e := failure(t, r); e.Code != "key_revoked" {
			t.Errorf("%+v", e)
		}
		if status, _ := h.call(h.key, "POST", "/agent/run", input("t", "r", "m2", "hi")); status != 401 {
			t.Errorf("a deleted key: %d", status)
		}
	})
	t.Run("errDisabled", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{agent: stuck})
		r := h.begin(h.key, input("t", "r", "m", "hi"))
		h.patch(`{"enabled":false}`)
		if e := failure(t, r); e.Code != "channel_disabled" {
			t.Errorf("%+v", e)
		}
		if status, raw := h.call(h.key, "POST", "/agent/run", input("t", "r", "m2", "hi")); status != 409 || !strings.Contains(raw, "disabled") {
			t.Errorf("%d %s", status, raw)
		}
		h.patch(`{"enabled":true,"agent":"echo"}`)
		if got := texts(h.run(h.key, input("t2", "r", "m3", "hi"))); len(got) != 1 {
			t.Errorf("enabled again: %q", got)
		}
	})
	t.Run("errTime", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{agent: stuck, options: agui.Options{RunTime: 50 * time.Millisecond}})
		if e := failure(t, h.begin(h.key, input("t", "r", "m", "hi"))); e.Code != "run_timeout" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("errStopping", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{agent: stuck})
		r := h.begin(h.key, input("t", "r", "m", "hi"))
		go h.stop()
		if e := failure(t, r); e.Code != "host_stopping" {
			t.Errorf("%+v", e)
		}
		h.stop()
	})
	t.Run("errRejected", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{})
		h.patch(`{"allow_users":["2"]}`)
		if e := failure(t, h.begin(h.key, input("t", "r", "m", "hi"))); e.Code != "rejected" {
			t.Errorf("%+v", e)
		}
		if m, _ := h.history(h.key, "threadId=t"); len(m) != 0 {
			t.Errorf("history has %+v", m)
		}
		other := h.newKey("other") // with id 2
		if got := texts(h.run(other, input("t", "r", "m", "hi"))); len(got) != 1 {
			t.Errorf("who may speak gets %q", got)
		}
	})
	t.Run("okStoreOnly", func(t *testing.T) {
		t.Parallel()
		h := start(t, setup{})
		h.patch(`{"agent":"none"}`)
		if all := h.run(h.key, input("t", "r", "m", "hi")); len(all) != 2 || all[1].Type != "RUN_FINISHED" {
			t.Errorf("%+v", all)
		}
	})
}

// A key has so many runs at once; others are not in its way.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	go_on := make(chan struct{})
	h := start(t, setup{
		agent:   func(ctx context.Context, turn hub.Turn, r hub.Reply) error { <-go_on; return nil },
		options: agui.Options{MaxRuns: 2, Heartbeat: 5 * time.Millisecond},
	})
	a := h.begin(h.key, input("a", "r", "m", "hi"))
	b := h.begin(h.key, input("b", "r", "m", "hi"))
	if status, raw := h.call(h.key, "POST", "/agent/run", input("c", "r", "m", "hi")); status != 429 || !strings.Contains(raw, "too many runs") {
		t.Errorf("%d %s", status, raw)
	}
	c := h.begin(h.newKey("other"), input("c", "r", "m", "hi"))
	if line, err := c.in.ReadString('\n'); err != nil || line != "\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != ": alive\n" { // of the silence
		t.Errorf("%q, %v", line, err)
	}
	a.end()
	eventually(t, "room for another run", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		resp := h.open(ctx, h.key, "POST", "/agent/run", nil, strings.NewReader(input("d", "r", "m", "hi")))
		defer func() { _ = resp.Body.Close() }()
		return resp.StatusCode == http.StatusOK
	})
	close(go_on)
	b.until("RUN_FINISHED")
	c.until("RUN_FINISHED")
}

// Only the origins that the operator named may read.
func TestOrigins(t *testing.T) {
	t.Parallel()
	h := start(t, setup{origins: []string{"https://app.example"}})
	for origin, want := range map[string]string{"https://app.example": "https://app.example", "https://evil.example": ""} {
		for _, method := range []string{"OPTIONS", "POST"} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			resp := h.open(ctx, h.key, method, "/agent/run", http.Header{"Origin": {origin}}, strings.NewReader(input("t"+origin, "r", "m", "hi")))
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("%s of %s: allows %q", method, origin, got)
			}
			_ = resp.Body.Close()
			cancel()
		}
	}
}

// The channel is there from the start, once, and is what it is.
func TestChannel(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"errMake":      {"POST", "/channels", `{"name":"x","kind":"agui"}`, 422},
		"errName":      {"PATCH", "/channels/agui", `{"name":"x"}`, 409},
		"errQueue":     {"PATCH", "/channels/agui", `{"queue":true}`, 409},
		"errDelete":    {"DELETE", "/channels/agui", ``, 409},
		"errToken":     {"POST", "/channels/agui/tokens", `{}`, 409},
		"okAgents":     {"PATCH", "/channels/agui", `{"agents":["echo"]}`, 200},
		"okRetention":  {"PATCH", "/channels/agui", `{"retention_days":30}`, 200},
		"errScope":     {"POST", "/keys", `{"name":"x","scopes":["everything"]}`, 422},
		"errNoScope":   {"POST", "/keys", `{"name":"x","scopes":[]}`, 422},
		"errKeyName":   {"POST", "/keys", `{"name":"7","scopes":["agent:run"]}`, 422},
		"errAdminName": {"POST", "/keys", `{"name":"admin","scopes":["agent:run"]}`, 422},
		"errTaken":     {"POST", "/keys", `{"name":"app","scopes":["agent:run"]}`, 409},
		"errExpires":   {"POST", "/keys", `{"name":"x","scopes":["agent:run"],"expires":"soon"}`, 422},
		"errNobody":    {"DELETE", "/keys/nobody", ``, 404},
	} {
		t.Run(name, func(t *testing.T) {
			if status, raw := h.call(h.admin, c.method, c.path, c.body); status != c.status {
				t.Errorf("%d %s", status, raw)
			}
		})
	}
	h.stop()
	h = start(t, setup{dir: h.dir})
	_, raw := h.call(h.admin, "GET", "/channels", "")
	var list struct {
		Channels []struct {
			Name, Kind, Agent string
			Agents            []string
		}
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil || len(list.Channels) != 1 || list.Channels[0].Kind != "agui" || len(list.Channels[0].Agents) != 1 {
		t.Errorf("%s, %v", raw, err)
	}
}

// A key that has expired opens nothing.
func TestExpiredKey(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	key := h.made(h.call(h.admin, "POST", "/keys", `{"name":"short","scopes":["agent:run"],"expires":"1ms"}`))
	eventually(t, "its end", func() bool {
		status, _ := h.call(key, "GET", "/agent/history?threadId=t", "")
		return status == 401
	})
}

// Who reads too slowly is sent away, and holds up nobody.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	reads, sent := make(chan struct{}), make(chan struct{})
	h := start(t, setup{agent: func(ctx context.Context, turn hub.Turn, r hub.Reply) error {
		defer close(sent)
		<-reads
		for range 300 { // more than may wait
			if _, err := r.Send(ctx, message.Text("x")); err != nil {
				return err
			}
		}
		return nil
	}})
	run, err := h.front.Begin(t.Context(), auth.Operator(), []byte(input("t", "r", "m", "hi")))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var raw strings.Builder
	err = run.Stream(t.Context(), func(b []byte) error { // a socket that takes nothing
		if raw.Len() == 0 {
			close(reads)
			await.Value(t, "all is sent", sent)
		}
		raw.Write(b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := events(t, raw.String())
	if e := all[len(all)-1]; e.Code != "too_slow" {
		t.Errorf("ends with %+v", e)
	}
	if m, _ := h.history(h.admin, "threadId=t&limit=500"); len(m) != 301 {
		t.Errorf("history has %d messages", len(m))
	}
}

// A client whose socket is gone ends its run and nothing else.
func TestBrokenSocket(t *testing.T) {
	t.Parallel()
	h := start(t, setup{})
	run, err := h.front.Begin(t.Context(), auth.Operator(), []byte(input("t", "r", "m", "hi")))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	broken := errors.New("cable cut")
	if err := run.Stream(t.Context(), func([]byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
	if m, _ := h.history(h.admin, "threadId=t"); len(m) != 2 {
		t.Errorf("history has %+v", m)
	}
}
