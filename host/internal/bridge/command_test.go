package bridge_test

import (
	"context"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

const (
	helpText = "Commands:\n/help — list the commands\n/start — say hello\n" +
		"/notify on|off — switch the host's own notices on or off in this conversation\n" +
		"/agent [NAME] — show or choose who answers in this conversation\n/stop — stop the answer that is being made"
	startText = "Hello! Write something, and the agent answers.\n\n" + helpText
)

func TestCommands(t *testing.T) {
	t.Parallel()
	h := start(t)
	c := h.attach(t, h.channel("commands"))
	for _, tt := range []struct{ name, frame, want string }{
		{"help", say("c", "/help"), helpText},
		{"start", say("c", "/start"), startText},
		{"in any case, with spaces", say("c", "  /HeLp  me "), helpText},
		{"cmd: in text", say("c", "cmd:/help"), helpText},
		{"act:cmd: in text", say("c", "act:cmd:/start"), startText},
		{"cmd: action", press("c", "cmd:/help"), helpText},
		{"act:cmd: action", press("c", "act:cmd:/help x"), helpText},
		{"unknown", say("c", "/nope a b"), "Unknown command /nope — try /help"},
		{"unknown in capitals", say("c", "/NOPE"), "Unknown command /nope — try /help"},
		{"unknown action", press("c", "cmd:/cancel s1"), "Unknown command /cancel — try /help"},
		{"notify", say("c", "/notify"), "Notices are on. Use /notify on or /notify off."},
		{"notify off", say("c", "/notify off"), "Notices are off."},
		{"notify is kept", say("c", "/notify x"), "Notices are off. Use /notify on or /notify off."},
		{"notify elsewhere", say("d", "/notify"), "Notices are on. Use /notify on or /notify off."},
		{"notify on", say("c", "cmd:/notify ON"), "Notices are on."},
		{"stop", say("c", "/stop"), "Nothing is running."},
		{"nav: goes to the agent", press("c", "nav:/settings"), "echo: nav:/settings"},
		{"a value with a slash goes to the agent", press("c", "/help"), "echo: /help"},
		{"any other value", press("c", "yes"), "echo: yes"},
		{"an echo command is none as an action", press("c", "!caps"), "echo: !caps"},
		{"act: alone", press("c", "act:/help"), "echo: act:/help"},
		{"empty action", press("c", ""), "echo: "},
		{"nav: in text", say("c", "nav:/settings"), "echo: nav:/settings"},
		{"a path", say("c", "/etc/passwd"), "echo: /etc/passwd"},
		{"a lone slash", say("c", "/ help"), "echo: / help"},
		{"in the middle", say("c", "see /help"), "echo: see /help"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.send(tt.frame)
			want := answer("c", tt.want)
			if tt.name == "notify elsewhere" {
				want = answer("d", tt.want)
			}
			c.want(want)
		})
	}
}

func TestAgentCommand(t *testing.T) {
	t.Parallel()
	slow := newSlowEcho()
	named := map[string]hub.Agent{"slow": slow, "other": newSlowEcho()}
	h := start(t, agents(named))
	row := h.channel("agent", func(c *ledger.Channel) { c.Agents = []string{"echo", "slow"} })
	c := h.attach(t, row, "card")
	list := func(current string) string {
		item := func(name string) string {
			b := `{"text":"Choose ` + name + `","value":"cmd:/agent ` + name + `"}`
			return `{"type":"list_item","Text":"` + name + `","text":"` + name + `","Button":` + b + `,"button":` + b + `}`
		}
		line := "Current agent: " + current
		return routed("send_card", "c", `"card":{"header":{"title":"Agents","color":"blue"},"elements":[`+
			`{"type":"markdown","Content":"`+line+`","content":"`+line+`"},`+item("echo")+`,`+item("slow")+`]}`)
	}
	c.send(say("c", "/agent"))
	c.want(list("echo"))
	c.send(say("c", "/agent nobody"), say("c", "/agent other"), say("c", "/agent slow echo"))
	c.want(list("echo"), list("echo"), list("echo"))
	c.send(press("c", "cmd:/agent slow"))
	c.want(answer("c", "Agent slow answers from now on."))
	c.send(say("c", "x"))
	c.want(answer("c", "slow: x"))
	c.send(say("d", "x")) // another conversation keeps the channel's
	c.want(answer("d", "echo: x"))

	h = h.again(agents(named))
	c = h.attach(t, row, "card")
	c.send(say("c", "y"))
	c.want(answer("c", "slow: y"))
	c.send(say("c", "/agent"))
	c.want(list("slow"))
	c.send(say("c", "1")) // the first of the list
	c.want(answer("c", "Agent echo answers from now on."))
}

// The newest offer's labels and numbers count as its buttons.
func TestTypedChoice(t *testing.T) {
	t.Parallel()
	h := start(t)
	for name, caps := range map[string]string{"text": "", "buttons": "buttons", "all": allCaps} {
		t.Run(name, func(t *testing.T) {
			row := h.channel(name)
			c := h.attach(t, row, caps)
			typed := func(text, want string) {
				t.Helper()
				c.send(say("c", text))
				c.want(answer("c", want))
			}
			typed("yes", "echo: yes")
			typed("1", "echo: 1")
			c.send(say("c", "!buttons"))
			c.mustNext()
			typed("Yes", "echo: yes")
			typed(" NO ", "echo: no")
			typed("2", "echo: no")
			typed("3", helpText)
			typed("help", helpText)
			typed("4", "echo: 4")
			typed("0", "echo: 0")
			typed("-1", "echo: -1")
			typed("yes!", "echo: yes!")
			c.send(say("d", "1"))
			c.want(answer("d", "echo: 1"))
			c.send(say("c", "!card"))
			c.mustNext()
			typed("Say no", "echo: no")
			typed("open", "echo: open:1")
			typed("4", "echo: colour:red")
			typed("Blue", "echo: colour:blue")
			typed("Yes", "echo: Yes") // of the offer before
		})
	}
	t.Run("after a restart", func(t *testing.T) {
		h := h.again()
		c := h.attach(t, h.byName("text"))
		c.send(say("c", "blue"))
		c.want(answer("c", "echo: colour:blue"))
	})
}

