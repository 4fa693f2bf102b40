package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// call is how an operation is tried: OWN stands for a channel (and plugin) that
// limited keys see, MSG for a message of it, NEW for a channel made for the call.
type call struct {
	scope, path, body string
	whole             bool // about the whole host
	also              int  // a status beside 2xx that says it was let in
}

// calls are all operations of the API.
var calls = map[string]call{
	"list-kinds":         {"read", "/channels/_kinds", "", false, 0},
	"summarize-channels": {"read", "/channels/_summary", "", false, 0},
	"list-channels":      {"read", "/channels", "", false, 0}, "get-channel": {"read", "/channels/OWN", "", false, 0},
	"create-channel": {"manage", "/channels", `{"name":"made-NEW"}`, true, 0},
	"update-channel": {"manage", "/channels/OWN", `{"queue":true}`, false, 0}, "delete-channel": {"manage", "/channels/NEW", "", false, 0},
	"list-tokens": {"manage", "/channels/OWN/tokens", "", false, 0}, "rotate-token": {"manage", "/channels/OWN/tokens", `{}`, false, 0},
	"revoke-token":  {"manage", "/channels/OWN/tokens/9999", "", false, 404},
	"list-messages": {"read", "/channels/OWN/messages", "", false, 0}, "list-conversations": {"read", "/channels/OWN/conversations", "", false, 0},
	"send-message": {"send", "/channels/OWN/messages", `{"conversation_id":"r","text":"x"}`, false, 0}, "test-channel": {"send", "/channels/OWN/test", `{}`, false, 0},
	"delete-message": {"send", "/channels/OWN/messages/MSG", "", false, 0}, "add-reaction": {"send", "/channels/OWN/messages/MSG/reactions/x", "", false, 0},
	"remove-reaction": {"send", "/channels/OWN/messages/MSG/reactions/x", "", false, 0}, "render-message": {"read", "/render", `{"text":"x"}`, false, 0},
	"list-dead-letters": {"read", "/dead-letters", "", false, 0}, "replay-dead-letter": {"send", "/dead-letters/MSG/replay", "", false, 409},
	"count-dead-letters": {"read", "/dead-letters/counts?channel=OWN", "", false, 0}, "begin-replay": {"send", "/dead-letters/replays?channel=OWN", "", false, 0},
	"list-replays": {"send", "/dead-letters/replays", "", false, 0}, "get-replay": {"send", "/dead-letters/replays/REPLAY", "", false, 0}, "stop-replay": {"send", "/dead-letters/replays/REPLAY", "", false, 0},
	"replay-dead-letters": {"send", "/dead-letters/replay?channel=OWN", "", false, 0}, "get-message": {"read", "/messages/MSG", "", false, 0},
	"list-agent-kinds": {"read", "/agents/_kinds", "", false, 0}, "list-agents": {"read", "/agents", "", true, 0}, "get-agent": {"read", "/agents/echo", "", true, 0},
	"create-agent": {"manage", "/agents", `{"name":"made-NEW","kind":"websocket"}`, true, 0}, "update-agent": {"manage", "/agents/echo", `{"enabled":true}`, true, 409},
	"list-agent-frames": {"read", "/agents/echo/frames", "", true, 404},
	"delete-agent":      {"manage", "/agents/echo", "", true, 409}, "list-agent-keys": {"manage", "/agents/echo/keys", "", true, 0},
	"rotate-agent-key": {"manage", "/agents/echo/keys", `{}`, true, 409}, "revoke-agent-key": {"manage", "/agents/echo/keys/9", "", true, 404},
	"list-adapters": {"read", "/adapters", "", false, 0}, "list-capabilities": {"read", "/capabilities", "", false, 0},
	"list-plugins": {"read", "/plugins", "", false, 0}, "get-plugin": {"read", "/plugins/OWN-plugin", "", false, 0}, "list-plugin-logs": {"read", "/plugins/OWN-plugin/logs", "", false, 0},
	"verify-plugin": {"manage", "/plugins/OWN-plugin/verify", "", false, 0}, "restart-plugin": {"manage", "/plugins/OWN-plugin/restart", "", false, 409},
	"enable-plugin": {"manage", "/plugins/OWN-plugin/enable", "", false, 409}, "disable-plugin": {"manage", "/plugins/OWN-plugin/disable", "", false, 409},
	"reload-plugins": {"manage", "/plugins/_reload", "", true, 0},
	"list-audit":     {"admin", "/audit", "", true, 0}, "list-connections": {"admin", "/connections", "", true, 0}, "list-keys": {"admin", "/keys", "", true, 0}, "get-key": {"admin", "/keys/k-read", "", true, 0},
	"create-key": {"admin", "/keys", `{"name":"made-NEW","scopes":["read"]}`, true, 0}, "delete-key": {"admin", "/keys/999", "", true, 404},
	"get-operator": {"admin", "/operator", "", true, 404}, "rename-operator": {"admin", "/operator", `{"name":"x"}`, true, 404},
	"set-password": {"admin", "/operator/password", `{"present":"x","password":"correct horse battery"}`, true, 404}, "link-operator": {"admin", "/operator/link", "", true, 0},
	"list-sessions": {"admin", "/sessions", "", true, 0}, "close-sessions": {"admin", "/sessions", "", true, 0}, "close-session": {"admin", "/sessions/9", "", true, 404},
	"agent-history": {"agent:run", "/agent/history?threadId=none", "", true, 404}, "agent-run": {"agent:run", "/agent/run", `{}`, true, 422},
	"upload-attachment": {"send", "/channels/OWN/attachments", `{}`, false, 415},
	"agent-upload":      {"agent:run", "/agent/attachments", `{}`, true, 415}, "stream-events": {"read", "/events", "", false, 0},
	"search-messages": {"read", "/search?q=hello", "", false, 0}, "list-all-conversations": {"read", "/conversations", "", false, 0},
	"get-statistics": {"read", "/statistics?channel=OWN", "", false, 0},
	"list-frames":    {"read", "/channels/OWN/frames", "", false, 0}, "list-secrets": {"manage", "/secrets", "", true, 0},
	"put-secret": {"manage", "/secrets/SOME", `{"value":"x"}`, true, 0}, "delete-secret": {"manage", "/secrets/NONE", "", true, 404},
	"set-up-operator": {"", "/operator/setup", `{"code":"x","name":"x","password":"correct horse battery"}`, true, 401},
	"open-session":    {"", "/sessions", `{"name":"x","password":"x"}`, true, 401},
}

