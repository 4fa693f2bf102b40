package webchat

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// kind says what an entry shows.
type kind string

const (
	kindText    kind = "text"
	kindPress   kind = "press" // the user pressed a button; Text is its label
	kindCard    kind = "card"
	kindButtons kind = "buttons"
	kindImage   kind = "image"
	kindFile    kind = "file"
)

// state is what became of something that the user did.
type state string

const (
	stateSending state = "sending"
	stateWaiting state = "waiting" // the host was not there for patience
	stateSent    state = "sent"    // the host has it: Host.Deliver returned nil
	stateFailed  state = "failed"  // it never will; Reason says why
)

// entry is one message of a conversation, as the page gets it. The store's
// mutex guards it once it is there.
type entry struct {
	ID      string          `json:"id"`
	Number  uint64          `json:"n"`   // its place in the conversation
	Rev     uint64          `json:"rev"` // grows with every change of any entry
	Kind    kind            `json:"kind"`
	At      int64           `json:"at"`               // Unix milliseconds
	Client  string          `json:"client,omitempty"` // the browser's id of what the user did; "" = from the host
	State   state           `json:"state,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Text    string          `json:"text,omitempty"`
	Card    *wire.Card      `json:"card,omitempty"`
	Buttons [][]wire.Button `json:"buttons,omitempty"`
	Chosen  map[int]int     `json:"chosen,omitempty"` // group of buttons → the one that was pressed
	Media   *media          `json:"media,omitempty"`
	Edited  bool            `json:"edited,omitempty"`

	frame   []byte    // the entry frame, as JSON
	event   sdk.Event // what the user did, for the host
	of      *press    // the button, if Kind is press
	replies string    // the ReplyCtx of what it answers, if it is from the host
	alias   string    // the host's own name for it, once an edit used one
	grant   *grant    // the file behind Media.URL
	gone    bool      // the ring has dropped it
}

// media is an image or a file. URL is one of ours, or http, https or (for an
// image) data:image of a safe type.
type media struct {
	URL     string `json:"url"`
	Name    string `json:"name,omitempty"`
	Caption string `json:"caption,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"` // 0 = unknown
}

// press is a pressed button: the message that showed it, and where in it.
type press struct {
	message      string
	group, index int
}

// encode renews the frame after a change.
func (e *entry) encode() {
	frame, err := json.Marshal(struct {
		Type  string `json:"type"`
		Entry *entry `json:"entry"`
	}{"entry", e})
	if err != nil {
		panic("webchat: " + err.Error()) // an entry is strings, numbers and maps of numbers
	}
	e.frame = frame
}
