package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
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
	h := hosttest.Start(t)
	c := h.Attach(t, h.Channel("commands"))
	for _, tt := range []struct{ name, frame, want string }{
		{"help", hosttest.Say("c", "/help"), helpText},
		{"start", hosttest.Say("c", "/start"), startText},
		{"in any case, with spaces", hosttest.Say("c", "  /HeLp  me "), helpText},
		{"cmd: in text", hosttest.Say("c", "cmd:/help"), helpText},
		{"act:cmd: in text", hosttest.Say("c", "act:cmd:/start"), startText},
		{"cmd: action", hosttest.Press("c", "cmd:/help"), helpText},
		{"act:cmd: action", hosttest.Press("c", "act:cmd:/help x"), helpText},
		{"unknown", hosttest.Say("c", "/nope a b"), "Unknown command /nope — try /help"},
		{"unknown in capitals", hosttest.Say("c", "/NOPE"), "Unknown command /nope — try /help"},
		{"unknown action", hosttest.Press("c", "cmd:/cancel s1"), "Unknown command /cancel — try /help"},
		{"notify", hosttest.Say("c", "/notify"), "Notices are on. Use /notify on or /notify off."},
		{"notify off", hosttest.Say("c", "/notify off"), "Notices are off."},
		{"notify is kept", hosttest.Say("c", "/notify x"), "Notices are off. Use /notify on or /notify off."},
		{"notify elsewhere", hosttest.Say("d", "/notify"), "Notices are on. Use /notify on or /notify off."},
		{"notify on", hosttest.Say("c", "cmd:/notify ON"), "Notices are on."},
		{"stop", hosttest.Say("c", "/stop"), "Nothing is running."},
		{"nav: goes to the agent", hosttest.Press("c", "nav:/settings"), "echo: nav:/settings"},
		{"a value with a slash goes to the agent", hosttest.Press("c", "/help"), "echo: /help"},
		{"any other value", hosttest.Press("c", "yes"), "echo: yes"},
		{"an echo command is none as an action", hosttest.Press("c", "!caps"), "echo: !caps"},
		{"act: alone", hosttest.Press("c", "act:/help"), "echo: act:/help"},
		{"empty action", hosttest.Press("c", ""), "echo: "},
		{"nav: in text", hosttest.Say("c", "nav:/settings"), "echo: nav:/settings"},
		{"a path", hosttest.Say("c", "/etc/passwd"), "echo: /etc/passwd"},
		{"a lone slash", hosttest.Say("c", "/ help"), "echo: / help"},
		{"in the middle", hosttest.Say("c", "see /help"), "echo: see /help"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.Send(tt.frame)
			want := hosttest.Answer("c", tt.want)
			if tt.name == "notify elsewhere" {
				want = hosttest.Answer("d", tt.want)
			}
			c.Want(want)
		})
	}
}

func TestAgentCommand(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewSlowEcho()
	named := map[string]hub.Agent{"slow": slow, "other": hosttest.NewSlowEcho()}
	h := hosttest.Start(t, hosttest.WithAgents(named))
	row := h.Channel("agent", func(c *ledger.Channel) { c.Agents = []string{"echo", "slow"} })
	c := h.Attach(t, row, "card")
	list := func(current string) string {
		item := func(name string) string {
			b := `{"text":"Choose ` + name + `","value":"cmd:/agent ` + name + `"}`
			return `{"type":"list_item","Text":"` + name + `","text":"` + name + `","Button":` + b + `,"button":` + b + `}`
		}
		line := "Current agent: " + current
		return hosttest.Routed("send_card", "c", `"card":{"header":{"title":"Agents","color":"blue"},"elements":[`+
			`{"type":"markdown","Content":"`+line+`","content":"`+line+`"},`+item("echo")+`,`+item("slow")+`]}`)
	}
	c.Send(hosttest.Say("c", "/agent"))
	c.Want(list("echo"))
	c.Send(hosttest.Say("c", "/agent nobody"), hosttest.Say("c", "/agent other"), hosttest.Say("c", "/agent slow echo"))
	c.Want(list("echo"), list("echo"), list("echo"))
	c.Send(hosttest.Press("c", "cmd:/agent slow"))
	c.Want(hosttest.Answer("c", "Agent slow answers from now on."))
	c.Send(hosttest.Say("c", "x"))
	c.Want(hosttest.Answer("c", "slow: x"))
	c.Send(hosttest.Say("d", "x")) // another conversation keeps the channel's
	c.Want(hosttest.Answer("d", "echo: x"))

	h = h.Again(hosttest.WithAgents(named))
	c = h.Attach(t, row, "card")
	c.Send(hosttest.Say("c", "y"))
	c.Want(hosttest.Answer("c", "slow: y"))
	c.Send(hosttest.Say("c", "/agent"))
	c.Want(list("slow"))
	c.Send(hosttest.Say("c", "choose echo")) // the first of the list
	c.Want(hosttest.Answer("c", "Agent echo answers from now on."))
}