// scoped is a host with two channels and two plugins, and what is in them.
type scoped struct {
	*hosttest.Host
	messages map[string]string // by channel
	replays  map[string]string // likewise: one of all its dead letters, of which there are none
	made     int
}

func newScoped(t *testing.T) *scoped {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	const entry = "  - {name: %s-plugin, command: [pontoon, adapter, run, webchat], enabled: false}\n"
	if err := os.WriteFile(file, []byte("plugins:\n"+fmt.Sprintf(entry, "mine")+fmt.Sprintf(entry, "theirs")), 0o600); err != nil {
		t.Fatal(err)
	}
	plugins := func(s *hosttest.Setup) {
		s.Plugins = func() ([]config.Plugin, error) { return config.LoadPlugins(file, config.Lookup{}) }
	}
	s := &scoped{Host: hosttest.Start(t, hosttest.Whole, plugins), messages: map[string]string{}, replays: map[string]string{}}
	for _, name := range []string{"mine", "theirs"} {
		p := s.Peer(s.Make(name, `,"queue":true`), "text")
		p.Say("room", "hello of "+name)
		p.Next("send")
		s.messages[name] = s.Messages(name)[0].ID
		var begun struct{ ID string }
		s.Must(&begun, "POST", "/dead-letters/replays?channel="+name, "")
		s.replays[name] = begun.ID
	}
	return s
}

// fill puts a channel into what a call says.
func (s *scoped) fill(c call, channel string) (path, body string) {
	s.made++
	fresh := fmt.Sprintf("%s-%d", channel, s.made)
	r := strings.NewReplacer("OWN", channel, "MSG", s.messages[channel], "REPLAY", s.replays[channel], "NEW", fresh)
	return r.Replace(c.path), r.Replace(c.body)
}

