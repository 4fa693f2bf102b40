package bridge

import (
	"errors"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// met is a line of the history of connections about the session.
func (n *Session) met(what ledger.Meeting) ledger.Connection {
	of := n.place.channel
	if n.from.Channel != nil {
		of = n.from.Channel.Key
	}
	return ledger.Connection{Owner: ledger.OfChannel(of), What: what, Remote: n.from.Remote, Credential: n.place.token}
}

// turned notes that the adapter was not let in.
func (n *Session) turned(why string) {
	c := n.met(ledger.Turned)
	c.Code, c.Why = int(wire.CloseRefused), why
	n.slots.Note(c)
}

// noteToken is turned for a token that opens nothing; err is the gate's.
func (n *Session) noteToken(err error) {
	c := n.met(ledger.Turned)
	c.Code = int(wire.CloseRefused)
	n.slots.Note(auth.Refused(c, "token", err))
}

// noteEnd notes why an adapter left, or that it never said who it is. code is the one with
// which the host closed, for the reason why; 0 = it did not.
func (n *Session) noteEnd(err error, code wire.CloseCode, why string) {
	if n.inbox == nil {
		if errors.Is(err, errLate) {
			n.turned(errLate.Error())
		}
		return
	}
	c := n.met(ledger.Left)
	if code != 0 {
		c.Code, c.Why = int(code), why
	} else if err != nil {
		c.Why = err.Error()
	}
	n.slots.Note(c)
}
