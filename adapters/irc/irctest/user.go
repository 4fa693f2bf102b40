package irctest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Wait is how long Expect waits for a line before it fails the test.
const Wait = 10 * time.Second

// User is one person on IRC, on a bare socket: what it is sent is seen exactly
// as the server wrote it. Its methods fail the test they were dialled for, and
// belong to that test's goroutine.
type User struct {
	Nick string

	t     testing.TB
	conn  net.Conn
	lines chan string // every line but PING, without CRLF; closed with the connection
	quit  chan struct{}
	once  sync.Once
	done  chan struct{}
}

// Dial connects a user and returns when the server has welcomed it. It leaves when t ends.
func (s *Server) Dial(t testing.TB, nick string) *User {
	t.Helper()
	return Dial(t, s.Addr, nick)
}

// Dial is Server.Dial for any plain-text IRC server.
func Dial(t testing.TB, addr, nick string) *User {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatalf("irctest: dial %s as %s: %v", addr, nick, err)
	}
	u := &User{Nick: nick, t: t, conn: conn, lines: make(chan string, 4096), quit: make(chan struct{}), done: make(chan struct{})}
	go u.read()
	t.Cleanup(u.Close)
	u.Raw("NICK " + nick)
	u.Raw("USER " + nick + " 0 * :" + nick)
	u.Expect(" 001 ")
	return u
}

// read passes lines on and answers the server's pings, until Close or the server's end.
func (u *User) read() {
	defer close(u.done)
	defer close(u.lines)
	r := bufio.NewReaderSize(u.conn, 16384)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "PING "); ok {
			_, _ = fmt.Fprintf(u.conn, "PONG %s\r\n", rest) // a broken socket ends the loop above
			continue
		}
		select {
		case u.lines <- line:
		case <-u.quit:
			return
		}
	}
}

// Close drops the connection at once.
func (u *User) Close() {
	u.once.Do(func() {
		close(u.quit)
		_ = u.conn.Close()
	})
	<-u.done
}

// Raw writes one line, which may hold any bytes.
func (u *User) Raw(line string) {
	u.t.Helper()
	if _, err := u.conn.Write([]byte(line + "\r\n")); err != nil {
		u.t.Fatalf("irctest: %s writes: %v", u.Nick, err)
	}
}

// Join enters a channel and returns when the server has listed its members.
func (u *User) Join(channel string) {
	u.t.Helper()
	u.Raw("JOIN " + channel)
	name, _, _ := strings.Cut(channel, " ")
	u.Expect(" 366 ", name)
}

// Say sends a PRIVMSG to a channel or a nick.
func (u *User) Say(target, text string) {
	u.t.Helper()
	u.Raw("PRIVMSG " + target + " :" + text)
}

// Notice sends a NOTICE to a channel or a nick.
func (u *User) Notice(target, text string) {
	u.t.Helper()
	u.Raw("NOTICE " + target + " :" + text)
}

// Action sends a "/me".
func (u *User) Action(target, text string) {
	u.t.Helper()
	u.Say(target, "\x01ACTION "+text+"\x01")
}

// Expect skips to the next line that holds all of parts and returns it. After
// Wait the test fails and shows what came instead.
func (u *User) Expect(parts ...string) string {
	u.t.Helper()
	var seen []string
	timeout := time.NewTimer(Wait)
	defer timeout.Stop()
	for {
		select {
		case line, ok := <-u.lines:
			if !ok {
				u.t.Fatalf("irctest: %s: connection closed while waiting for %q; got\n%s", u.Nick, parts, strings.Join(seen, "\n"))
			}
			if holdsAll(line, parts) {
				return line
			}
			seen = append(seen, line)
		case <-timeout.C:
			u.t.Fatalf("irctest: %s: no line with %q within %s; got\n%s", u.Nick, parts, Wait, strings.Join(seen, "\n"))
		}
	}
}

// ExpectNotice is Expect for a NOTICE of from to target and returns its text.
func (u *User) ExpectNotice(from, target string) string {
	u.t.Helper()
	line := u.Expect(":"+from+"!", " NOTICE "+target+" :")
	_, text, _ := strings.Cut(line, " NOTICE "+target+" :")
	return text
}

// ExpectJoin waits until nick has joined channel, be it by a JOIN that is yet
// to come or by one that came before.
func (u *User) ExpectJoin(nick, channel string) {
	u.t.Helper()
	deadline := time.Now().Add(Wait)
	for {
		u.Raw("NAMES " + channel)
		if u.named(nick, channel) {
			return
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("irctest: %s is not in %s after %s", nick, channel, Wait)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// ExpectGone is the opposite of ExpectJoin.
func (u *User) ExpectGone(nick, channel string) {
	u.t.Helper()
	deadline := time.Now().Add(Wait)
	for {
		u.Raw("NAMES " + channel)
		if !u.named(nick, channel) {
			return
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("irctest: %s is still in %s after %s", nick, channel, Wait)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// named reads one answer to NAMES and says whether it held nick.
func (u *User) named(nick, channel string) bool {
	u.t.Helper()
	found := false
	for {
		line := u.Expect(" " + channel)
		switch {
		case strings.Contains(line, " 353 "):
			_, list, _ := strings.Cut(line, " :")
			for _, n := range strings.Fields(list) {
				found = found || strings.TrimLeft(n, "~&@%+") == nick
			}
		case strings.Contains(line, " 366 "):
			return found
		}
	}
}

// Sync returns the lines that the server sent before it answered a ping just
// now. Nothing that the server had taken by then comes later.
func (u *User) Sync() []string {
	u.t.Helper()
	token := fmt.Sprintf("sync%d", time.Now().UnixNano())
	u.Raw("PING " + token)
	var seen []string
	timeout := time.NewTimer(Wait)
	defer timeout.Stop()
	for {
		select {
		case line, ok := <-u.lines:
			if !ok {
				u.t.Fatalf("irctest: %s: connection closed", u.Nick)
			}
			if strings.Contains(line, token) {
				return seen
			}
			seen = append(seen, line)
		case <-timeout.C:
			u.t.Fatalf("irctest: %s: the server does not answer a ping", u.Nick)
		}
	}
}

func holdsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}
