package irc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ergochat/irc-go/ircmsg"
	"github.com/ergochat/irc-go/ircreader"
	"golang.org/x/time/rate"
)

// maxLine is an IRC line in bytes with its CRLF, without message tags (RFC 2812, 2.3).
const maxLine = 512

// link is one connection. The goroutine that calls register and then serve
// owns it; what mu guards is written by that goroutine alone, but read by Send
// too. close ends it for everyone.
type link struct {
	c    *client
	conn net.Conn

	in      chan ircmsg.Message // from the reader; closed at the connection's end
	readErr error               // why; valid once in is closed
	done    chan struct{}       // closed by close
	reader  sync.WaitGroup
	limit   *rate.Limiter // what we say, beside the protocol's own lines

	writing sync.Mutex // held for one line
	broken  error      // guarded by writing: why no more can be written

	mu      sync.Mutex
	nick    string // "" until the server has welcomed us
	names   casemap
	types   string // first characters of channel names
	userLen int    // longest user and host part that others see before our lines
	hostLen int
	joined  map[string]bool // by folded name
	waiting map[string]*wait
	tokens  uint64 // count of waits, for their tokens
	queued  int    // lines admitted, not yet at the flood limit

	// The owner's alone.
	botMode string    // user mode letter that marks a bot, if the server has one
	heard   time.Time // last line from the server
	pinged  bool      // and since then we have asked
	regain  time.Time // next try for the configured nick
	joins   []joining
	replays map[string]bool // open batches of old messages
}

// joining is when a configured channel that we are not in is tried again.
type joining struct {
	channel
	due   time.Time
	delay time.Duration // before the try after that
}

func dial(ctx context.Context, c *client) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, c.tune.dial)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.set.Server)
	if err != nil {
		return nil, err
	}
	if c.set.tls != nil {
		t := tls.Client(conn, c.set.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("TLS: %w", err), conn.Close())
		}
		conn = t
	}
	l := &link{
		c:       c,
		conn:    conn,
		in:      make(chan ircmsg.Message),
		done:    make(chan struct{}),
		limit:   rate.NewLimiter(rate.Every(c.set.interval), c.set.Flood.Burst),
		types:   defaultChannelTypes,
		userLen: 12,
		hostLen: 64,
		joined:  map[string]bool{},
		waiting: map[string]*wait{},
		heard:   time.Now(),
		replays: map[string]bool{},
	}
	for _, ch := range c.set.channels {
		l.joins = append(l.joins, joining{channel: ch, delay: c.tune.rejoin})
	}
	l.reader.Go(l.read)
	return l, nil
}

// close ends the connection and returns when its reader has. The owner calls it, once.
func (l *link) close() {
	close(l.done)
	_ = l.conn.Close() // its loss is why we are here
	l.reader.Wait()
}

// read parses lines until the connection ends.
func (l *link) read() {
	defer close(l.in)
	var r ircreader.Reader
	r.Initialize(l.conn, maxLine, ircmsg.MaxlenTags+8*maxLine)
	for {
		raw, err := r.ReadLine()
		if err != nil {
			l.readErr = err
			return
		}
		m, err := ircmsg.ParseLine(decode(raw))
		if err != nil && !errors.Is(err, ircmsg.ErrorBodyTooLong) {
			l.c.log.Debug("line from the server not understood", "err", err)
			continue
		}
		select {
		case l.in <- m:
		case <-l.done:
			return
		}
	}
}

// write sends one command. It is the only way out to the socket, and refuses
// what would be more than one line or longer than one.
func (l *link) write(command string, params ...string) error {
	m := ircmsg.MakeMessage(nil, "", command, params...)
	line, err := m.LineBytesStrict(true, maxLine)
	if err != nil {
		return fmt.Errorf("build %s: %w", command, err)
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.c.tune.write)); err != nil {
		return err
	}
	if _, err = l.conn.Write(line); err != nil {
		// Half a line may be out, so nothing may follow it. The reader gets a
		// moment for the server's last words; its end is the connection's.
		l.broken = fmt.Errorf("write %s: %w", command, err)
		_ = l.conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	return err
}

// serve keeps a registered connection until it is lost or ctx ends.
func (l *link) serve(ctx context.Context) error {
	tick := time.NewTicker(l.c.tune.upkeep)
	defer tick.Stop()
	l.regain = time.Now().Add(l.c.tune.regain)
	if l.botMode != "" { // so that other bots, and WHOIS, know
		if err := l.write("MODE", l.nick, "+"+l.botMode); err != nil {
			return err
		}
	}
	if err := l.upkeep(time.Now()); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			l.quit()
			return ctx.Err()
		case now := <-tick.C:
			if err := l.upkeep(now); err != nil {
				return err
			}
		case m, ok := <-l.in:
			if !ok {
				return l.readErr
			}
			l.heard, l.pinged = time.Now(), false
			if err := l.handle(&m); err != nil {
				return err
			}
		}
	}
}

