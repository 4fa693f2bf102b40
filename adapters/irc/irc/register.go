package irc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ergochat/irc-go/ircmsg"
	"github.com/ergochat/irc-go/ircutils"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// wanted are the IRCv3 capabilities that we ask for if they are offered: who
// is logged in, and which messages are a replay.
var wanted = []string{"account-tag", "batch"}

// errNoSASL ends a registration rather than go on without the account.
var errNoSASL = sdk.Refused(errors.New("the server does not offer SASL with this mechanism"))

// registration is the state between dial and the server's welcome.
type registration struct {
	*link
	offered  map[string]string // capability → value
	asked    int               // CAP REQ not yet answered
	loggedIn bool
	tries    int // nicks refused
}

// register introduces us and returns when the server has welcomed us and ended
// its message of the day: from there on its answers belong to serve.
func (l *link) register(ctx context.Context) error {
	r := &registration{link: l, offered: map[string]string{}}
	if err := r.hello(); err != nil {
		return err
	}
	timeout := time.NewTimer(l.c.tune.register)
	defer timeout.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("the server did not welcome us within %s", l.c.tune.register)
		case m, ok := <-l.in:
			if !ok {
				return l.readErr
			}
			l.heard = time.Now()
			if welcomed, err := r.handle(&m); welcomed || err != nil {
				return err
			}
		}
	}
}

func (r *registration) hello() error {
	set := r.c.set
	var lines [][]string
	if set.Password != "" {
		lines = append(lines, []string{"PASS", set.Password})
	}
	lines = append(lines, []string{"CAP", "LS", "302"}, []string{"NICK", set.Nick}, []string{"USER", set.User, "0", "*", set.RealName})
	for _, line := range lines {
		if err := r.write(line[0], line[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// handle takes one line; welcomed means that registration is complete.
func (r *registration) handle(m *ircmsg.Message) (welcomed bool, err error) {
	switch m.Command {
	case "PING":
		return false, r.write("PONG", last(m))
	case "ERROR":
		err := fmt.Errorf("the server closed the connection: %s", brief(last(m)))
		if turnedAway(last(m)) {
			err = sdk.Refused(err)
		}
		return false, err
	case "CAP":
		return false, r.capability(m)
	case "AUTHENTICATE":
		return false, r.authenticate(last(m))
	case "903":
		r.loggedIn = true
		return false, r.write("CAP", "END")
	case "902", "904", "905", "906", "908":
		return false, sdk.Refused(fmt.Errorf("SASL login as %q refused: %s (%s)", r.c.set.SASLUser, brief(last(m)), m.Command))
	case "432", "433", "436", "437":
		if r.nick != "" {
			return false, nil
		}
		r.tries++
		if r.tries > 12 {
			return false, fmt.Errorf("no nick like %q to be had: %s (%s)", r.c.set.Nick, brief(last(m)), m.Command)
		}
		return false, r.write("NICK", alternative(r.c.set.Nick, r.tries))
	case "463", "464", "465", "466":
		return false, sdk.Refused(fmt.Errorf("the server refused us: %s (%s)", brief(last(m)), m.Command))
	case "001":
		if r.c.set.SASLMechanism != "" && !r.loggedIn {
			return false, errNoSASL
		}
		if len(m.Params) > 0 {
			r.setNick(m.Params[0])
		}
	case "005":
		r.supports(m)
	case "NICK": // services may rename us at once
		if r.isSelf(m) && len(m.Params) > 0 {
			r.setNick(m.Params[0])
		}
	case "376", "422": // end of, or no, message of the day
		if r.nick == "" {
			return false, errors.New("the server ended its welcome without naming us")
		}
		if !r.names.equal(r.nick, r.c.set.Nick) {
			r.c.log.Warn("the configured nick is not to be had now", "nick", r.c.set.Nick, "instead", r.nick)
		}
		return true, nil
	}
	return false, nil
}

// capability follows CAP LS → REQ → ACK or NAK → AUTHENTICATE or END.
func (r *registration) capability(m *ircmsg.Message) error {
	if len(m.Params) < 2 || r.nick != "" {
		return nil
	}
	var list []string // a server without any may leave it out
	if len(m.Params) > 2 {
		list = strings.Fields(last(m))
	}
	switch strings.ToUpper(m.Params[1]) {
	case "LS":
		for _, entry := range list {
			name, value, _ := strings.Cut(entry, "=")
			r.offered[name] = value
		}
		if len(m.Params) > 3 && m.Params[2] == "*" { // more to come
			return nil
		}
		return r.request()
	case "ACK", "NAK":
		r.asked--
		if slices.Contains(list, "sasl") {
			if strings.EqualFold(m.Params[1], "NAK") {
				return errNoSASL
			}
			return r.write("AUTHENTICATE", strings.ToUpper(r.c.set.SASLMechanism))
		}
		if r.asked == 0 && r.c.set.SASLMechanism == "" {
			return r.write("CAP", "END")
		}
	}
	return nil
}

// request asks for each capability by itself: a server refuses a list as a whole.
func (r *registration) request() error {
	ask := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		_, ok := r.offered[name]
		return !ok
	})
	if mech := r.c.set.SASLMechanism; mech != "" {
		value, ok := r.offered["sasl"]
		if !ok || value != "" && !slices.Contains(strings.Split(value, ","), strings.ToUpper(mech)) {
			return errNoSASL
		}
		ask = append(ask, "sasl")
	}
	r.asked = len(ask)
	for _, name := range ask {
		if err := r.write("CAP", "REQ", name); err != nil {
			return err
		}
	}
	if len(ask) == 0 {
		return r.write("CAP", "END")
	}
	return nil
}

// authenticate answers the server's "+" with our credentials.
func (r *registration) authenticate(challenge string) error {
	if challenge != "+" || r.c.set.SASLMechanism == "" {
		return nil
	}
	var answer []byte // external: the certificate says it all, or sasl_user which of its accounts
	switch r.c.set.SASLMechanism {
	case saslPlain:
		answer = []byte("\x00" + r.c.set.SASLUser + "\x00" + r.c.set.SASLPassword)
	case saslExternal:
		answer = []byte(r.c.set.SASLUser)
	}
	for _, chunk := range ircutils.EncodeSASLResponse(answer) {
		if err := r.write("AUTHENTICATE", chunk); err != nil {
			return err
		}
	}
	return nil
}

// alternative is the n-th nick to try after the configured one: nick_, nick2,
// nick3…; later ones are short, for servers that cut at nine characters.
func alternative(nick string, n int) string {
	switch {
	case n == 1:
		return nick + "_"
	case n <= 4:
		return nick + strconv.Itoa(n)
	}
	r := []rune(nick)
	return string(r[:min(len(r), 7)]) + strconv.Itoa(n)
}

// refusals are what servers say that let a client in no more, whenever it tries: some
// have no numeric for a wrong password, or send none.
var refusals = []string{"password", "denied", "banned", "-lined", "not authorized", "unauthorized"}

// turnedAway reports whether an ERROR during registration is one that no other try mends.
func turnedAway(reason string) bool {
	reason = strings.ToLower(reason)
	return slices.ContainsFunc(refusals, func(word string) bool { return strings.Contains(reason, word) })
}

// last is a message's last parameter, "" if it has none.
func last(m *ircmsg.Message) string {
	if len(m.Params) == 0 {
		return ""
	}
	return m.Params[len(m.Params)-1]
}
