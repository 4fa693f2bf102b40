package webchat

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk"
)

// kind says what an entry is, and what a piece of it shows.
type kind string

const (
	kindText    kind = "text"    // that the user typed
	kindPress   kind = "press"   // the user pressed a button; Text is its label
	kindMessage kind = "message" // from the host: Pieces
	kindDeleted kind = "deleted" // its place is kept, so that the order tells no lies
)

// state is what became of something that the user did.
type state string

const (
	stateSending state = "sending"
	stateWaiting state = "waiting" // the host was not there for patience
	stateSent    state = "sent"    // it is on the host's disk: Host.Deliver returned nil
	stateFailed  state = "failed"  // it never will; Reason says why
)

// entry is one message of a conversation, as the page gets it. The store's
// mutex guards it once it is there.
type entry struct {
	ID      string     `json:"id"`
	Number  uint64     `json:"n"`   // its place in the conversation
	Rev     uint64     `json:"rev"` // grows with every change of any entry
	Kind    kind       `json:"kind"`
	At      int64      `json:"at"`               // Unix milliseconds
	Client  string     `json:"client,omitempty"` // the browser's id of what the user did; "" = from the host
	State   state      `json:"state,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Text    string     `json:"text,omitempty"`   // of the user
	Files   []attached `json:"files,omitempty"`  // that the user sent with it
	Pieces  []*piece   `json:"pieces,omitempty"` // of the host
	Edited  bool       `json:"edited,omitempty"`
	Growing bool       `json:"growing,omitempty"` // a stream without its end

	frame    []byte    // the entry frame, as JSON
	draft    string    // the host's id of the stream that it shows
	claims   []string  // ids of uploads that come with it
	uploads  []*upload // the same, once it is taken
	event    sdk.Event // what the user did, for the host
	formSize int       // about what event.Form takes, in bytes
	of       *press    // the button, if Kind is press
	replies  string    // the ReplyCtx of what it answers, if it is from the host
	alias    string    // the host's own name for it, once an edit used one
	gone     bool      // the ring has dropped it
}

// attached is a file of the user's, as the page shows it. ID is that of the upload.
type attached struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Image bool   `json:"image,omitempty"`
}

// press is a pressed button: the message that showed it, in which piece, and
// where in that. For a form it is the button that sends it, and values what it says.
type press struct {
	message      string
	piece        int
	group, index int
	values       map[string]any
}

// shown is the piece that p was pressed in, if the message still has it.
func (e *entry) shown(p *press) *piece {
	if e == nil || p.piece >= len(e.Pieces) {
		return nil
	}
	return e.Pieces[p.piece]
}

// alone is the one piece that the entry has, if it is of this kind.
func (e *entry) alone(k kind) *piece {
	if len(e.Pieces) != 1 || e.Pieces[0].Kind != k {
		return nil
	}
	return e.Pieces[0]
}

// encode renews the frame after a change.
func (e *entry) encode() {
	frame, err := json.Marshal(struct {
		Type  string `json:"type"`
		Entry *entry `json:"entry"`
	}{"entry", e})
	if err != nil {
		panic("webchat: " + err.Error()) // an entry is strings and numbers, and what was decoded from JSON
	}
	e.frame = frame
}
