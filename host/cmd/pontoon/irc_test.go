package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
)

// chatter is a person on IRC; what they say and are told shows with go test -v.
type chatter struct {
	*irctest.User
	t *testing.T
}

func (c chatter) say(target, text string) {
	c.t.Helper()
	c.t.Logf("%-8s <%s> %s", target, c.Nick, text)
	c.Say(target, text)
}

// reads waits for a notice of the bot and checks its text.
func (c chatter) reads(target, text string) {
	c.t.Helper()
	got := c.ExpectNotice("bot", target)
	c.t.Logf("%-8s -bot- %s", target, got)
	if got != text {
		c.t.Fatalf("%s reads %q, expected %q", c.Nick, got, text)
	}
}

// asks repeats a question until it is answered: while host or adapter are away
// it is lost, as IRC keeps nothing. Other answers don't count.
func (c chatter) asks(target, text, answer string) {
	c.t.Helper()
	eventually(c.t, "the bot answers "+text, func() bool {
		c.say(target, text)
		again := time.NewTimer(500 * time.Millisecond)
		defer again.Stop()
		for {
			for _, line := range c.Sync() {
				if strings.HasPrefix(line, ":bot!") && strings.HasSuffix(line, answer) {
					c.t.Logf("%-8s -bot- %s", target, answer)
					return true
				}
			}
			select {
			case <-again.C:
				return false
			case <-time.After(10 * time.Millisecond): // between two polls
			}
		}
	})
}

// Two programs, and two ways of running each: connected by WebSocket, and as a
// plugin of the host.
func TestIRC(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{"builtIn": {pontoonBinary, "adapter", "run", "irc"}, "standalone": {ircBinary}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("websocket", func(t *testing.T) {
				t.Parallel()
				talkOverIRC(t, command, false)
			})
			t.Run("plugin", func(t *testing.T) {
				t.Parallel()
				talkOverIRC(t, command, true)
			})
		})
	}
}

// startIRC runs the adapter in either mode on a host of its own. The process is
// nil if it is the host's.
func startIRC(t *testing.T, config string, command []string, asPlugin bool) (*host, *process) {
	if asPlugin {
		file := filepath.Join(t.TempDir(), "plugins.yaml")
		entry := map[string]any{"name": "irc-home", "command": command, "config": json.RawMessage(config), "queue": false}
		b, err := json.Marshal(map[string]any{"plugins": []any{entry}}) // JSON is YAML
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, string(b))
		return startHost(t, "--plugins", file), nil
	}
	h := startHost(t)
	var made struct{ Token string }
	h.json(&made, "channel", "create", "irc-home")
	env := []string{"PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + made.Token, "PONTOON_CONFIG=" + config}
	p := startProcess(t, env, command[0], command[1:]...)
	t.Cleanup(func() {
		if log := p.errs.String(); strings.Contains(log, made.Token) || p.out.String() != "" {
			t.Errorf("the token is in the log, or there is something on stdout (%q):\n%s", p.out.String(), log)
		}
	})
	return h, p
}

