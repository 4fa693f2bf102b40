package irc

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/adapters/irc/irctest"
	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestNickCollision(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	holder, other, alice := srv.Dial(t, "robo"), srv.Dial(t, "robo_"), srv.Dial(t, "alice")
	b := run(t, Config{Server: srv.Addr, Channels: []string{"#ops"}})
	alice.Join("#ops")
	alice.ExpectJoin("robo2", "#ops")
	alice.Say("#ops", "robo: not you")
	alice.Say("#ops", "robo2: you")
	if e := b.expect(); e.Text != "you" {
		t.Errorf("delivered %q", e.Text)
	}
	other.Close()
	holder.Raw("NICK someone")
	alice.ExpectJoin("robo", "#ops")
	alice.Say("#ops", "robo: now you")
	if e := b.expect(); e.Text != "now you" {
		t.Errorf("delivered %q", e.Text)
	}
}

// TestVacated: the nick is taken back the moment its holder leaves a common
// channel, not only at the next try.
func TestVacated(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	holder, alice := srv.Dial(t, "robo"), srv.Dial(t, "alice")
	holder.Join("#ops")
	alice.Join("#ops")
	run(t, Config{Server: srv.Addr, Channels: []string{"#ops"}}, func(tune *timing) { tune.regain = time.Hour })
	alice.ExpectJoin("robo_", "#ops")
	holder.Close()
	alice.ExpectJoin("robo", "#ops")
}

func TestServerRestart(t *testing.T) {
	t.Parallel()
	srv, _, b := meet(t, Config{})
	srv.Restart(t)
	b.logged("IRC connection lost", "retry_in")
	alice := srv.Dial(t, "alice")
	alice.Join("#ops")
	alice.ExpectJoin("robo", "#ops")
	alice.Say("#ops", "robo: back?")
	e := b.expect()
	b.say(target(t, e), "yes")
	if got := alice.ExpectNotice("robo", "#ops"); got != "alice: yes" {
		t.Errorf("got %q", got)
	}
}

func TestKick(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	alice.Raw("KICK #ops robo :out\x02side")
	alice.Expect(" KICK #ops robo")
	b.logged("out of a channel", `how="kicked by alice"`, "reason=outside")
	if _, err := b.Send(context.Background(), sdk.Target{ConversationID: "#ops"}, "x"); err != nil && !isRetry(err) {
		t.Errorf("while kicked: got %v, want Retry", err) // nil if it was back already
	}
	alice.ExpectJoin("robo", "#ops")
	alice.Say("#ops", "robo: sorry")
	b.expect()
}

func TestJoinRefused(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	alice := srv.Dial(t, "alice")
	for _, ch := range []string{"#invite", "#locked", "#open"} {
		alice.Join(ch)
	}
	alice.Raw("MODE #invite +i")
	alice.Raw("MODE #locked +k secret")
	alice.Sync()
	b := run(t, Config{Server: srv.Addr, Channels: []string{"#invite", "#open", "#locked secret"}})
	alice.ExpectJoin("robo", "#locked")
	alice.ExpectJoin("robo", "#open")
	b.logged("channel not joined", "channel=#invite", "code=473")
	if _, err := b.Send(context.Background(), sdk.Target{ConversationID: "#invite"}, "x"); !isRetry(err) {
		t.Errorf("got %v, want Retry", err)
	}
	alice.Raw("MODE #invite -i")
	alice.ExpectJoin("robo", "#invite")
	if strings.Contains(b.log.String(), "secret") {
		t.Error("the log shows a channel's key")
	}
}

