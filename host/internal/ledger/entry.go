package ledger

import (
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Entry is a message as it was kept.
type Entry struct {
	Row
	Channel        int64
	ConversationID int64
	Conversation   string // the effective conversation_id
	Origin         Origin
	Lost           error     // why Origin is not what was stored; nil = it is
	SettledAt      time.Time // when its state last changed; zero = never since it was committed
}

// EditHandle is what the platform knows the message by, for who changes it: what
// the adapter said when it took it, else its metadata, else its platform id; ""
// if none is known.
func (e *Entry) EditHandle() string {
	if e.Handle != "" {
		return e.Handle
	}
	if h := e.Metadata().String(message.MetaPreviewHandle); h != "" {
		return h
	}
	return e.PlatformID
}

// Making reports that the message is still being made.
func (e *Entry) Making() bool {
	return e.Status == message.StatusPending || e.Status == message.StatusStreaming
}

// Metadata is the message's metadata. An answer to a run of a front end has its
// own id among them, which is known only once it is stored.
func (e *Entry) Metadata() message.Meta {
	meta, _, _ := e.ReadMeta()
	return meta
}

// ReadMeta is Metadata, with what message.ReadMeta says of it.
func (e *Entry) ReadMeta() (meta message.Meta, odd map[string]string, err error) {
	meta, odd, err = message.ReadMeta(e.Meta)
	if _, ok := meta[message.MetaRunID]; ok && e.Direction == Out {
		meta = meta.With(message.MetaMessageID, e.ID.String())
	}
	return meta, odd, err
}

// Waiting is a queued message, without what it says.
type Waiting struct {
	ID           MessageID
	Conversation string
	Frame, Tries int
}

// OpenMessage is an inbound message that was committed but not handled.
type OpenMessage struct {
	Entry
	Listed bool // as one that waits for its agent, or was replayed; see Settlement
	Told   bool // the user was told that it waits
}
