package irc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
)

// TestMention says a number of things in a channel, of which those that are
// meant for the adapter must arrive, in order, and nothing else.
func TestMention(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	for _, c := range []struct{ say, want string }{ // want "" = not delivered
		{"hello all", ""},
		{"robo: one", "one"},
		{"robot: hello", ""},
		{"robo, two", "two"},
		{"ROBO: three", "three"},
		{"@robo four", "four"},
		{"@robo: five", "five"},
		{"what does robo think?", "what does robo think?"},
		{"robo_ is someone else", ""},
		{"robo-2 too, and robós", ""},
		{"robo's turn", "robo's turn"},
		{"robo:", ""},
		{"\x02robo\x02: \x0304,01red\x03 and \x1dthin\x0f", "red and thin"},
		{"\x01VERSION\x01", ""},
		{"\x01ACTION waves\x01", ""},
		{"\x01ACTION waves at robo\x01", "* alice waves at robo"},
		{"robo: last", "last"},
	} {
		alice.Say("#ops", c.say)
		if c.want != "" {
			if e := b.expect(); e.Text != c.want {
				t.Errorf("%q: delivered %q, want %q", c.say, e.Text, c.want)
			}
		}
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	srv, alice, b := meet(t, Config{})
	alice.Say("#ops", "robo: hi")
	e := b.expect()
	ctx, _ := json.Marshal(e.ReplyCtx)
	if e.SessionKey != "irc:#ops:alice" || e.ConversationID != "#ops" || e.UserName != "alice" || e.UserID != "alice@127.0.0.1" ||
		string(ctx) != `{"target":"#ops","nick":"alice"}` {
		t.Errorf("in a channel: %+v", e)
	}
	srv.Dial(t, "Bob[1]").Say("robo", "hi")
	e = b.expect()
	ctx, _ = json.Marshal(e.ReplyCtx)
	if e.SessionKey != "irc:bob{1}:bob{1}" || e.ConversationID != "bob{1}" || e.UserName != "Bob[1]" || e.Text != "hi" ||
		string(ctx) != `{"target":"Bob[1]","nick":"Bob[1]"}` {
		t.Errorf("in a direct message: %+v", e)
	}
	b.say(target(t, e), "hello")
	alice.Raw("WHOIS robo")
	alice.Expect(" 335 ", "robo") // is a bot
	if strings.Contains(b.log.String(), "hello") {
		t.Error("the log shows message text")
	}
}

func TestTriggerAll(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{Trigger: TriggerAll})
	for say, want := range map[string]string{"hello all": "hello all", "robo: hi": "hi", "\x01ACTION waves\x01": "* alice waves"} {
		alice.Say("#ops", say)
		if e := b.expect(); e.Text != want {
			t.Errorf("%q: delivered %q, want %q", say, e.Text, want)
		}
	}
}

// TestLoops: what comes from bots, from the adapter itself and from the past is not delivered.
func TestLoops(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{Modules: []string{"chanhistory"}, Extra: "<chanhistory maxlines=\"50\" bots=\"yes\">\n"})
	alice := srv.Dial(t, "alice")
	alice.Join("#ops")
	alice.Raw("MODE #ops +H 20:1h")
	alice.Say("#ops", "robo: long ago")
	alice.Sync()
	b := run(t, Config{Server: srv.Addr, Channels: []string{"#ops"}, Trigger: TriggerAll})
	alice.ExpectJoin("robo", "#ops")

	alice.Notice("#ops", "robo: notice to all")
	alice.Notice("robo", "notice to one")
	alice.Say("robo", "\x01VERSION\x01")
	alice.Say("@#ops", "robo: to operators only")
	alice.Say("robo", "last")
	e := b.expect()
	if e.Text != "last" {
		t.Fatalf("delivered %q", e.Text)
	}
	b.say(target(t, e), "answer")
	if got := alice.ExpectNotice("robo", "alice"); got != "answer" {
		t.Errorf("answer %q", got)
	}
}

func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	for say, want := range map[string]string{
		"Gr\xfc\xdfe \x80":    "Grüße €",
		"Gr\xc3\xbc\xc3\x9fe": "Grüße",
		"caf\xe9":             "café",
		"\xff\xfe":            "ÿþ",
		"漢\xe6\xbc":           "漢", // cut in two
	} {
		alice.Say("robo", say)
		if e := b.expect(); e.Text != want || !utf8.ValidString(e.Text) {
			t.Errorf("%q: delivered %q, want %q", say, e.Text, want)
		}
	}
}
