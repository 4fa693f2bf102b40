package agui

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/agui"
)

// Bounds of what a client names.
const (
	maxThread    = 512 // bytes of a threadId
	maxRunID     = 256
	maxMessageID = 256
)

// Bad is a request that is refused: what is wrong with it, and where.
type Bad struct{ At, Message string }

func (b *Bad) Error() string { return b.At + ": " + b.Message }

// input is what counts of a RunAgentInput: the newest message of the user is the
// turn, for the history before it is ours.
type input struct {
	thread, run string
	at          string          // where in the body the message is
	message     message.Message // with the client's id, run_id and payload
	has         map[string]bool // the messages that the client knows, by their ids
}

// decode reads the body of a run. The error is a *Bad.
func decode(body []byte) (input, error) {
	given, err := model.ParseRun(body)
	if err != nil {
		return input{}, &Bad{"body", strings.TrimPrefix(err.Error(), "agui: ")}
	}
	in := input{thread: given.ThreadID, run: given.RunID, has: make(map[string]bool, len(given.Messages))}
	if err := checkID("body.threadId", in.thread, maxThread); err != nil {
		return input{}, err
	}
	if err := checkID("body.runId", in.run, maxRunID); err != nil {
		return input{}, err
	}
	newest := -1
	for i, m := range given.Messages {
		in.has[m.ID] = true
		if m.Role == model.RoleUser {
			newest = i
		}
	}
	if newest < 0 {
		return input{}, &Bad{"body.messages", "found no message of role user, expected one to answer"}
	}
	in.at = fmt.Sprintf("body.messages[%d]", newest)
	if err := checkID(in.at+".id", given.Messages[newest].ID, maxMessageID); err != nil {
		return input{}, err
	}
	one := given
	one.Messages = given.Messages[newest : newest+1]
	said, err := one.Canonical()
	switch {
	case errors.Is(err, message.ErrNoContent):
		return input{}, &Bad{in.at + ".content", "found nothing, expected a string or an array of contents"}
	case err != nil || len(said) != 1:
		return input{}, &Bad{in.at, fmt.Sprintf("found what can't be read: %v", err)}
	}
	in.message = said[0]
	return in, in.native()
}

// native makes the answer to a form a part of its own, for which AG-UI has no
// content. Contents that have an address beside what no address is for are
// refused, since the address would be kept with its signature.
func (in *input) native() error {
	for i, p := range in.message.Parts {
		c, err := message.As[message.CustomPart](p)
		if err != nil || c.PayloadType != model.PayloadContent {
			continue
		}
		at := fmt.Sprintf("%s.content[%d]", in.at, i)
		var given message.Part
		if err := given.UnmarshalJSON(c.Data); err != nil {
			continue
		}
		switch given.Type {
		case message.TypeUISubmit:
			if found := message.Validate([]message.Part{given}, message.HostLimits()); len(found) > 0 {
				return &Bad{at, found.Error()}
			}
			in.message.Parts[i] = given
		case "binary", "image", "audio", "video", "document":
			if message.TextField(c.Data, "url") != "" {
				return &Bad{at, "found both data and a url, expected one of them"}
			}
		}
	}
	return nil
}

// checkID refuses what would be no good name.
func checkID(at, id string, most int) error {
	switch {
	case id == "":
		return &Bad{at, "found nothing, expected an id"}
	case len(id) > most:
		return &Bad{at, fmt.Sprintf("found %d bytes, expected at most %d", len(id), most)}
	case strings.ContainsFunc(id, unicode.IsControl):
		return &Bad{at, "found a control character, expected printable text"}
	}
	return nil
}