// TestForced: a channel that the operator did not name is left again.
func TestForced(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{
		Modules: []string{"sajoin"},
		Extra:   `<class name="all" commands="*" usermodes="*" chanmodes="*" privs="*"><type name="net" classes="all"><oper name="root" password="pw" host="*@*" type="net">` + "\n",
	})
	alice := srv.Dial(t, "alice")
	alice.Join("#other")
	alice.Raw("OPER root pw")
	alice.Expect(" 381 ")
	b := run(t, Config{Server: srv.Addr, Channels: []string{"#ops"}})
	b.logged("msg=joined", "#ops")
	alice.Raw("SAJOIN robo #other")
	alice.Expect(":robo!", " PART ", "#other")

	alice.Raw("KILL robo :begone")
	b.logged("IRC connection lost", "begone")
	alice.Join("#ops")
	alice.ExpectJoin("robo", "#ops")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{Password: "sesame"})
	on := true
	good := run(t, Config{Server: srv.TLSAddr, TLS: &on, TLSCA: srv.CAFile, Password: "sesame"})
	good.logged("connected to IRC", "tls=true")
	strict := run(t, Config{Server: srv.TLSAddr, TLS: &on, Password: "sesame"})
	strict.logged("IRC connection lost", "certificate")
	loose := run(t, Config{Server: srv.TLSAddr, TLS: &on, TLSInsecure: true, Nick: "loose", Password: "sesame"})
	loose.logged("not verified")
	loose.logged("connected to IRC")
	wrong := run(t, Config{Server: srv.Addr, Password: "sesamo"})
	wrong.logged("IRC connection lost", "register")
	wrong.platform(wire.PlatformRefused)
	good.platform(wire.PlatformConnected)
	strict.platform(wire.PlatformReconnecting)
	for _, b := range []*bench{good, strict, loose, wrong} {
		if strings.Contains(b.log.String(), "sesam") {
			t.Error("the log shows the password")
		}
	}
}

// TestDeadServer: a server that neither speaks nor closes is given up.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	fake := listen(t, func(c *fakeConn) {
		c.expect("USER")
		c.write(":fake 001 robo :hi", ":fake 422 robo :no motd")
		c.expect("PING alive")
		c.write(":fake PONG fake alive")
		c.expect("PING alive")
		c.expect("\x00") // until the connection ends
	})
	b := run(t, Config{Server: fake}, func(tune *timing) {
		tune.pingAfter, tune.pongWithin = 100*time.Millisecond, 200*time.Millisecond
	})
	b.logged("IRC connection lost", "silent")
}

func TestStopSaysGoodbye(t *testing.T) {
	t.Parallel()
	_, alice, b := meet(t, Config{})
	b.stop()
	alice.Expect(":robo!", " QUIT ", "Pontoon stops")
	if _, err := b.Send(context.Background(), sdk.Target{ConversationID: "#ops"}, "x"); !isRetry(err) {
		t.Errorf("after Run: got %v, want Retry", err)
	}
}

// TestStopFinishesAnswer: an answer under way when Run is to end is not cut.
func TestStopFinishesAnswer(t *testing.T) {
	t.Parallel()
	srv := irctest.Start(t, irctest.Options{})
	alice := srv.Dial(t, "alice")
	b := run(t, Config{Server: srv.Addr, Flood: Flood{Burst: 1, Interval: Duration(20 * time.Millisecond)}}, func(tune *timing) { tune.finish = patience })
	b.logged("connected to IRC")
	sent := make(chan error, 1)
	go func() {
		_, err := b.Send(context.Background(), sdk.Target{ConversationID: "alice"}, numbered(20))
		sent <- err
	}()
	alice.ExpectNotice("robo", "alice")
	b.stop()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	alice.Expect(" NOTICE alice :20")
}

func isRetry(err error) bool {
	var retry *sdk.RetryError
	return errors.As(err, &retry)
}

// fakeConn is the server's side of one connection in a test that InspIRCd
// can't serve: it has no services, so no SASL and no accounts, and it never hangs.
type fakeConn struct {
	net.Conn
	lines *bufio.Scanner
}

// expect skips to the next line that starts with prefix; false = the connection ended.
func (c *fakeConn) expect(prefix string) (line string, ok bool) {
	for c.lines.Scan() {
		if strings.HasPrefix(c.lines.Text(), prefix) {
			return c.lines.Text(), true
		}
	}
	return "", false
}

func (c *fakeConn) write(lines ...string) {
	for _, line := range lines {
		_, _ = c.Write([]byte(line + "\r\n")) // a lost connection shows at expect
	}
}

// listen serves every connection with handle until t ends, and returns its address.
func listen(t *testing.T, handle func(*fakeConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			handle(&fakeConn{conn, bufio.NewScanner(conn)})
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}
