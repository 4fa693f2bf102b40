package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// channelView is a channel as the API shows it, as far as tests look at it.
type channelView struct {
	ID, Name, Token string
	Health          struct{ Attached bool }
}

// problem is what a refused request is answered with.
type problem struct {
	Status        int
	Title, Detail string
	Errors        []struct{ Message, Location string }
}

func TestAPIRefuses(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Make("taken", `,"token":"the-token-that-is-taken"`)
	h.Make("other", "")
	const canary = "canary-token-one"
	long := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               string // in the answer
	}{
		"errNoName":         {"POST", "/channels", `{}`, 422, "name"},
		"errEmptyName":      {"POST", "/channels", `{"name":""}`, 422, "body.name"},
		"errLongName":       {"POST", "/channels", `{"name":"` + long + `"}`, 422, "body.name"},
		"errUpperName":      {"POST", "/channels", `{"name":"Lobby"}`, 422, "body.name"},
		"errDotName":        {"POST", "/channels", `{"name":".lobby"}`, 422, "body.name"},
		"errSlashName":      {"POST", "/channels", `{"name":"a/b"}`, 422, "body.name"},
		"errSpaceName":      {"POST", "/channels", `{"name":"a b"}`, 422, "body.name"},
		"errUnicodeName":    {"POST", "/channels", `{"name":"löbby"}`, 422, "body.name"},
		"errLineName":       {"POST", "/channels", `{"name":"lobby\n"}`, 422, "body.name"},
		"errEscapeName":     {"POST", "/channels", `{"name":"a\u001b[31m"}`, 422, "body.name"},
		"errKindName":       {"POST", "/channels", `{"name":"bridge"}`, 422, "body.name"},
		"errPluginName":     {"POST", "/channels", `{"name":"plugin"}`, 422, "body.name"},
		"errKindsName":      {"POST", "/channels", `{"name":"_kinds"}`, 422, "body.name"},
		"errUUIDName":       {"POST", "/channels", `{"name":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}`, 422, "body.name"},
		"errBareUUIDName":   {"POST", "/channels", `{"name":"f81d4fae7dec11d0a76500a0c91e6bf6"}`, 422, "body.name"},
		"errNumberName":     {"POST", "/channels", `{"name":7}`, 422, "body.name"},
		"errTakenName":      {"POST", "/channels", `{"name":"taken"}`, 409, "body.name"},
		"errRenameTaken":    {"PATCH", "/channels/other", `{"name":"taken"}`, 409, "body.name"},
		"errRenameUpper":    {"PATCH", "/channels/other", `{"name":"Other"}`, 422, "body.name"},
		"errTakenToken":     {"POST", "/channels", `{"name":"new","token":"the-token-that-is-taken"}`, 409, "body.token"},
		"errRotateTaken":    {"POST", "/channels/other/tokens", `{"token":"the-token-that-is-taken"}`, 409, "body.token"},
		"errShortToken":     {"POST", "/channels", `{"name":"new","token":"` + canary[:15] + `"}`, 422, "body.token"},
		"errSpaceToken":     {"POST", "/channels", `{"name":"new","token":" ` + canary + `"}`, 422, "body.token"},
		"errLineToken":      {"POST", "/channels", `{"name":"new","token":"` + canary + `\n"}`, 422, "body.token"},
		"errControlToken":   {"POST", "/channels", `{"name":"new","token":"` + canary + `\u0007x"}`, 422, "body.token"},
		"errLongToken":      {"POST", "/channels", `{"name":"new","token":"` + strings.Repeat(canary, 40) + `"}`, 422, "body.token"},
		"errListToken":      {"POST", "/channels", `{"name":"new","token":["` + canary + `"]}`, 422, "body.token"},
		"errTypoToken":      {"POST", "/channels", `{"name":"new","tokn":"` + canary + `"}`, 422, "tokn"},
		"errRotateShort":    {"POST", "/channels/other/tokens", `{"token":"` + canary[:15] + `"}`, 422, "body.token"},
		"errCanaryBody":     {"POST", "/channels", `{"name":"new","token":"` + canary, 400, ""},
		"errCanaryString":   {"POST", "/channels", `"` + canary + `"`, 422, "body"},
		"errKind":           {"POST", "/channels", `{"name":"new","kind":"plugin"}`, 422, "body.kind"},
		"errPatchKind":      {"PATCH", "/channels/other", `{"kind":"bridge"}`, 422, "kind"},
		"errUnknownField":   {"POST", "/channels", `{"name":"new","colour":"red"}`, 422, "colour"},
		"errPatchUnknown":   {"PATCH", "/channels/other", `{"id":"x"}`, 422, "id"},
		"errEnabledType":    {"POST", "/channels", `{"name":"new","enabled":"yes"}`, 422, "body.enabled"},
		"errAgent":          {"POST", "/channels", `{"name":"new","agent":"nobody"}`, 422, "body.agent"},
		"errAgents":         {"PATCH", "/channels/other", `{"agents":["echo","nobody"]}`, 422, "body.agents[1]"},
		"errCapability":     {"POST", "/channels", `{"name":"new","accept_capabilities":["text","telepathy"]}`, 422, "telepathy"},
		"errCapabilityType": {"POST", "/channels", `{"name":"new","accept_capabilities":"text"}`, 422, "body.accept_capabilities"},
		"errUsers":          {"PATCH", "/channels/other", `{"allow_users":["alice",""]}`, 422, "body.allow_users[1]"},
		"errUserControl":    {"PATCH", "/channels/other", `{"allow_users":["a\u001b[31m"]}`, 422, "body.allow_users[0]"},
		"errProfile":        {"PATCH", "/channels/other", `{"profile":{"max_text":-1}}`, 422, "max_text"},
		"errMarkdown":       {"PATCH", "/channels/other", `{"profile":{"markdown":"html"}}`, 422, "markdown"},
		"errNoJSON":         {"POST", "/channels", `{nope`, 400, ""},
		"errNoBody":         {"POST", "/channels", ``, 400, ""},
		"errTwoValues":      {"POST", "/channels", `{"name":"new"} {"name":"newer"}`, 400, ""},
		"errArray":          {"POST", "/channels", `[]`, 422, "object"},
		"errNull":           {"POST", "/channels", `null`, 422, ""},
		"errLarge":          {"POST", "/channels", `{"name":"` + strings.Repeat("a", 2<<20) + `"}`, 413, ""},
		"errDeep":           {"POST", "/channels", strings.Repeat(`[`, 200_000), 400, ""},

		"errNoChannel":       {"GET", "/channels/none", "", 404, "none"},
		"errNoID":            {"GET", "/channels/f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "", 404, "not found"},
		"errLongID":          {"GET", "/channels/" + strings.Repeat("a", 100), "", 422, "path.id"},
		"errPatchNone":       {"PATCH", "/channels/none", `{"enabled":true}`, 404, "none"},
		"errDeleteNone":      {"DELETE", "/channels/none", "", 404, "none"},
		"errTokensNone":      {"GET", "/channels/none/tokens", "", 404, "none"},
		"errRotateNone":      {"POST", "/channels/none/tokens", `{}`, 404, "none"},
		"errRevokeNone":      {"DELETE", "/channels/other/tokens/999", "", 404, "999"},
		"errRevokeText":      {"DELETE", "/channels/other/tokens/x%0ay", "", 404, "not found"},
		"errRevokeForeign":   {"DELETE", "/channels/other/tokens/1", "", 404, "not found"},
		"errMessagesNone":    {"GET", "/channels/none/messages", "", 404, "none"},
		"errSendNone":        {"POST", "/channels/none/messages", `{"conversation_id":"r","text":"x"}`, 404, "none"},
		"errTestNone":        {"POST", "/channels/none/test", `{}`, 404, "none"},
		"errConversations":   {"GET", "/channels/none/conversations", "", 404, "none"},
		"errOverlap":         {"POST", "/channels/other/tokens", `{"overlap":"-1h"}`, 422, "body.overlap"},
		"errLongOverlap":     {"POST", "/channels/other/tokens", `{"overlap":"721h"}`, 422, "body.overlap"},
		"errExpires":         {"POST", "/channels/other/tokens", `{"expires":"later"}`, 422, "body.expires"},
		"errLimitZero":       {"GET", "/channels?limit=0", "", 422, "query.limit"},
		"errLimitNegative":   {"GET", "/channels?limit=-1", "", 422, "query.limit"},
		"errLimitHigh":       {"GET", "/channels/other/messages?limit=501", "", 422, "query.limit"},
		"errLimitText":       {"GET", "/adapters?limit=ten", "", 422, "query.limit"},
		"errCursor":          {"GET", "/channels?cursor=x", "", 422, "query.cursor"},
		"errCursorLong":      {"GET", "/channels?cursor=" + strings.Repeat("a", 65), "", 422, "query.cursor"},
		"errCursorLine":      {"GET", "/channels/other/messages?cursor=%0a", "", 422, "query.cursor"},
		"errCursorUnknown":   {"GET", "/channels/other/messages?cursor=MTIzNA", "", 422, "query.cursor"},
		"errCursorTokens":    {"GET", "/channels/other/tokens?cursor=_", "", 422, "query.cursor"},
		"errDirection":       {"GET", "/channels/other/messages?direction=up", "", 422, "query.direction"},
		"errNoConversation":  {"POST", "/channels/other/messages", `{"text":"x"}`, 422, "conversation_id"},
		"errConvControl":     {"POST", "/channels/other/messages", `{"conversation_id":"a\nb","text":"x"}`, 422, "body.conversation_id"},
		"errConvLong":        {"POST", "/channels/other/messages", `{"conversation_id":"` + strings.Repeat("a", 4097) + `","text":"x"}`, 422, "body.conversation_id"},
		"errNoContent":       {"POST", "/channels/other/messages", `{"conversation_id":"r"}`, 422, "found no content"},
		"errNullText":        {"POST", "/channels/other/messages", `{"conversation_id":"r","text":null}`, 422, "found no content"},
		"errTextType":        {"POST", "/channels/other/messages", `{"conversation_id":"r","text":5}`, 422, "body.text"},
		"errCard":            {"POST", "/channels/other/messages", `{"conversation_id":"r","card":{"elements":[{"type":"hologram"}]}}`, 422, "card"},
		"errButtons":         {"POST", "/channels/other/messages", `{"conversation_id":"r","buttons":[[{"text":""}]]}`, 422, "buttons"},
		"errImagePath":       {"POST", "/channels/other/messages", `{"conversation_id":"r","image":{"path":"/etc/passwd"}}`, 422, "body.image.path"},
		"errImageScript":     {"POST", "/channels/other/messages", `{"conversation_id":"r","image":{"url":"javascript:alert(1)"}}`, 422, "body.image.url"},
		"errFileURL":         {"POST", "/channels/other/messages", `{"conversation_id":"r","file":{"url":"file:///etc/passwd"}}`, 422, "body.file.url"},
		"errParts":           {"POST", "/channels/other/messages", `{"conversation_id":"r","parts":[{"type":7}]}`, 422, "part"},
		"errUpdateEmpty":     {"POST", "/channels/other/messages", `{"conversation_id":"r","text":"x","update":{}}`, 422, "body.update"},
		"errUpdateID":        {"POST", "/channels/other/messages", `{"conversation_id":"r","text":"x","update":{"message_id":"x"}}`, 422, "body.update.message_id"},
		"errUpdateUnknown":   {"POST", "/channels/other/messages", `{"conversation_id":"r","text":"x","update":{"message_id":"0000000000001"}}`, 422, "no such message"},
		"errNotAttached":     {"POST", "/channels/other/messages", `{"conversation_id":"r","text":"x"}`, 409, "adapter_not_attached"},
		"errTypingDetached":  {"POST", "/channels/other/messages", `{"conversation_id":"r","typing":true}`, 409, "adapter_not_attached"},
		"errTestEmpty":       {"POST", "/channels/other/test", `{}`, 422, "conversation"},
		"errLastEventID":     {"GET", "/events", "", 422, "Last-Event-ID"},
		"errMethod":          {"PUT", "/channels/other", `{}`, 405, "takes DELETE, GET, HEAD, PATCH, not PUT"},
		"errMethodList":      {"PUT", "/channels", `{}`, 405, "takes GET, HEAD, POST, not PUT"},
		"errMethodRender":    {"GET", "/render", "", 405, "takes POST, not GET"},
		"errMethodEvents":    {"POST", "/events", `{}`, 405, "takes GET, HEAD, not POST"},
		"errMethodNoPath":    {"PUT", "/nothing", `{}`, 404, "no such path"},
		"errDeleteUnknown":   {"DELETE", "/channels/other/messages/0000000000001", "", 404, "no such message in this channel"},
		"errDeleteNoID":      {"DELETE", "/channels/other/messages/x", "", 422, "path.message"},
		"errReactUnknown":    {"PUT", "/channels/other/messages/0000000000001/reactions/x", "", 404, "no such message in this channel"},
		"errUnknownResource": {"GET", "/channels/other/secrets", "", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequest(c.method, h.URL()+"/api/v1"+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+h.Key)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Last-Event-ID", "not an id")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var p problem
			var raw json.RawMessage
			if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
				t.Fatalf("%s: no JSON: %v", resp.Status, err)
			}
			if err := json.Unmarshal(raw, &p); err != nil || p.Status != resp.StatusCode || p.Title == "" || p.Detail == "" ||
				resp.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s is no problem: %s", resp.Status, resp.Header.Get("Content-Type"), raw)
			}
			if resp.StatusCode != c.status || !strings.Contains(string(raw), c.want) {
				t.Errorf("%s: %s, expected %d with %q", resp.Status, raw, c.status, c.want)
			}
			if strings.Contains(string(raw), canary[:8]) || strings.Contains(string(raw), "the-token-that") {
				t.Errorf("the token is echoed: %s", raw)
			}
			if len(raw) > 4096 {
				t.Errorf("the answer has %d bytes", len(raw))
			}
		})
	}
	t.Cleanup(func() { // after the parallel cases, before the host's end
		if log := h.Log.Text(); strings.Contains(log, canary[:8]) || strings.Contains(log, "the-token-that") || len(h.Log.Errors()) > 0 {
			t.Errorf("log has a token or an error: %s", log)
		}
		var list struct{ Channels []channelView }
		h.Must(&list, "GET", "/channels", "")
		if len(list.Channels) != 3 || list.Channels[0].Name != "agui" || list.Channels[1].Name != "taken" || list.Channels[2].Name != "other" {
			t.Errorf("channels after all: %+v", list)
		}
	})
}

