package irc

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// saslServer speaks just enough of a server with services: it knows the account
// "bridge" with the password "s3cret", and calls the user alice by account.
func saslServer(t *testing.T, mechanisms string) string {
	t.Helper()
	return listen(t, func(c *fakeConn) {
		if _, ok := c.expect("USER"); !ok {
			return
		}
		c.write(":fake CAP * LS * :multi-prefix batch", ":fake CAP * LS :account-tag sasl="+mechanisms)
		for c.lines.Scan() {
			command, rest, _ := strings.Cut(c.lines.Text(), " ")
			switch {
			case command == "CAP" && strings.HasPrefix(rest, "REQ "):
				c.write(":fake CAP * ACK :" + strings.TrimPrefix(strings.TrimPrefix(rest, "REQ "), ":"))
			case command == "AUTHENTICATE" && rest == "PLAIN":
				c.write("AUTHENTICATE +")
			case command == "AUTHENTICATE":
				if b, _ := base64.StdEncoding.DecodeString(rest); string(b) != "\x00bridge\x00s3cret" {
					c.write(":fake 904 * :SASL authentication failed")
					continue
				}
				c.write(":fake 900 * robo!r@h bridge :You are now logged in", ":fake 903 * :SASL authentication successful")
			case command == "CAP" && rest == "END":
				c.write(":fake 001 robo :hi", ":fake 005 robo CASEMAPPING=ascii CHANTYPES=# :are supported", ":fake 376 robo :end")
				c.write("@account=Alice;x=y :al!~a@host.example PRIVMSG robo :with account", ":al!~a@host.example PRIVMSG robo :without",
					"@account=a@b :al!~a@host.example PRIVMSG robo :odd account", "@account=* :al!~a@host.example PRIVMSG robo :logged out",
					":fake.server PRIVMSG robo :from a server", ":robo!r@h PRIVMSG robo :echo", ":#x!r@h PRIVMSG robo :from a channel?",
					":al!~a@host.example PRIVMSG #never :robo: hi", ":al!~a@host.example PRIVMSG $* :robo: hi", ":al!~a@host.example PRIVMSG robo :last")
			case command == "QUIT":
				return
			}
		}
	})
}

func TestSASL(t *testing.T) {
	t.Parallel()
	b := run(t, Config{Server: saslServer(t, "EXTERNAL,PLAIN"), SASLUser: "bridge", SASLPassword: "s3cret"})
	b.logged("connected to IRC")
	b.platform(wire.PlatformConnected)
	for _, want := range []struct{ text, user string }{
		{"with account", "alice"}, {"without", "~a@host.example"}, {"odd account", "~a@host.example"}, {"logged out", "~a@host.example"}, {"last", "~a@host.example"},
	} {
		if e := b.expect(); e.Text != want.text || e.UserID != want.user {
			t.Errorf("got %q of %q, want %q of %q", e.Text, e.UserID, want.text, want.user)
		}
	}
	b.logged("clear text")
	noSecret(t, b)
}

func TestSASLRefused(t *testing.T) {
	t.Parallel()
	plainServer := irctest.Start(t, irctest.Options{}) // has no services, so it offers no SASL
	for _, c := range []struct{ name, server, password, want string }{
		{"wrong password", saslServer(t, "PLAIN"), "s3cretive", "(904)"},
		{"other mechanism", saslServer(t, "SCRAM-SHA-256"), "s3cret", errNoSASL.Error()},
		{"not offered", plainServer.Addr, "s3cret", errNoSASL.Error()},
	} {
		b := run(t, Config{Server: c.server, SASLUser: "bridge", SASLPassword: c.password})
		b.logged("IRC connection lost", c.want)
		if s := b.platform(wire.PlatformRefused); !strings.Contains(c.want+s.Reason, "SASL") {
			t.Errorf("%s: the host is told %+v", c.name, s)
		}
		if strings.Contains(b.log.String(), "connected to IRC") {
			t.Errorf("%s: went on without the account", c.name)
		}
		noSecret(t, b)
	}
}

// TestOldServer: a server that knows neither CAP nor ISUPPORT.
func TestOldServer(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	addr := listen(t, func(c *fakeConn) {
		c.expect("USER")
		c.write("PING :cookie")
		c.expect("PONG cookie")
		c.write(":old 421 robo CAP :Unknown command", ":old 433 * robo :in use", ":old 001 robo_ :hi", ":old 376 robo_ :end")
		line, _ := c.expect("JOIN")
		select {
		case got <- line:
		default:
		}
		c.write(":old 465 robo_ :go away", "ERROR :K-lined: \x02spam\x02")
	})
	b := run(t, Config{Server: addr, Channels: []string{"#a", "#b key", "&c"}})
	b.logged("IRC connection lost", "K-lined: spam")
	if line := <-got; line != "JOIN #b,#a,&c key" {
		t.Errorf("got %q", line)
	}
}

func noSecret(t *testing.T, b *bench) {
	t.Helper()
	for _, s := range []string{"s3cret", base64.StdEncoding.EncodeToString([]byte("\x00bridge\x00s3cret"))[:12]} {
		if strings.Contains(b.log.String(), s) {
			t.Errorf("the log shows the password")
		}
	}
}