// An offer's labels count as its buttons in the conversation's next message, and so do
// its numbers where it was shown as text.
func TestTypedChoice(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	for name, caps := range map[string]string{"text": "", "buttons": "buttons", "all": hosttest.AllCaps} {
		t.Run(name, func(t *testing.T) {
			row := h.Channel(name)
			c := h.Attach(t, row, caps)
			typed := func(offer, text, want string) {
				t.Helper()
				if offer != "" {
					c.Send(hosttest.Say("c", offer))
					c.MustNext()
				}
				c.Send(hosttest.Say("c", text))
				c.Want(hosttest.Answer("c", want))
			}
			counted := func(offer, text, want string) {
				t.Helper()
				if name != "text" {
					want = "echo: " + text
				}
				typed(offer, text, want)
			}
			typed("", "yes", "echo: yes")
			typed("", "1", "echo: 1")
			typed("!buttons", "Yes", "echo: yes")
			typed("!buttons", " NO ", "echo: no")
			counted("!buttons", "2", "echo: no")
			counted("!buttons", "3", helpText)
			typed("!buttons", "help", helpText)
			typed("!buttons", "4", "echo: 4")
			typed("!buttons", "0", "echo: 0")
			typed("!buttons", "-1", "echo: -1")
			typed("!buttons", "yes!", "echo: yes!")
			typed("", "No", "echo: No") // a message too late
			typed("", "2", "echo: 2")
			typed("!card", "Say no", "echo: no")
			typed("!card", "open", "echo: open:1")
			counted("!card", "4", "echo: colour:red")
			typed("!card", "Blue", "echo: colour:blue")
			typed("!card", "Yes", "echo: Yes") // of the offer before

			c.Send(hosttest.Say("c", "!buttons"))
			c.MustNext()
			c.Send(hosttest.Say("d", "yes")) // another conversation's message is not its next
			c.Want(hosttest.Answer("d", "echo: yes"))
			c.Send(`{"type":"message","session_key":"k","conversation_id":"c","text":7}`) // nor is one that is refused
			c.WantError("wrong_type", "", "text")
			typed("", "YES", "echo: yes")
			c.Send(hosttest.Say("c", "!card"))
			c.MustNext()
		})
	}
	t.Run("after a restart", func(t *testing.T) {
		h := h.Again()
		c := h.Attach(t, h.ByName("text"))
		c.Send(hosttest.Say("c", "blue"), hosttest.Say("c", "blue"))
		c.Want(hosttest.Answer("c", "echo: colour:blue"), hosttest.Answer("c", "echo: blue"))
		h = h.Again()
		c = h.Attach(t, h.ByName("text"))
		c.Send(hosttest.Say("c", "blue"))
		c.Want(hosttest.Answer("c", "echo: blue"))
	})
}

// A message that the adapter delivers again is not the next one after an offer that
// answered it.
func TestRepeatIsNoNextMessage(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t)
	c := h.Attach11(t, h.Channel("c"), "ack")
	said := func(id, text string) string {
		return `{"type":"message","conversation_id":"c","text":` + hosttest.Quote(text) + `,"message_id":` + hosttest.Quote(id) + `}`
	}
	taken := func(id string) string {
		return `{"type":"message_ack","message_id":` + hosttest.Quote(id) + `,"ok":true}`
	}
	c.Send(said("1", "!buttons"))
	c.Want(taken("1"))
	c.Send(hosttest.AckFrame(c.NextSent("send").MessageID), said("1", "!buttons"))
	c.Want(taken("1"))
	c.Send(said("2", "2"))
	c.Want(taken("2"))
	if got := c.NextSent("send").Text; got != "echo: no" {
		t.Errorf("the second button is answered %q", got)
	}
}

// An agent learns what kind of thing it was told.
func TestActionReachesAgent(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewSlowEcho()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"slow": slow}))
	row := h.Channel("action", hosttest.WithAgent("slow"))
	c := h.Attach(t, row)
	c.Send(hosttest.Press("c", `nav:/x "y"`))
	c.Want(hosttest.Answer("c", `slow: nav:/x "y"`))
	c.Send(hosttest.Say("c", "text"))
	c.Want(hosttest.Answer("c", "slow: text"))
	if m := await.Value(t, "turn", slow.Turns).Message; m.Meta.String(message.MetaAction) != `nav:/x "y"` || m.Role != message.RoleUser {
		t.Errorf("action = %+v", m)
	}
	if m := await.Value(t, "turn", slow.Turns).Message; m.Meta != nil || m.Text != "text" {
		t.Errorf("message = %+v", m)
	}
	h.WantHistory(row, `in handled nav:/x "y"`, `out sent slow: nav:/x "y"`, "in handled text", "out sent slow: text")
}

