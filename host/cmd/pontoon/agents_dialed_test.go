package main

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// dialed starts an agent of docs/examples in Python, and a channel of h that is
// routed to it; it returns what an adapter needs of that. env is the agent's.
func (h *host) dialed(name, example, address string, env ...string) (python *process, adapter []string) {
	h.t.Helper()
	dir := examples + example + "/"
	linesOf(h.t, dir+"agent.py", 40)
	python = startProcess(h.t, append(env, "LISTEN="+address), pythonWith(h.t, "-r", dir+"requirements.txt"), dir+"agent.py")
	python.anyEnd = true
	eventually(h.t, "the agent listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return python, []string{"USER=alice", "PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + h.channel(name, `,"agent":"`+name+`"`)}
}

// The example of docs/agents-webhook.md: it verifies with the library of
// Standard Webhooks, another one than signs here.
func TestWebhookAgent(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	address := port.Free(t)
	var made agentView
	h.json(&made, "agent", "create", "hook", "--kind", "webhook", "--set", "url=http://"+address+"/", "--set", "allow_private=true")
	if !strings.HasPrefix(made.Secret, "whsec_") || strings.Contains(string(made.Config), made.Secret) {
		t.Fatalf("made %+v", made)
	}
	holds(t, h.cli("agent", "create", "other", "--kind", "webhook", "--set", "url=https://a.example.org/"), "whsec_", "shown only now")
	_, env := h.dialed("hook", "webhook", address, "WEBHOOK_SECRET="+made.Secret)

	p := startProcess(t, env, helloBinary)
	p.types("hello")
	p.prints("You said: hello")
	p.types("ünïcödé 🌉")
	p.prints("You said: ünïcödé 🌉")
	resp, err := http.Post("http://"+address+"/", "application/json", strings.NewReader(`{"type":"turn"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a signature: %s", resp.Status)
	}

	// Both secrets sign while one is changed; with another one alone it is refused.
	h.cli("agent", "update", "hook", "--set", "secret=whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3", "--set", `secrets=["`+made.Secret+`"]`)
	p.types("both")
	p.prints("You said: both")
	h.cli("agent", "update", "hook", "--unset", "secrets")
	p.types("the new one")
	p.prints("Sorry, no answer could be made. Please try again.")
	for _, s := range []string{made.Secret, "bmV3bmV3"} {
		if strings.Contains(h.errs.String(), s) || strings.Contains(h.cli("agent", "show", "hook"), s) {
			t.Error("the secret is shown")
		}
	}
	holds(t, h.errs.String(), "webhook: the agent refused the turn: answered 401 Unauthorized")
}

// A webhook on this machine must be allowed by name, whatever its address looks
// like.
func TestWebhookAgentIsRefused(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	for config, want := range map[string]string{
		`{"url":"http://127.0.0.1:1/"}`:                               "url: 127.0.0.1 is a loopback address",
		`{"url":"http://[::ffff:169.254.169.254]/"}`:                  "link-local address",
		`{"url":"http://169.254.169.254/","allow_private":true}`:      "link-local address",
		`{"url":"http://2130706433/"}`:                                "url: found the host",
		`{"url":"https://a.example.org/","secret":"x"}`:               "secret: expected",
		`{"url":"https://a.example.org/","headers":{"Host":"inner"}}`: "headers.Host",
		`[]`: "expected",
	} {
		if status, body := h.request("POST", "/agents", `{"name":"hook","kind":"webhook","config":`+config+`}`); status != 422 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %q", config, status, body, want)
		}
	}
}

// The example of docs/agents-agui.md: a server of AG-UI that others wrote.
func TestAGUIAgent(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	address := port.Free(t)
	h.cli("agent", "create", "model", "--kind", "agui", "--set", "url=http://"+address+"/", "--set", "allow_private=true")
	_, env := h.dialed("model", "agui", address)
	p := startProcess(t, env, helloBinary)
	p.types("hello")
	p.prints(`{"room_temperature":"21 degrees"}`)
	p.types("and now?") // it is told what the first run said: that one asked the tool
	p.prints(`{"room_temperature":"21 degrees"}`)
	var list struct {
		Messages []struct{ Message message.Envelope }
	}
	h.must(&list, "GET", "/channels/model/messages", "")
	slices.Reverse(list.Messages)
	var got []string
	asked := ""
	for _, m := range list.Messages {
		if m.Message.Role == message.RoleUser {
			asked = m.Message.ID
		}
		line := string(m.Message.Role)
		for _, p := range m.Message.Parts {
			line += " " + p.Type
		}
		if m.Message.Role == message.RoleAgent && m.Message.Metadata.String("run_id") != asked {
			t.Errorf("%s has the run_id %s", line, m.Message.Metadata["run_id"])
		}
		if mode := m.Message.Metadata.String("mode"); (mode == "tool") != strings.Contains(line, "tool-") {
			t.Errorf("%s has the mode %q", line, mode)
		}
		got = append(got, line)
	}
	if want := []string{"user text", "agent tool-call", "agent tool-result", "agent text", "user text", "agent text"}; !slices.Equal(got, want) {
		t.Errorf("history %q", got)
	}
}
