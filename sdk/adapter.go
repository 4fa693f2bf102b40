// Package sdk is the Go SDK for adapters: implement Adapter, call Main, and the
// program bridges one platform to a Pontoon host.
//
// Capabilities follow from the optional interfaces that the adapter implements
// (Cards, Buttons, Media, Typer, Editor, Rich, Streamer, Profiler); the SDK looks
// once and declares them. What an adapter can't show, the host degrades before it
// is sent.
//
// The SDK asks for protocol 1.1 and goes on with 1.0 where the host speaks no
// more. Under 1.1 nothing is lost in either direction: Host.Deliver returns nil
// when the event is on the host's disk, and what Send returned is the host's
// acknowledgement.
package sdk

import (
	"context"
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Adapter is one platform.
//
// Both may rely on what Setup has made, if the adapter has that: see Setuper. One that
// has to log in or to open something first should, since Send may be called as soon as
// the host knows the adapter, before Run has come to anything.
//
// Run delivers the platform's events to h until ctx ends, then returns nil. It
// starts once the host has accepted the adapter and keeps running while the
// connection is lost and found again. An error before ctx ends restarts it after
// a back-off; an early nil, or Refused, ends the adapter.
//
// Send puts text on the platform. It is never called concurrently within one
// conversation, but is for different ones, and may be called from before Run
// connects until after it returned. It should return within 60 s: its ctx ends
// after 100 s, if the host waits for an acknowledgement, and when the adapter must
// stop without having finished. An error of Send says what became of the message:
// Retry, Refused, or any other error for "outcome unknown".
type Adapter interface {
	Run(ctx context.Context, h *Host) error
	Send(ctx context.Context, to Target, text string) (Receipt, error)
}

// Cards is implemented by an adapter that shows structured cards (capability card).
type Cards interface {
	SendCard(ctx context.Context, to Target, card *wire.Card) (Receipt, error)
}

// Buttons is implemented by an adapter that shows rows of buttons (capability
// buttons). A press comes back as an Event with Action = the button's Value.
type Buttons interface {
	SendButtons(ctx context.Context, to Target, text string, rows [][]wire.Button) (Receipt, error)
}

// Media is implemented by an adapter that shows pictures and documents
// (capabilities image and file). Urls of the host are signed: they work without
// credentials, for a day.
type Media interface {
	SendImage(ctx context.Context, to Target, image wire.Image) (Receipt, error)
	SendFile(ctx context.Context, to Target, file wire.File) (Receipt, error)
}

// Typer is implemented by an adapter that shows a typing indicator (capability typing).
type Typer interface {
	Typing(ctx context.Context, to Target, on bool) error
}

// Editor is implemented by an adapter that changes and deletes messages already
// sent (capabilities update_message and delete_message). handle is what the host
// holds for the message: a Receipt's Handle, or the platform's own message id.
type Editor interface {
	Edit(ctx context.Context, to Target, handle, text string) (Receipt, error)
	Delete(ctx context.Context, to Target, handle string) error
}

// Reactor is an Editor that also reacts to messages (capability reaction, in
// both directions; see Event.Reaction). handle is the platform's id of a message
// of a user or of the adapter's own; remove takes the reaction back. React may be
// repeated.
type Reactor interface {
	Editor
	React(ctx context.Context, to Target, handle, emoji string, remove bool) error
}

// Rich is implemented by an adapter that shows messages by their parts. Which,
// Profile.Parts says: without it all (capability parts), and nothing but edits
// and streams comes by the other methods. text is the same in words.
type Rich interface {
	SendParts(ctx context.Context, to Target, text string, parts []message.Part) (Receipt, error)
}

// Streamer is implemented by an adapter that shows an answer while it is made
// (capability stream).
type Streamer interface {
	// Stream shows d in place of what it showed of the same d.ID. Drafts may be
	// skipped, and their errors are only logged. The one with Final always comes,
	// maybe alone, and has an outcome like that of Send.
	Stream(ctx context.Context, to Target, d Draft) (Receipt, error)
}

// Draft is an answer as far as it has come.
type Draft struct {
	ID    string         // the host's, of the message
	Text  string         // all of it, not what was added
	Parts []message.Part // the same by its parts; nil for an adapter that is not Rich in all
	Final bool           // it is complete
}

// Profiler is implemented by an adapter that says what its platform can show
// beyond capabilities. It is asked once, after Setup and before Run.
type Profiler interface{ Profile() Profile }

// Profile is what a platform can show; zero values mean "no limit known". The
// operator's settings of the channel go before it.
type Profile struct {
	wire.Profile

	// RepliesInThread: answers appear as replies to the message that ReplyCtx
	// names (capability reply_to_message).
	RepliesInThread bool
	// Parts are the only types that SendParts of a Rich adapter takes: of
	// message.TypeUI (capability form) and message.TypeAudioOutput (audio). Each
	// then comes alone, as the one part. nil = every type there is.
	Parts []string
}

// Target is where an outbound message belongs: the routing of the event that
// it answers, as the adapter delivered it. Empty fields were never delivered.
type Target struct {
	SessionKey     string
	ConversationID string
	ReplyCtx       json.RawMessage // exactly the bytes that Event.ReplyCtx became; nil = none

	// MessageID is the host's id of what is sent, the same when it is sent again
	// after a lost connection or Retry: for platforms that take such a key.
	// "" under protocol 1.0.
	MessageID string

	// Unsolicited: nobody asked for it. ReplyCtx is that of whoever spoke last, who is not
	// to be addressed. Never true under protocol 1.0, which does not tell.
	Unsolicited bool
}

// Receipt is the platform's word for a message that it took. Handle is what
// Edit takes, at most 4,096 bytes; "" where the platform has none. Note says what the
// user was not shown as it was meant, such as lines that were cut: the operator finds it
// in the message's life.
type Receipt struct{ Handle, Note string }
