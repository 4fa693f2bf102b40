package bridle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	agents "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/bridle"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// refusal is why a message is not taken, as its sender is told.
type refusal struct{ code, why string }

func (r refusal) Error() string { return r.why }

// errNoAgent is the error of a message for an agent that there is not.
var errNoAgent = errors.New("no agent has this name")

// question is one message of a user from when it is given to the hub to when
// nobody works on it any more.
type question struct {
	browser *browser   // that sent it; nil = it came by HTTP
	stored  chan error // holds one: how its commit went; nil = nobody waits
	answer  chan reply // holds one: its first answer, or why there will be none; nil = nobody waits

	away bool // its agent was not there

	ref string
	id  ledger.MessageID // guarded by Front.mu
}

// settle tells that the message is stored (nil) or why not.
func (q *question) settle(err error) {
	if q.stored != nil {
		select {
		case q.stored <- err:
		default: // told before
		}
	}
}

// reply is the first answer; err is why there is none. Neither: it failed, or
// the host stops.
type reply struct {
	said *said
	err  error
}

// reply gives whoever waits the first answer.
func (q *question) reply(r reply) {
	if q.answer != nil {
		select {
		case q.answer <- r:
		default: // it has one
		}
	}
}

// ask gives a user's message to the hub, which tells q what becomes of it. The
// error is a refusal: nothing was stored.
func (f *Front) ask(u *user, agent string, b beside, in model.Message, q *question) error {
	known, connected := f.present(agent)
	if !known {
		return errNoAgent
	}
	q.away = !connected
	in.Side, in.Rest, in.AgentID = model.Browser, nil, nil // unknown fields don't count
	m, err := in.Canonical()
	if errors.Is(err, message.ErrNoContent) {
		return refusal{codeEmpty, "found neither text nor parts: the message was dropped"}
	}
	if err == nil {
		err = f.admitFiles(m.Parts)
	}
	if err != nil {
		return refusal{codeBad, err.Error()}
	}
	if len(b.capabilities) > 0 {
		m.Meta = with(m.Meta, agents.MetaCapabilities, b.capabilities)
	}
	if len(b.prompt) > 0 {
		m.Meta = with(m.Meta, agents.MetaPrompt, b.prompt)
	}
	q.ref = rand.Text()
	f.mu.Lock()
	inbox := f.inbox
	if inbox != nil {
		f.asked[q.ref] = q
	}
	f.mu.Unlock()
	if inbox == nil {
		return refusal{codeDisabled, "the channel is disabled, or the host is stopping"}
	}
	if ok, most := inbox.Allow(time.Now()); !ok {
		f.forget(q)
		return refusal{codeRate, fmt.Sprintf("the channel takes %d messages a second: send it again later", most)}
	}
	f.heard.Store(time.Now().UnixMilli())
	key := conversation(agent, u.client)
	inbox.SayTo(&wire.Inbound{
		Routing: wire.Routing{SessionKey: Kind + ":" + key, ConversationID: key}, UserID: u.client, UserName: u.name, MessageID: q.ref,
	}, m, agent)
	return nil
}

func with(m message.Meta, key string, raw []byte) message.Meta {
	if m == nil {
		m = message.Meta{}
	}
	m[key] = raw
	return m
}

func (f *Front) forget(q *question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, q.ref)
	if f.ids[q.id] == q {
		delete(f.ids, q.id)
	}
}

// admitFiles refuses files of this host that are not this channel's.
func (f *Front) admitFiles(parts []message.Part) error {
	f.mu.Lock()
	owner := f.channel.ID
	f.mu.Unlock()
	for i, p := range parts {
		address := p.Address()
		if address == "" {
			continue
		}
		_, err := f.Attachments.Admit(owner, address)
		if err != nil && !errors.Is(err, attach.ErrForeign) { // somebody else's, as Bridle's files are
			return fmt.Errorf("parts[%d].url: %w", i, err)
		}
	}
	return nil
}

// absentAgent answers for an agent that there is not, or that is away.
func absentAgent() *said {
	return &said{Type: "message", Text: agents.Away, Parts: []model.Part{model.Text(agents.Away)}, TS: time.Now().UnixMilli()}
}