func talkOverIRC(t *testing.T, command []string, asPlugin bool) {
	server := irctest.Start(t, irctest.Options{})
	alice := chatter{server.Dial(t, "alice"), t}
	alice.Join("#ops")
	bob := chatter{server.Dial(t, "bob"), t}
	bob.Join("#ops")
	config := fmt.Sprintf(`{"server":%q,"nick":"bot","channels":["#ops"],"flood":{"burst":20,"interval":"10ms"}}`, server.Addr)
	h, adapter := startIRC(t, config, command, asPlugin)
	alice.ExpectJoin("bot", "#ops")

	alice.asks("#ops", "bot: are you there?", "alice: echo: are you there?") // joined is not yet attached
	alice.say("#ops", "bot: hello")
	alice.reads("#ops", "alice: echo: hello")
	bob.reads("#ops", "alice: echo: are you there?")
	bob.reads("#ops", "alice: echo: hello")
	alice.say("#ops", "nobody in particular")
	bob.say("#ops", "bot, ünïcödé 🌉 works?")
	alice.reads("#ops", "bob: echo: ünïcödé 🌉 works?")
	alice.say("bot", "in private")
	alice.reads("alice", "echo: in private")
	alice.say("#ops", "bot: !caps")
	alice.reads("#ops", "alice: caps: text,ack")
	alice.say("#ops", "bot: !card")
	for _, text := range []string{
		"alice: *Every element*", "**Markdown** with a [link](https://example.org/)", "──────────", "[Help] [Say no]", "A list item  →  [Open]",
		"Choose a colour (options: Red | Blue)", "A note",
	} {
		alice.reads("#ops", text)
	}
	alice.say("#ops", "bot: Say no") // the button of that card, typed
	alice.reads("#ops", "alice: echo: no")
	alice.say("#ops", "bot: /nonsense")
	alice.reads("#ops", "alice: Unknown command /nonsense — try /help")

	// An operator speaks first, and sees all of it.
	h.cli("send", "irc-home", "#ops", "maintenance at noon")
	bob.reads("#ops", "bob: echo: ünïcödé 🌉 works?")
	found := false
	for !found {
		text := bob.ExpectNotice("bot", "#ops")
		found = strings.HasSuffix(text, "maintenance at noon")
	}
	// The IRC server has taken it: that is what the adapter acknowledges.
	eventually(t, "all is delivered", func() bool { return !strings.Contains(h.cli("messages", "irc-home"), "  (sent)") })
	out := h.cli("messages", "irc-home")
	t.Log("\n" + out)
	holds(t, out, "→ #ops  alice: hello  (handled)", "← #ops  echo: echo: hello  (delivered)", "→ alice  alice: in private  (handled)", "← alice  echo: echo: in private  (delivered)",
		"pontoon: maintenance at noon  (delivered)")
	if strings.Contains(out, "nobody in particular") {
		t.Error("the bot listens to what is not for it")
	}
	attached := h.cli("adapters")
	t.Log("\n" + attached)
	holds(t, attached, "irc-home", "irc", "text", map[bool]string{false: "websocket", true: "plugin"}[asPlugin])

	for _, way := range []string{"stop", "kill"} {
		if way == "stop" {
			h.stop()
		} else {
			h.kill()
		}
		h.again()
		alice.asks("#ops", "bot: back after "+way+"?", "alice: echo: back after "+way+"?")
	}
	eventually(t, "the last answer is delivered", func() bool {
		return strings.Contains(h.cli("messages", "irc-home"), "echo: echo: back after kill?  (delivered)")
	})

	if asPlugin {
		h.stop() // and its plugin with it
	} else {
		adapter.signal(syscall.SIGTERM)
		if code := adapter.waitExit(); code != 0 {
			t.Errorf("the adapter ends with %d:\n%s", code, adapter.errs.String())
		}
	}
	alice.ExpectGone("bot", "#ops")
}

// What an IRC server will not say is refused; what it can't say now is tried
// again, and in order, until it was said.
func TestIRCAcknowledges(t *testing.T) {
	t.Parallel()
	server := irctest.Start(t, irctest.Options{})
	config := fmt.Sprintf(`{"server":%q,"nick":"bot","channels":["#ops"],"flood":{"burst":20,"interval":"10ms"}}`, server.Addr)
	h, _ := startIRC(t, config, []string{pontoonBinary, "adapter", "run", "irc"}, false)
	alice := chatter{server.Dial(t, "alice"), t}
	alice.Join("#ops")
	alice.asks("#ops", "bot: are you there?", "alice: echo: are you there?")
	h.cli("send", "irc-home", "#elsewhere", "into the void")
	eventually(t, "it is refused", func() bool {
		return strings.Contains(h.cli("messages", "irc-home"), "into the void  (failed/rejected)")
	})

	server.Stop(t)
	h.cli("send", "irc-home", "#ops", "one")
	h.cli("send", "irc-home", "#ops", "two")
	server.Restart(t)
	alice = chatter{server.Dial(t, "alice"), t}
	alice.Join("#ops")
	for _, text := range []string{"one", "two"} {
		for got := ""; !strings.HasSuffix(got, text); {
			got = alice.ExpectNotice("bot", "#ops")
		}
	}
	eventually(t, "both are delivered", func() bool {
		out := h.cli("messages", "irc-home")
		return strings.Contains(out, ": one  (delivered)") && strings.Contains(out, ": two  (delivered)")
	})
}

// A token that opens nothing, or no more, ends the adapter with one clear line.
func TestIRCAdapterRefused(t *testing.T) {
	t.Parallel()
	server := irctest.Start(t, irctest.Options{})
	h := startHost(t)
	config := filepath.Join(t.TempDir(), "irc.json")
	writeFile(t, config, fmt.Sprintf(`{"server":%q,"nick":"bot"}`, server.Addr))
	run := func(token string) *process {
		p := startProcess(t, []string{"PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + token, "PONTOON_CONFIG=" + config}, pontoonBinary, "adapter", "run", "irc")
		p.anyEnd = true
		return p
	}
	p := run("pnt_thatisnotatoken")
	if code := p.waitExit(); code != 1 || !strings.Contains(p.errs.String(), "invalid token") {
		t.Errorf("wrong token: exit status %d, %s", code, p.errs.String())
	}
	p = run(h.channel("c", ""))
	eventually(t, "the adapter is attached", func() bool { return strings.Contains(h.cli("adapters"), "irc") })
	h.cli("channel", "disable", "c")
	if code := p.waitExit(); code != 1 {
		t.Errorf("disabled channel: exit status %d, %s", code, p.errs.String())
	}
	last := lines(p.errs.String())
	if line := last[len(last)-1]; !strings.HasPrefix(line, "irc: ") && !strings.Contains(line, "channel disabled") {
		t.Errorf("last line %q, expected why", line)
	}
}
