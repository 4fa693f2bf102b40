package webchat

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
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
	kindAudio   kind = "audio"
	kindForm    kind = "form"
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
	Growing bool            `json:"growing,omitempty"` // a stream without its end
	Form    *message.UIPart `json:"form,omitempty"`
	Values  map[string]any  `json:"values,omitempty"` // what the form was answered with
	Files   []attached      `json:"files,omitempty"`  // that the user sent with it

	frame    []byte    // the entry frame, as JSON
	draft    string    // the host's id of the stream that it shows
	claims   []string  // ids of uploads that come with it
	uploads  []*upload // the same, once it is taken
	event    sdk.Event // what the user did, for the host
	formSize int       // about what event.Form takes, in bytes
	of       *press    // the button, if Kind is press
	replies  string    // the ReplyCtx of what it answers, if it is from the host
	alias    string    // the host's own name for it, once an edit used one
	grant    *grant    // the file behind Media.URL
	gone     bool      // the ring has dropped it
}

// media is an image or a file. URL is one of ours, or http, https or (for an
// image) data:image of a safe type.
type media struct {
	URL     string `json:"url"`
	Name    string `json:"name,omitempty"`
	Caption string `json:"caption,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"` // 0 = unknown
}

// attached is a file of the user's, as the page shows it. ID is that of the upload.
type attached struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Image bool   `json:"image,omitempty"`
}

// press is a pressed button: the message that showed it, and where in it. For a
// form it is the button that sends it, and values what it says.
type press struct {
	message      string
	group, index int
	values       map[string]any
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