// Every operation says which scope opens it, and no other does.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := newScoped(t)
	scopes := []string{"read", "send", "manage", "admin", "agent:run"}
	keys := map[string]string{}
	for _, scope := range scopes {
		keys[scope] = s.NewKey("k-"+strings.ReplaceAll(scope, ":", "-"), `"scopes":["`+scope+`"]`)
	}
	limited := s.NewKey("limited", `"scopes":["read","send","manage"],"channels":["mine","mine-plugin"]`)
	var doc struct {
		Paths map[string]map[string]struct {
			ID          string `json:"operationId"`
			Description string
			Security    []map[string][]string
		}
	}
	_, text := s.Ask("GET", "/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			c, known := calls[op.ID]
			if !known {
				t.Errorf("%s %s (%s) is not tried here", method, path, op.ID)
				continue
			}
			tried++
			var declared []string
			if len(op.Security) == 1 {
				declared = op.Security[0]["key"]
			}
			if want := []string{c.scope}; c.scope != "" && !slices.Equal(declared, want) || c.scope == "" && op.Security != nil || op.Description == "" {
				t.Errorf("%s declares %q (%s), want %q", op.ID, op.Security, op.Description, c.scope)
			}
			s.tryScopes(t, op.ID, strings.ToUpper(method), c, keys)
			s.tryLimited(t, op.ID, strings.ToUpper(method), c, limited)
		}
	}
	var found struct {
		Results []struct{ Channel string }
	}
	if _, text := s.As(limited, "GET", "/search?q=hello", ""); json.Unmarshal([]byte(text), &found) != nil || len(found.Results) == 0 {
		t.Errorf("a limited key finds %s", text)
	}
	if _, text := s.As(limited, "GET", "/conversations", ""); !strings.Contains(text, `"channel":"mine"`) {
		t.Errorf("a limited key sees %s", text)
	}
	for _, path := range []string{"/events?channel=theirs", "/search?q=hello&channel=theirs", "/conversations?channel=theirs", "/dead-letters?channel=theirs"} {
		if status, text := s.As(limited, "GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s with a limited key: %d %s", path, status, text)
		}
	}
	if tried != len(calls) {
		t.Errorf("%d operations, %d are known here", tried, len(calls))
	}
}

func (s *scoped) tryScopes(t *testing.T, id, method string, c call, keys map[string]string) {
	for scope, key := range keys {
		path, body := s.fill(c, "mine")
		if strings.Contains(c.path, "NEW") {
			s.Make(strings.TrimPrefix(path, "/channels/"), "")
		}
		status, text := s.As(key, method, path, body)
		in := c.scope == "" || scope == c.scope || scope == "admin"
		if ok := status < 300 || status == c.also; in != ok || !in && status != http.StatusForbidden {
			t.Errorf("%s with scope %s: %d, expected in = %v: %s", id, scope, status, in, text)
		}
	}
}

// Of a channel that a key is not for it learns nothing: not even that it is there.
func (s *scoped) tryLimited(t *testing.T, id, method string, c call, key string) {
	status, text := 0, ""
	if strings.Contains(c.path, "NEW") {
		s.Make("spare", "")
		defer s.Ask("DELETE", "/channels/spare", "")
		status, text = s.As(key, method, "/channels/spare", "")
	} else {
		path, body := s.fill(c, "theirs")
		status, text = s.As(key, method, path, body)
	}
	foreign := strings.Contains(c.path, "OWN") || strings.Contains(c.path, "MSG") || strings.Contains(c.path, "REPLAY") || strings.Contains(c.path, "NEW")
	switch {
	case c.scope == "":
	case c.whole || !slices.Contains([]string{"read", "send", "manage"}, c.scope):
		if status != http.StatusForbidden {
			t.Errorf("%s with a limited key: %d, expected 403: %s", id, status, text)
		}
	case !foreign:
		if status >= 300 || strings.Contains(text, "theirs") {
			t.Errorf("%s with a limited key: %d: %s", id, status, text)
		}
	default:
		if status != http.StatusNotFound {
			t.Errorf("%s of a foreign channel: %d, expected 404: %s", id, status, text)
		}
		// The answer is the one that what is not there gets.
		const none = "0000000000001"
		r := strings.NewReplacer("OWN", "nobodys", "MSG", none, "REPLAY", none, "NEW", "nobodys")
		_, absent := s.As(key, method, r.Replace(c.path), r.Replace(c.body))
		if got := strings.NewReplacer("theirs", "nobodys", s.messages["theirs"], none, s.replays["theirs"], none, "spare", "nobodys").Replace(text); got != absent {
			t.Errorf("%s tells that a foreign channel is there: %s, for one that is not: %s", id, got, absent)
		}
		path, body := s.fill(c, "mine")
		if strings.Contains(c.path, "NEW") {
			return // its own channel is not to go
		}
		if status, text := s.As(key, method, path, body); status >= 300 && status != c.also {
			t.Errorf("%s of its own channel: %d: %s", id, status, text)
		}
	}
}