// quit lets answers under way finish, says goodbye and gives the server a
// second to close, so that others see why we left.
func (l *link) quit() {
	finish := time.NewTimer(l.c.tune.finish)
	defer finish.Stop()
	for l.speaking() {
		select {
		case m, ok := <-l.in:
			if !ok || m.Command != "PRIVMSG" && l.handle(&m) != nil {
				return
			}
		case <-time.After(50 * time.Millisecond): // a caller may have given up
		case <-finish.C:
			l.c.log.Warn("stopped in the middle of an answer")
			l.goodbye()
			return
		}
	}
	l.goodbye()
}

func (l *link) goodbye() {
	if l.write("QUIT", "Pontoon stops") != nil {
		return
	}
	timeout := time.NewTimer(time.Second)
	defer timeout.Stop()
	for {
		select {
		case _, ok := <-l.in:
			if !ok {
				return
			}
		case <-timeout.C:
			return
		}
	}
}

// upkeep does what is due: ask a silent server, get our nick back, join.
func (l *link) upkeep(now time.Time) error {
	silent := now.Sub(l.heard)
	if silent > l.c.tune.pingAfter+l.c.tune.pongWithin {
		return fmt.Errorf("the server has been silent for %s", silent.Round(time.Millisecond))
	}
	if silent > l.c.tune.pingAfter && !l.pinged {
		l.pinged = true
		if err := l.write("PING", "alive"); err != nil {
			return err
		}
	}
	if l.nick != l.c.set.Nick && !now.Before(l.regain) {
		if err := l.reclaim(now); err != nil {
			return err
		}
	}
	return l.joinDue(now)
}

// reclaim asks for the configured nick; 433 says that it is still taken.
func (l *link) reclaim(now time.Time) error {
	l.regain = now.Add(l.c.tune.regain)
	return l.write("NICK", l.c.set.Nick)
}

// joinDue sends the JOINs whose time has come, some channels to a line.
func (l *link) joinDue(now time.Time) error {
	const perLine = 10 // servers cap the targets of one JOIN, at 10 or 20
	var keyed, open []channel
	for i := range l.joins {
		j := &l.joins[i]
		if l.joined[l.names.fold(j.name)] || now.Before(j.due) {
			continue
		}
		j.due = now.Add(j.delay) // also if no answer comes
		j.delay = min(2*j.delay, l.c.tune.rejoinMax)
		if j.key != "" {
			keyed = append(keyed, j.channel)
		} else {
			open = append(open, j.channel)
		}
	}
	// Keys count from the first channel on, so the channels with keys go first.
	due := append(keyed, open...)
	for len(due) > 0 {
		var names, keys []string
		size := 0
		for len(due) > 0 && len(names) < perLine {
			ch := due[0]
			size += len(ch.name) + len(ch.key) + 2
			if len(names) > 0 && size > 400 {
				break
			}
			names = append(names, ch.name)
			if ch.key != "" {
				keys = append(keys, ch.key)
			}
			due = due[1:]
		}
		params := []string{strings.Join(names, ",")}
		if len(keys) > 0 {
			params = append(params, strings.Join(keys, ","))
		}
		if err := l.write("JOIN", params...); err != nil {
			return err
		}
	}
	return nil
}

// self is our nick now.
func (l *link) self() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nick
}

func (l *link) setNick(nick string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nick = nick
}

// setJoined notes whether we are in a channel.
func (l *link) setJoined(name string, in bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in {
		l.joined[l.names.fold(name)] = true
	} else {
		delete(l.joined, l.names.fold(name))
	}
}

// supports reads RPL_ISUPPORT (005): nick, TOKEN[=value]…, text.
func (l *link) supports(m *ircmsg.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range m.Params[min(1, len(m.Params)):] {
		name, value, _ := strings.Cut(p, "=")
		switch name {
		case "CASEMAPPING":
			l.names = casemap(strings.ToLower(value))
		case "CHANTYPES":
			if value != "" {
				l.types = value
			}
		case "BOT":
			if len(value) == 1 {
				l.botMode = value
			}
		case "HOSTLEN":
			l.hostLen = lengthOr(value, l.hostLen)
		case "USERLEN":
			l.userLen = lengthOr(value, l.userLen) + 1 // "~" of an unchecked name
		}
	}
}

func lengthOr(s string, fallback int) int {
	if n, err := strconv.Atoi(s); err == nil && 0 < n && n <= 128 {
		return n
	}
	return fallback
}

// room is how many bytes of text fit into one NOTICE to target, after the
// ":nick!user@host NOTICE target :" that others get to see. Hosts may change
// without our knowing, so their longest form counts.
func (l *link) room(target string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maxLine - len("\r\n") - len(":!@ NOTICE  :") - len(l.nick) - l.userLen - l.hostLen - len(target)
}
