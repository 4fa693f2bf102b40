package irc

import (
	"strings"

	"github.com/ergochat/irc-go/ircmsg"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// replyCtx is what an answer needs to find its way, as Event.ReplyCtx.
type replyCtx struct {
	Target string `json:"target"` // channel, or nick of a direct message
	Nick   string `json:"nick"`   // who asked
}

// message makes an event of a PRIVMSG that is meant for us; all others it drops.
func (l *link) message(m *ircmsg.Message) {
	from, err := m.NUH()
	if err != nil || len(m.Params) != 2 || !validNick(from.Name) || l.names.equal(from.Name, l.nick) {
		return // a server's word, our own echo, or nobody's
	}
	if _, ref := m.GetTag("batch"); l.replays[ref] {
		return
	}
	text, action := strings.CutPrefix(m.Params[1], "\x01ACTION ")
	if !action && strings.HasPrefix(text, "\x01") {
		return // other CTCP
	}
	text = strings.TrimSpace(plain(text))

	target := m.Params[0]
	inChannel := isChannel(target, l.types)
	switch {
	case inChannel && !l.joined[l.names.fold(target)]:
		return
	case !inChannel && !l.names.equal(target, l.nick):
		return // to the operators of a channel, or to all users of a server
	}
	rest, called := addressed(text, l.nick, l.names)
	if inChannel && l.c.set.Trigger == TriggerMention && !called {
		return
	}
	if action {
		text = "* " + from.Name + " " + text
	} else {
		text = rest
	}
	if text == "" {
		return
	}
	if !inChannel {
		target = from.Name
	}
	l.c.enqueue(sdk.Event{
		SessionKey:     "irc:" + l.names.fold(target) + ":" + l.names.fold(from.Name),
		ConversationID: l.names.fold(target),
		UserID:         l.identity(m, from),
		UserName:       from.Name,
		Text:           text,
		ReplyCtx:       replyCtx{Target: target, Nick: from.Name},
	})
}

// identity is the sender's account if the server vouches for one, else
// user@host. An account is never mistaken for the latter: it has no "@".
func (l *link) identity(m *ircmsg.Message, from ircmsg.NUH) string {
	if _, account := m.GetTag("account"); account != "" && account != "*" && !strings.ContainsAny(account, "@!") {
		return l.names.fold(account)
	}
	return from.User + "@" + from.Host
}