// A key is for the channel, whatever it is called, and for no other of its name.
func TestKeyChannels(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	h.Make("mine", `,"queue":true,"queue_limits":{"ttl_seconds":1}`)
	h.Make("theirs", `,"queue":true,"queue_limits":{"ttl_seconds":1}`)
	key := h.NewKey("viewer", `"scopes":["read","send","manage"],"channels":["mine"]`)
	if status, text := h.As(key, "PATCH", "/channels/mine", `{"name":"other"}`); status != http.StatusForbidden {
		t.Errorf("it renames: %d %s", status, text)
	}
	h.Must(nil, "PATCH", "/channels/mine", `{"name":"moved"}`)
	h.Make("mine", "")
	if status, _ := h.As(key, "GET", "/channels/moved", ""); status != 200 {
		t.Errorf("renamed: %d", status)
	}
	if status, _ := h.As(key, "GET", "/channels/mine", ""); status != 404 {
		t.Errorf("another of the old name: %d", status)
	}
	var list struct{ Channels []channelView }
	_, text := h.As(key, "GET", "/channels?limit=1", "")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Channels) != 1 || list.Channels[0].Name != "moved" {
		t.Errorf("it sees %s", text)
	}
	for _, c := range []string{"moved", "theirs", "theirs"} {
		h.Must(nil, "POST", "/channels/"+c+"/messages", `{"conversation_id":"r","text":"dead of `+c+`"}`)
	}
	var dead string
	await.Until(t, "dead letters", func() bool {
		_, all := h.Ask("GET", "/dead-letters", "")
		_, dead = h.As(key, "GET", "/dead-letters?limit=1", "")
		return strings.Count(all, `"channel":"theirs"`) == 2 && strings.Contains(dead, "dead of moved")
	})
	if strings.Contains(dead, "theirs") {
		t.Errorf("it sees %s", dead)
	}
	if _, text := h.As(key, "POST", "/dead-letters/replay", ""); !strings.Contains(text, `"replayed":1,"left":0`) {
		t.Errorf("it replays %s", text)
	}
	h.Must(nil, "DELETE", "/channels/moved", "")
	if _, text := h.As(key, "GET", "/channels", ""); !strings.Contains(text, `"channels":[]`) {
		t.Errorf("its channel is deleted, and it sees %s", text)
	}
}

// An event stream tells a key of its channels alone, and ends with the key.
func TestKeyEndsStream(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	mine, theirs := h.Peer(h.Make("mine", ""), "text"), h.Peer(h.Make("theirs", ""), "text")
	life := 3 * time.Second
	for i, ends := 0, []string{"delete", "expire"}; i < len(ends); i++ {
		end, began := ends[i], time.Now()
		extra := `"scopes":["read"],"channels":["mine"]`
		if end == "expire" {
			extra += fmt.Sprintf(`,"expires":%q`, life)
		}
		key := h.NewKey(fmt.Sprint(end, "-", life), extra)
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL()+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		theirs.Say("room", "secret")
		theirs.Next("send")
		mine.Say("room", "open")
		mine.Next("send")
		told := reads(resp.Body, "echo: open") // a key that is deleted ends its streams at once
		if end == "delete" {
			h.Must(nil, "DELETE", fmt.Sprint("/keys/", end, "-", life), "")
		} else if time.Since(began) > life/2 && life < time.Minute { // a slow machine: the key may have ended before all was said
			_ = resp.Body.Close()
			life *= 4
			i--
			continue
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Errorf("%s: the stream does not end in order: %v", end, err)
		}
		if text := told + string(b); !strings.Contains(text, "echo: open") || strings.Contains(text, "secret") || strings.Contains(text, "theirs") {
			t.Errorf("%s: the stream told\n%s", end, text)
		}
		if status, _ := h.As(key, "GET", "/channels", ""); status != http.StatusUnauthorized {
			t.Errorf("%s: the key still opens: %d", end, status)
		}
	}
}

// reads reads until a text was there, or nothing comes any more.
func reads(from io.Reader, text string) (told string) {
	for one := make([]byte, 1); !strings.Contains(told, text); {
		if _, err := from.Read(one); err != nil {
			break
		}
		told += string(one)
	}
	return told
}