// Bodies that other clients send for the same thing.
func TestAPIAccepts(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Must(nil, "POST", "/channels", `{"name":"`+strings.Repeat("a", 63)+`"}`)
	h.Must(nil, "POST", "/channels", ` {"name":"0.9_-x","token":"sixteen letters!","agents":[],"accept_capabilities":[],"profile":{"max_text":400}} `)
	for _, kind := range []string{"", "application/json; charset=utf-8", "application/x-www-form-urlencoded"} {
		req, err := http.NewRequest("PATCH", h.URL()+"/api/v1/channels/0.9_-x", strings.NewReader(`{"queue":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("authorization", "bEARER  "+h.Key+" ")
		if kind != "" {
			req.Header.Set("Content-Type", kind)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("content type %q: %s", kind, resp.Status)
		}
	}
	p := h.Peer("sixteen letters!")
	p.Ask("room", "hello", "echo: hello")
	// Bodies that hold options only may be left out.
	h.Must(nil, "POST", "/channels/0.9_-x/test", "")
	p.Next("send")
	h.Must(nil, "POST", "/channels/0.9_-x/tokens", "")
}

func TestAPIProvisioningCountsAtOnce(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	var made channelView
	h.Must(&made, "POST", "/channels", `{"name":"c"}`)
	caps := []string{"text", "card", "buttons", "image"}
	p := h.Peer(made.Token, caps...)
	bystander := h.Peer(h.Make("bystander", ""))

	h.Must(nil, "PATCH", "/channels/c", `{"enabled":false}`)
	p.Closed(int(wire.CloseRevoked))
	h.Refused(made.Token)
	h.Must(nil, "PATCH", "/channels/"+made.ID, `{"enabled":true}`)
	p = h.Peer(made.Token, caps...)

	h.Must(nil, "PATCH", "/channels/c", `{"name":"renamed"}`)
	p.Ask("room", "hello", "echo: hello")
	if status, _ := h.Ask("GET", "/channels/c", ""); status != http.StatusNotFound {
		t.Errorf("the old name answers %d", status)
	}
	if rows := h.Messages("renamed"); len(rows) != 2 {
		t.Errorf("history under the new name: %+v", rows)
	}
	h.Make("c", "") // the old name is free

	p.Say("room", "!card")
	p.Next("send_card")
	h.Must(nil, "PATCH", "/channels/renamed", `{"accept_capabilities":["text","buttons"]}`)
	p.Say("room", "!card")
	p.Next("send_buttons")
	p.Ask("room", "!caps", "caps: text,buttons")
	h.Must(nil, "PATCH", "/channels/renamed", `{"accept_capabilities":["text"]}`)
	var sent struct {
		State    string
		Degraded []struct{ From, To, Reason string }
	}
	h.Must(&sent, "POST", "/channels/renamed/messages", `{"conversation_id":"room","text":"Pick:","buttons":[[{"text":"Yes","value":"y"}]]}`)
	if sent.State != "sent" || len(sent.Degraded) != 1 || sent.Degraded[0].From != "buttons" || sent.Degraded[0].To != "text" {
		t.Errorf("sent %+v", sent)
	}
	if f := p.Next("send"); f["text"] != "Pick:\n[Yes]" {
		t.Errorf("buttons as text: %v", f)
	}
	h.Must(nil, "PATCH", "/channels/renamed", `{"accept_capabilities":[]}`)
	p.Say("room", "!card")
	p.Next("send_card")

	h.Must(nil, "PATCH", "/channels/renamed", `{"allow_users":["bob"]}`)
	p.Say("room", "may I?")
	p.Send(hosttest.Frame{"type": "message", "conversation_id": "room", "user_id": "bob", "user_name": "alice", "text": "I am bob"})
	if f := p.Next("send"); f["text"] != "echo: I am bob" {
		t.Errorf("found %v, expected only bob's answer", f)
	}
	h.Must(nil, "PATCH", "/channels/renamed", `{"allow_users":[]}`)
	p.Ask("room", "and now?", "echo: and now?")
	if rows := h.Messages("renamed"); rows[4].Text != "may I?" || rows[4].State != "failed" || rows[4].Reason != "rejected" {
		t.Errorf("the refused message: %+v", rows[4])
	}

	h.Must(nil, "PATCH", "/channels/renamed", `{"agent":"none"}`)
	p.Say("room", "anyone?")
	p.Send(hosttest.Frame{"type": "ping"})
	p.Next("pong")
	await.Until(t, "the unanswered message is there", func() bool {
		rows := h.Messages("renamed")
		return rows[0].Text == "anyone?" && rows[0].State == "handled"
	})
	h.Must(nil, "PATCH", "/channels/renamed", `{"agent":"echo","queue":true}`)
	p.Ask("room", "again", "echo: again")
	_ = p.WS.Close()
	await.Until(t, "the adapter is gone", func() bool {
		var shown channelView
		h.Must(&shown, "GET", "/channels/renamed", "")
		return !shown.Health.Attached
	})
	h.Must(&sent, "POST", "/channels/renamed/messages", `{"conversation_id":"room","text":"kept"}`)
	if sent.State != "queued" {
		t.Errorf("sent %+v, expected queued", sent)
	}
	p = h.Peer(made.Token, caps...)
	if f := p.Next("send"); f["text"] != "kept" {
		t.Errorf("the queue gives %v", f)
	}

	h.Must(nil, "DELETE", "/channels/renamed", "")
	p.Closed(int(wire.CloseRevoked))
	h.Refused(made.Token)
	if status, _ := h.Ask("GET", "/channels/"+made.ID, ""); status != http.StatusNotFound {
		t.Errorf("the deleted channel answers %d", status)
	}
	token := h.Make("renamed", "")
	if rows := h.Messages("renamed"); len(rows) != 0 {
		t.Errorf("a new channel has old messages: %+v", rows)
	}
	h.Peer(token).Ask("room", "new", "echo: new")
	bystander.Ask("room", "I was never touched", "echo: I was never touched")
}

// pages walks a list in small pages and returns what it found.
func pages[T any](t *testing.T, h *hosttest.Host, path, noun string) []T {
	t.Helper()
	var all []T
	for cursor := ""; ; {
		var fields map[string]json.RawMessage
		glue := "?"
		if strings.Contains(path, "?") {
			glue = "&"
		}
		h.Must(&fields, "GET", path+glue+"limit=7&cursor="+url.QueryEscape(cursor), "")
		var page []T
		if err := json.Unmarshal(fields[noun], &page); err != nil {
			t.Fatalf("%s: %v in %s", path, err, fields[noun])
		}
		all = append(all, page...)
		if fields["next_cursor"] == nil {
			return all
		}
		if err := json.Unmarshal(fields["next_cursor"], &cursor); err != nil || len(page) != 7 {
			t.Fatalf("%s: %v, a page of %d entries with a next one", path, err, len(page))
		}
	}
}

func TestAPIPagination(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	p := h.Peer(h.Make("c", ""))
	for n := range 30 {
		p.Say("room"+strconv.Itoa(n%3), "start "+strconv.Itoa(n))
	}
	for range 30 {
		p.Next("send")
	}
	// From here on somebody talks all the time.
	p.Say("room0", "go")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range 1000 {
			select {
			case <-stop:
				return
			case f, ok := <-p.Frames:
				if !ok || f["type"] != "send" {
					t.Errorf("frame %v", f)
					return
				}
			}
			if err := p.WS.WriteJSON(hosttest.Frame{"type": "message", "conversation_id": "room" + strconv.Itoa(n%3), "user_id": "alice", "text": "m" + strconv.Itoa(n)}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	walked := map[string][]hosttest.Message{}
	for _, query := range []string{"", "?direction=in", "?direction=out", "?conversation_id=room1", "?conversation_id=room2&direction=in"} {
		walked[query] = pages[hosttest.Message](t, h, "/channels/c/messages"+query, "messages")
	}
	close(stop)
	wg.Wait()

	all := h.Messages("c")
	t.Logf("%d messages came while walking", len(all)-60)
	for query, got := range walked {
		v, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, m := range all {
			if m.ID <= got[0].ID && (v.Get("direction") == "" || v.Get("direction") == m.Direction) && (!v.Has("conversation_id") || v.Get("conversation_id") == m.Conversation) {
				want = append(want, m.ID)
			}
		}
		var ids []string
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%q: walked %d messages, expected %d, each once, newest first", query, len(ids), len(want))
		}
		if !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("%q: not in order", query)
		}
	}
	// An answer comes right behind its question, in the same commit.
	for i, m := range all {
		if m.Direction == "out" && (m.ReplyTo != all[i+1].ID || m.Text != "echo: "+all[i+1].Text) {
			t.Fatalf("%+v answers %+v", m, all[i+1])
		}
	}

	for n := range 20 {
		h.Make(fmt.Sprintf("more%02d", n), "")
		h.Must(nil, "POST", "/channels/c/tokens", `{}`)
	}
	channels := pages[channelView](t, h, "/channels", "channels")
	if len(channels) != 22 || channels[0].Name != "agui" || channels[1].Name != "c" || channels[21].Name != "more19" {
		t.Errorf("%d channels, or not in order", len(channels))
	}
	if tokens := pages[struct{ ID string }](t, h, "/channels/c/tokens", "tokens"); len(tokens) != 21 {
		t.Errorf("%d tokens", len(tokens))
	}
	rooms := pages[struct {
		Conversation string `json:"conversation_id"`
	}](t, h, "/channels/c/conversations", "conversations")
	if len(rooms) != 3 {
		t.Errorf("conversations %v", rooms)
	}
	audit := pages[struct{ Action, Target string }](t, h, "/audit", "audit")
	if len(audit) != 42 || audit[41].Target != "agui" || audit[40].Action != "channel.create" || audit[40].Target != "c" {
		t.Errorf("%d audit entries, or not in order", len(audit))
	}
}