// An agent learns what kind of thing it was told.
func TestActionReachesAgent(t *testing.T) {
	t.Parallel()
	slow := newSlowEcho()
	h := start(t, agents(map[string]hub.Agent{"slow": slow}))
	row := h.channel("action", withAgent("slow"))
	c := h.attach(t, row)
	c.send(press("c", `nav:/x "y"`))
	c.want(answer("c", `slow: nav:/x "y"`))
	c.send(say("c", "text"))
	c.want(answer("c", "slow: text"))
	if m := receive(t, "turn", slow.turns).Message; m.Meta.String(message.MetaAction) != `nav:/x "y"` || m.Role != message.RoleUser {
		t.Errorf("action = %+v", m)
	}
	if m := receive(t, "turn", slow.turns).Message; m.Meta != nil || m.Text != "text" {
		t.Errorf("message = %+v", m)
	}
	h.wantHistory(row, `in handled nav:/x "y"`, `out sent slow: nav:/x "y"`, "in handled text", "out sent slow: text")
}

func TestStop(t *testing.T) {
	t.Parallel()
	slow := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": slow}))
	row := h.channel("stop", withAgent("held"))
	c := h.attach(t, row)
	c.send(say("c", "one"))
	receive(t, "turn", slow.turns)
	c.send(say("c", "two"))
	c.send(`{"type":"card_action","session_key":"other","conversation_id":"c","action":"cmd:/stop","reply_ctx":"button"}`)
	c.want(`{"type":"send","session_key":"other","conversation_id":"c","reply_ctx":"button","text":"Stopped."}`)
	if err := receive(t, "end", slow.ended); err == nil || err == context.Canceled { //nolint:errorlint // the bare one says nothing
		t.Errorf("cause = %v, want one that says who stopped it", err)
	}
	receive(t, "next turn", slow.turns) // which /stop did not mean
	slow.answers <- "two is answered"
	c.want(answer("c", "two is answered"))
	h.wantHistory(row, "in handled one", "in handled two", "in handled cmd:/stop", "out sent Stopped.", "out sent two is answered")
	c.send(say("c", "/stop"))
	c.want(answer("c", "Nothing is running."))

	// Pipelined behind its question, it meets a turn that is being committed.
	c.raw(frame(true, opText, say("c", "three")), frame(true, opText, say("c", "/stop")))
	c.want(answer("c", "Stopped."))
	eventually(t, "turn is over", func() bool {
		all := h.history(row)
		for _, e := range all {
			if e.Text == "three" {
				return e.State == ledger.Handled
			}
		}
		return false
	})
}

func TestTyping(t *testing.T) {
	t.Parallel()
	if hub.TypingDelay != 300*time.Millisecond {
		t.Errorf("default = %s, want 300 ms", hub.TypingDelay)
	}
	slow := newHeld()
	h := start(t, agents(map[string]hub.Agent{"held": slow}), func(s *setup) { s.typing = 50 * time.Millisecond })
	row := h.channel("typing", withAgent("held"))
	c := h.attach(t, row, "typing")
	c.send(say("c", "x"))
	c.want(routed("start_typing", "c", ""))
	slow.answers <- "done"
	c.want(answer("c", "done"), routed("stop_typing", "c", ""))
	t.Run("without an answer", func(t *testing.T) {
		c.send(say("c", "x"))
		c.want(routed("start_typing", "c", ""))
		slow.answers <- ""
		c.want(routed("stop_typing", "c", ""))
	})
	t.Run("stopped", func(t *testing.T) {
		c.send(say("c", "x"))
		c.want(routed("start_typing", "c", ""))
		c.send(say("c", "/stop"))
		got := []string{c.mustNext(), c.mustNext()}
		if got[0] != answer("c", "Stopped.") && got[1] != answer("c", "Stopped.") || got[0] != routed("stop_typing", "c", "") && got[1] != routed("stop_typing", "c", "") {
			t.Errorf("read %q", got)
		}
	})
	t.Run("not before the delay", func(t *testing.T) {
		h := start(t, agents(map[string]hub.Agent{"slow": newSlowEcho()}))
		c := h.attach(t, h.channel("quick", withAgent("slow")), "typing")
		c.send(say("c", "x"))
		c.want(answer("c", "slow: x"))
		c.quiet()
	})
	t.Run("by the operator", func(t *testing.T) {
		if err := h.hub.Typing(t.Context(), row, "c", true); err != nil {
			t.Error(err)
		}
		c.want(routed("start_typing", "c", ""))
		if err := h.hub.Typing(t.Context(), row, "c", false); err != nil {
			t.Error(err)
		}
		c.want(routed("stop_typing", "c", ""))
	})
	t.Run("incapable adapter", func(t *testing.T) {
		c := h.attach(t, row)
		c.send(say("c", "x"))
		receive(t, "turn", slow.turns)
		if err := h.hub.Typing(t.Context(), row, "c", true); err != nil {
			t.Error(err)
		}
		slow.answers <- "done"
		c.want(answer("c", "done"))
		c.quiet()
	})
}
