package irc

import (
	"fmt"
	"strings"
	"time"

	"github.com/ergochat/irc-go/ircmsg"
)

// handle takes one line of a registered connection; an error ends that.
func (l *link) handle(m *ircmsg.Message) error {
	switch m.Command {
	case "PING":
		return l.write("PONG", last(m))
	case "PONG":
		l.settle(last(m), nil)
	case "ERROR":
		return fmt.Errorf("the server closed the connection: %s", brief(last(m)))
	case "PRIVMSG":
		l.message(m)
	case "BATCH":
		l.batch(m)
	case "NICK":
		if l.isSelf(m) && len(m.Params) > 0 {
			l.setNick(m.Params[0])
			l.c.log.Info("our nick changed", "nick", m.Params[0])
			return nil
		}
		return l.vacated(m)
	case "QUIT":
		return l.vacated(m)
	case "JOIN", "PART", "KICK":
		return l.membership(m)
	case "005":
		l.supports(m)
	default:
		if isError(m.Command) {
			l.failure(m)
		}
	}
	return nil
}

func (l *link) isSelf(m *ircmsg.Message) bool { return l.names.equal(m.Nick(), l.nick) }

// vacated takes back the configured nick as soon as someone else gives it up.
func (l *link) vacated(m *ircmsg.Message) error {
	if l.names.equal(m.Nick(), l.c.set.Nick) && !l.names.equal(l.nick, l.c.set.Nick) {
		return l.reclaim(time.Now())
	}
	return nil
}

// batch notes which messages to come are a replay of old ones.
func (l *link) batch(m *ircmsg.Message) {
	if len(m.Params) == 0 || m.Params[0] == "" {
		return
	}
	ref := m.Params[0][1:]
	switch {
	case m.Params[0][0] == '-':
		delete(l.replays, ref)
	case len(m.Params) > 1 && (strings.Contains(m.Params[1], "history") || strings.Contains(m.Params[1], "playback")):
		l.replays[ref] = true
	}
}

// membership follows which channels we are in.
func (l *link) membership(m *ircmsg.Message) error {
	if len(m.Params) == 0 {
		return nil
	}
	name := m.Params[0]
	switch {
	case m.Command == "JOIN" && l.isSelf(m):
		j := l.joiningOf(name)
		if j == nil { // forced or forwarded
			l.c.log.Warn("leaving a channel that is not configured", "channel", name)
			return l.write("PART", name)
		}
		l.setJoined(name, true)
		j.delay = l.c.tune.rejoin
		l.c.log.Info("joined", "channel", name)
	case m.Command == "PART" && l.isSelf(m):
		l.left(name, "removed by "+brief(m.Nick()), last(m))
	case m.Command == "KICK" && len(m.Params) > 1 && l.names.equal(m.Params[1], l.nick):
		l.left(name, "kicked by "+brief(m.Nick()), last(m))
	}
	return nil
}

// left notes that we are out of a channel and when to come back.
func (l *link) left(name, how, reason string) {
	l.setJoined(name, false)
	j := l.joiningOf(name)
	if j == nil {
		return
	}
	j.due = time.Now().Add(j.delay)
	l.c.log.Warn("out of a channel", "channel", name, "how", how, "reason", brief(reason), "retry_in", j.delay)
	j.delay = min(2*j.delay, l.c.tune.rejoinMax)
}

func (l *link) joiningOf(name string) *joining {
	for i := range l.joins {
		if l.names.equal(l.joins[i].name, name) {
			return &l.joins[i]
		}
	}
	return nil
}

// isError says whether command is a numeric error reply.
func isError(command string) bool {
	return len(command) == 3 && (command[0] == '4' || command[0] == '5')
}

// failure takes an error reply: nick, what it is about, text. It belongs to an
// answer under way there, or to a JOIN.
func (l *link) failure(m *ircmsg.Message) {
	if len(m.Params) < 3 {
		l.c.log.Debug("error reply", "code", m.Command, "text", brief(last(m)))
		return
	}
	about, reason := m.Params[1], brief(last(m))
	if l.refuse(about, m.Command, reason) {
		return
	}
	if j := l.joiningOf(about); j != nil && !l.joined[l.names.fold(about)] {
		l.c.log.Warn("channel not joined", "channel", j.name, "code", m.Command, "reason", reason, "retry_in", time.Until(j.due).Round(time.Second))
		return
	}
	l.c.log.Debug("error reply", "code", m.Command, "about", brief(about), "text", reason)
}