func TestStop(t *testing.T) {
	t.Parallel()
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}))
	row := h.Channel("stop", hosttest.WithAgent("held"))
	c := h.Attach(t, row)
	c.Send(hosttest.Say("c", "one"))
	await.Value(t, "turn", slow.Turns)
	c.Send(hosttest.Say("c", "two"))
	c.Send(`{"type":"card_action","session_key":"other","conversation_id":"c","action":"cmd:/stop","reply_ctx":"button"}`)
	c.Want(`{"type":"send","session_key":"other","conversation_id":"c","reply_ctx":"button","text":"Stopped."}`)
	if err := await.Value(t, "end", slow.Ended); err == nil || err == context.Canceled { //nolint:errorlint // the bare one says nothing
		t.Errorf("cause = %v, want one that says who stopped it", err)
	}
	await.Value(t, "next turn", slow.Turns) // which /stop did not mean
	slow.Answer(t, "two is answered")
	c.Want(hosttest.Answer("c", "two is answered"))
	h.WantHistory(row, "in handled one", "in handled two", "in handled cmd:/stop", "out sent Stopped.", "out sent two is answered")
	c.Send(hosttest.Say("c", "/stop"))
	c.Want(hosttest.Answer("c", "Nothing is running."))

	// Pipelined behind its question, it meets a turn that is being committed.
	c.Raw(hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "three")), hosttest.RawFrame(true, hosttest.OpText, hosttest.Say("c", "/stop")))
	c.Want(hosttest.Answer("c", "Stopped."))
	await.Until(t, "turn is over", func() bool {
		all := h.History(row)
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
	slow := hosttest.NewHeld()
	h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"held": slow}), func(s *hosttest.Setup) { s.Typing = 50 * time.Millisecond })
	row := h.Channel("typing", hosttest.WithAgent("held"))
	c := h.Attach(t, row, "typing")
	c.Send(hosttest.Say("c", "x"))
	c.Want(hosttest.Routed("start_typing", "c", ""))
	slow.Answer(t, "done")
	c.Want(hosttest.Answer("c", "done"), hosttest.Routed("stop_typing", "c", ""))
	t.Run("without an answer", func(t *testing.T) {
		c.Send(hosttest.Say("c", "x"))
		c.Want(hosttest.Routed("start_typing", "c", ""))
		slow.Answer(t, "")
		c.Want(hosttest.Routed("stop_typing", "c", ""))
	})
	t.Run("stopped", func(t *testing.T) {
		c.Send(hosttest.Say("c", "x"))
		c.Want(hosttest.Routed("start_typing", "c", ""))
		c.Send(hosttest.Say("c", "/stop"))
		got := []string{c.MustNext(), c.MustNext()}
		if got[0] != hosttest.Answer("c", "Stopped.") && got[1] != hosttest.Answer("c", "Stopped.") || got[0] != hosttest.Routed("stop_typing", "c", "") && got[1] != hosttest.Routed("stop_typing", "c", "") {
			t.Errorf("read %q", got)
		}
	})
	t.Run("not before the delay", func(t *testing.T) {
		h := hosttest.Start(t, hosttest.WithAgents(map[string]hub.Agent{"slow": hosttest.NewSlowEcho()}))
		c := h.Attach(t, h.Channel("quick", hosttest.WithAgent("slow")), "typing")
		c.Send(hosttest.Say("c", "x"))
		c.Want(hosttest.Answer("c", "slow: x"))
		c.Quiet()
	})
	t.Run("by the operator", func(t *testing.T) {
		if err := h.Hub.Typing(t.Context(), row, "c", true); err != nil {
			t.Error(err)
		}
		c.Want(hosttest.Routed("start_typing", "c", ""))
		if err := h.Hub.Typing(t.Context(), row, "c", false); err != nil {
			t.Error(err)
		}
		c.Want(hosttest.Routed("stop_typing", "c", ""))
	})
	t.Run("incapable adapter", func(t *testing.T) {
		c := h.Attach(t, row)
		c.Send(hosttest.Say("c", "x"))
		await.Value(t, "turn", slow.Turns)
		if err := h.Hub.Typing(t.Context(), row, "c", true); err != nil {
			t.Error(err)
		}
		slow.Answer(t, "done")
		c.Want(hosttest.Answer("c", "done"))
		c.Quiet()
	})
}
