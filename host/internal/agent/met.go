package agent

import (
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// met is a line of the history of connections about the link.
func (l *link) met(what ledger.Meeting) ledger.Connection {
	c := ledger.Connection{Owner: ledger.OfAgent(0), What: what, Remote: l.from.Remote, Credential: l.key}
	if l.desk != nil {
		c.Owner.Key = l.desk.row.Key
	}
	return c
}

// noteKey notes that a key opened nothing; err is the door's.
func (l *link) noteKey(err error) {
	c := l.met(ledger.Turned)
	c.Code = int(wire.CloseRefused)
	l.host.Note(auth.Refused(c, "key", err))
}

// noteEnd notes why an agent left that was let in.
func (l *link) noteEnd(entered bool, err error) {
	if !entered {
		return
	}
	c := l.met(ledger.Left)
	if code, why := l.queue.Closed(); code != 0 {
		c.Code, c.Why = int(code), why
	} else if err != nil {
		c.Why = err.Error()
	}
	l.host.Note(c)
}
