// Package sdk is the Go SDK for adapters: implement Adapter, call Main, and the
// program bridges one platform to a Pontoon host.
//
// Capabilities follow from the optional interfaces that the adapter implements
// (Cards, Buttons, Media, Typer, Editor, ThreadReplier); the SDK looks once and
// declares them. What an adapter can't show, the host degrades before it is sent.
package sdk

import (
	"context"
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Adapter is one platform.
//
// Run delivers the platform's events to h until ctx ends, then returns nil. It
// starts once the host has accepted the adapter and keeps running while the
// connection is lost and found again. An error before ctx ends restarts it after
// a back-off; an early nil, or Refused, ends the adapter.
//
// Send puts text on the platform. It is never called concurrently within one
// conversation, but is for different ones, and may be called from before Run
// connects until after it returned. Its ctx ends when the adapter must stop
// without having finished. An error of Send says what became of the message:
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
// (capabilities image and file).
type Media interface {
	SendImage(ctx context.Context, to Target, image wire.Image) (Receipt, error)
	SendFile(ctx context.Context, to Target, file wire.File) (Receipt, error)
}

// Typer is implemented by an adapter that shows a typing indicator (capability typing).
type Typer interface {
	Typing(ctx context.Context, to Target, on bool) error
}

// Editor is implemented by an adapter that changes messages already sent
// (capability update_message). handle is what the host holds for the message:
// a Receipt's Handle, or the platform's own message id.
type Editor interface {
	Edit(ctx context.Context, to Target, handle, text string) (Receipt, error)
}

// ThreadReplier is implemented by an adapter whose answers appear as replies to
// the message that ReplyCtx names (capability reply_to_message). It is asked once.
type ThreadReplier interface{ RepliesInThread() bool }

// Target is where an outbound message belongs: the routing of the event that
// it answers, as the adapter delivered it. Empty fields were never delivered.
type Target struct {
	SessionKey     string
	ConversationID string
	ReplyCtx       json.RawMessage // exactly the bytes that Event.ReplyCtx became; nil = none
}

// Receipt is the platform's word for a message that it took. Handle is what
// Edit takes; "" where the platform has none.
type Receipt struct{ Handle string }

// Event is what a user did on the platform. Text is a message; Action, if not
// "", is the value of a button that was pressed, and Text is then ignored.
type Event struct {
	SessionKey     string // stable key of the adapter's own, by convention platform:conversation:user
	ConversationID string // "" = SessionKey stands in for it
	UserID         string // decides who may speak
	UserName       string // shown; "" = UserID
	Text           string
	Action         string
	ReplyCtx       any // marshalled as JSON, echoed with every answer; nil = none
}
