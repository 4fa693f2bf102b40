package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/port"
)

// dialIn makes an agent that dials in and returns what its program needs.
func (h *host) dialIn(name string) (env []string) {
	h.t.Helper()
	var made struct{ Key string }
	h.json(&made, "agent", "create", name, "--kind", "websocket")
	if made.Key == "" {
		h.t.Fatal("the agent has no key")
	}
	return []string{"PONTOON_URL=" + h.url, "PONTOON_AGENT_KEY=" + made.Key}
}

// page is the chat page's side of its stream.
type page struct {
	t    *testing.T
	conn *websocket.Conn
}

// openPage opens a conversation of its own, once the adapter is there.
func openPage(t *testing.T, address string) *page {
	t.Helper()
	p := &page{t: t}
	eventually(t, "the page answers", func() bool {
		conn, resp, err := websocket.DefaultDialer.Dial("ws://"+address+"/stream", http.Header{"Origin": {"http://" + address}})
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		p.conn = conn
		return true
	})
	t.Cleanup(func() { _ = p.conn.Close() })
	p.write(map[string]string{"type": "hello", "key": strings.Repeat("0123456789abcdef", 2)})
	return p
}

func (p *page) write(v any) {
	p.t.Helper()
	if err := p.conn.WriteJSON(v); err != nil {
		p.t.Fatal(err)
	}
}

// asks says something and waits for the answer. It returns what the answer said
// before it was whole.
func (p *page) asks(id, text, answer string) (before []string) {
	p.t.Helper()
	p.write(map[string]string{"type": "say", "id": strings.Repeat(id, 32), "text": text})
	_ = p.conn.SetReadDeadline(time.Now().Add(wait))
	for {
		var f struct {
			Type  string
			Entry struct {
				Client string
				Pieces []struct{ Text string }
			}
		}
		if err := p.conn.ReadJSON(&f); err != nil {
			p.t.Fatalf("waiting for %q: %v", answer, err)
		}
		switch {
		case f.Type != "entry" || f.Entry.Client != "" || len(f.Entry.Pieces) != 1:
		case f.Entry.Pieces[0].Text == answer:
			return before
		default:
			before = append(before, f.Entry.Pieces[0].Text)
		}
	}
}

// readsAtLast is reads, whatever else comes before.
func (c chatter) readsAtLast(target, text string) {
	c.t.Helper()
	for got := ""; got != text; {
		got = c.ExpectNotice("bot", target)
		c.t.Logf("%-8s -bot- %s", target, got)
	}
}

// The examples of docs/agents.md stand behind IRC and the chat page at once.
func TestAgentExamples(t *testing.T) {
	t.Parallel()
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		program := examples + "agents/agent.py"
		linesOf(t, program, 40)
		python := pythonWith(t, "websockets==15.0.1")
		tryAgent(t, "Python heard:", python, program)
	})
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		source := linesOf(t, examples+"agents/agent.ts", 40)
		dir := nodePackages(t, "agents")
		program := filepath.Join(dir, "agent.ts")
		writeFile(t, program, source)
		check := exec.Command("node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "esnext",
			"--moduleResolution", "bundler", "--esModuleInterop", "agent.ts")
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("tsc: %v\n%s", err, out)
		}
		// Without the directory, node would look for tsx where the test runs.
		tryAgent(t, "TypeScript heard:", "node", "--import", "file://"+filepath.Join(dir, "node_modules/tsx/dist/loader.mjs"), program)
	})
}

func tryAgent(t *testing.T, heard, command string, args ...string) {
	server := irctest.Start(t, irctest.Options{})
	alice := chatter{server.Dial(t, "alice"), t}
	alice.Join("#ops")
	address := port.Free(t)
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	writeFile(t, file, "plugins: []\n")
	h := startHost(t, "--plugins", file)
	env := h.dialIn("helper")
	writeFile(t, file, fmt.Sprintf("plugins:\n"+
		"  - {name: irc, agent: helper, command: [%q, adapter, run, irc], config: {server: %q, nick: bot, channels: [\"#ops\"], flood: {burst: 20, interval: 10ms}}}\n"+
		"  - {name: page, agent: helper, command: [%q, adapter, run, webchat], config: {listen: %q}}\n", pontoonBinary, server.Addr, pontoonBinary, address))
	h.cli("plugin", "reload")
	alice.ExpectJoin("bot", "#ops")
	p := startProcess(t, env, command, args...)
	p.anyEnd = true // it is ended by a signal

	eventually(t, "both adapters are attached", func() bool {
		out := h.cli("adapters")
		return strings.Contains(out, "irc") && strings.Contains(out, "page")
	})
	alice.say("#ops", "bot: hello from IRC") // it waits for the agent, if need be
	alice.readsAtLast("#ops", "alice: "+heard+" hello from IRC")
	web := openPage(t, address)
	before := web.asks("a", "hello from the page", heard+" hello from the page")
	if len(before) == 0 {
		t.Error("the page shows the answer only when it is whole")
	}
	for _, text := range before {
		if !strings.HasPrefix(heard+" hello from the page", text) {
			t.Errorf("the page shows %q, which the answer does not begin with", text)
		}
	}

	// Host and agent come back whoever goes, and a question waits for both.
	h.kill()
	h.again()
	alice.asks("#ops", "bot: back?", "alice: "+heard+" back?")

	p.signal(syscall.SIGKILL)
	p.waitExit()
	alice.say("#ops", "bot: wait for me")
	p = startProcess(t, env, command, args...)
	p.anyEnd = true
	alice.readsAtLast("#ops", "alice: "+heard+" wait for me")

	h.cli("agent", "disable", "helper")
	select {
	case <-p.exited:
	case <-time.After(wait):
		t.Errorf("the agent runs on although it is disabled; stderr:\n%s", p.errs.String())
	}
}
