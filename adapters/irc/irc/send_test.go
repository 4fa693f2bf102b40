package irc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	alice.Say("#ops", "robo: hi")
	e := b.expect()
	b.say(target(t, e), "\n\none\r\n\r\n  two\n   \n\tthree")
	for _, want := range []string{"alice: one", "  two", "\tthree"} {
		if got := alice.ExpectNotice("robo", "#ops"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	unasked := target(t, e) // as a host has it that sends to where the newest message came from
	unasked.Unsolicited = true
	for _, to := range []sdk.Target{{ConversationID: "#OPS"}, unasked} {
		b.say(to, "unasked")
		if got := alice.ExpectNotice("robo", "#ops"); got != "unasked" {
			t.Errorf("got %q", got)
		}
	}
	b.say(sdk.Target{ConversationID: "alice", ReplyCtx: []byte("null")}, "unasked too")
	if got := alice.ExpectNotice("robo", "alice"); got != "unasked too" {
		t.Errorf("got %q", got)
	}
	b.say(sdk.Target{ConversationID: "alice"}, " \n ")
}

func TestLongAnswer(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	for name, text := range map[string]string{
		"words": strings.Repeat("the quick brown fox ", 100),
		"emoji": strings.Repeat("👩‍👩‍👧‍👦 👍🏽🇩🇪 ", 60),
		"CJK":   strings.Repeat("水上浮橋連接兩岸", 80),
		"dense": strings.Repeat("x", 2000),
	} {
		alice.Say("#ops", "robo: "+name)
		b.say(target(t, b.expect()), text)
		var got strings.Builder
		lines := 0
		for got.Len() < len(nonSpace("alice: "+text)) {
			line := alice.Expect(":robo!", " NOTICE #ops :")
			if n := len(line) + len("\r\n"); n > maxLine {
				t.Errorf("%s: a line of %d bytes", name, n)
			}
			if !utf8.ValidString(line) {
				t.Errorf("%s: a broken rune in %q", name, line)
			}
			_, part, _ := strings.Cut(line, " NOTICE #ops :")
			got.WriteString(nonSpace(part))
			lines++
		}
		if got.String() != nonSpace("alice: "+text) {
			t.Errorf("%s: does not reassemble: %q", name, got.String())
		}
		if most := len(text)/300 + 1; lines > most {
			t.Errorf("%s: %d lines, want at most %d", name, lines, most)
		}
	}
}

// TestInjection: nothing in an answer can become a command of its own.
func TestInjection(t *testing.T) {
	t.Parallel()
	srv, alice, b := meet(t, Config{})
	bob := srv.Dial(t, "bob")
	bob.Join("#ops")
	b.say(sdk.Target{ConversationID: "#ops"}, "a\r\nPRIVMSG bob :x\nQUIT\rKICK #ops bob\x00\x01PING\x01\u2028JOIN #evil")
	for _, want := range []string{"a", "PRIVMSG bob :x", "QUIT", "KICK #ops bobPING", "JOIN #evil"} {
		if got := bob.ExpectNotice("robo", "#ops"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, ctx := range []string{
		`{"target":"bob\r\nQUIT"}`, `{"target":"#ops\nQUIT"}`, `{"target":"#ops\u0000"}`, `{"target":"#ops,bob"}`, `{"target":"bob :x"}`,
		`{"target":"$*"}`, `{"target":"*"}`, `{"target":":bob"}`, `{"target":"irc.test"}`, `{"target":"@#ops"}`, `{"target":""}`, `{"target":"#"}`, `{}`,
		`{"target":"#ops","nick":"a\r\nQUIT"}`, `{"target":"#ops","nick":"a b"}`, `"#ops"`, `[]`, `7`, `{"target":7}`,
		`{"target":"#elsewhere"}`, `{"target":"` + strings.Repeat("x", 600) + `"}`, `{"target":"nobody"}`,
	} {
		_, err := b.Send(context.Background(), sdk.Target{ReplyCtx: []byte(ctx)}, "x")
		var refused *sdk.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%.40s: got %v, want Refused", ctx, err)
		}
	}
	for _, line := range bob.Sync() {
		t.Errorf("bob saw %q", line)
	}
	alice.ExpectJoin("robo", "#ops")
}

func TestRefusedByServer(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	alice.Raw("MODE #ops +m")
	alice.Sync()
	_, err := b.Send(context.Background(), sdk.Target{ConversationID: "#ops"}, "x")
	var refused *sdk.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "404") {
		t.Errorf("in a moderated channel: got %v, want Refused with the server's code", err)
	}
	alice.Raw("MODE #ops -m")
	alice.Sync()
	b.say(sdk.Target{ConversationID: "#ops"}, "y")
	alice.ExpectNotice("robo", "#ops")
}

func TestMaxLines(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{MaxLines: 3})
	if r, err := b.Send(t.Context(), sdk.Target{ConversationID: "#ops"}, numbered(5)); err != nil || r.Note != "2 of 5 lines were cut (max_lines)" {
		t.Errorf("Send = %+v, %v", r, err)
	}
	for _, want := range []string{"1", "2", "3", "… (2 more lines cut)"} {
		if got := alice.ExpectNotice("robo", "#ops"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b.say(sdk.Target{ConversationID: "#ops"}, numbered(3))
	for _, want := range []string{"1", "2", "3"} {
		if got := alice.ExpectNotice("robo", "#ops"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFlood: under limits that kill whoever is too fast, an answer of 200 lines
// arrives whole, and without the adapter's own limit it would not.
func TestFlood(t *testing.T) {
	t.Parallel()
	// 45 commands a second, and 60 at once before the server closes the link.
	srv := irctest.Start(t, irctest.Options{Connect: `commandrate="45000" threshold="60" fakelag="no" recvq="8192"`})
	alice := srv.Dial(t, "alice")
	alice.Join("#ops")
	b := run(t, Config{Server: srv.Addr, Channels: []string{"#ops"}, MaxLines: 200, Flood: Flood{Burst: 5, Interval: Duration(25 * time.Millisecond)}})
	b.logged("msg=joined")
	b.say(sdk.Target{ConversationID: "#ops"}, numbered(200))
	for n := 1; n <= 200; n++ {
		if got := alice.ExpectNotice("robo", "#ops"); got != fmt.Sprint(n) {
			t.Fatalf("got %q, want %d", got, n)
		}
	}
	reckless := run(t, Config{Server: srv.Addr, Nick: "reckless", Channels: []string{"#ops"}, MaxLines: 200, Flood: Flood{Burst: 100, Interval: Duration(time.Millisecond)}})
	reckless.logged("msg=joined")
	if _, err := reckless.Send(context.Background(), sdk.Target{ConversationID: "#ops"}, numbered(200)); err == nil {
		t.Error("the server does not mind a flood: this test shows nothing")
	}
	reckless.logged("IRC connection lost") // its reason may be lost with it
}

// TestQueueFull: what would wait for the flood limit longer than the host waits is to be tried again.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	alice := srv.Dial(t, "alice")
	b := run(t, Config{Server: srv.Addr, MaxLines: 30, Flood: Flood{Burst: 1, Interval: Duration(time.Second)}})
	eventually(t, "connected", func() bool { return b.client.current() != nil })
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() {
		_, err := b.Send(ctx, sdk.Target{ConversationID: "alice"}, numbered(30))
		first <- err
	}()
	alice.ExpectNotice("robo", "alice")
	_, err := b.Send(ctx, sdk.Target{ConversationID: "bob"}, numbered(30))
	var retry *sdk.RetryError
	if !errors.As(err, &retry) || retry.After <= 0 {
		t.Errorf("got %v, want Retry after a while", err)
	}
	cancel()
	if err := <-first; errors.As(err, &retry) || !errors.Is(err, context.Canceled) {
		t.Errorf("an answer cut off in the middle: got %v, want an unknown outcome", err)
	}
	l := b.client.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queued != 0 || len(l.waiting) != 0 {
		t.Errorf("left behind: %d lines, %d waits", l.queued, len(l.waiting))
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}
