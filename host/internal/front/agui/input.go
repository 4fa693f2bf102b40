package agui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	model "github.com/pontoon-bridge/pontoon/sdk/message/agui"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
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
	has         map[string]bool // messages that the client knows, the newest, by their ids
}

// What of a run is decoded, and kept: earlier messages are not, nor are state, tools
// and context.
const (
	maxText  = 1 << 20   // bytes of a message's texts: what every other message may say by REST
	maxProps = 256 << 10 // bytes of the forwardedProps
	maxKnown = 2000      // newest messages that the client is known to have
)

// decode reads the body of a run, and gives back the room of what of it does not
// count. The error is a *Bad, a *wire.Error or intake's.
func decode(ctx context.Context, body *intake.Body) (input, error) {
	in := input{}
	var known []string
	given, err := model.ParseTurn(body.JSON, func(id string) {
		if len(known) == 2*maxKnown {
			known = append(known[:0], known[maxKnown:]...)
		}
		if len(id) <= maxMessageID {
			known = append(known, id)
		}
	})
	if err != nil {
		return in, &Bad{"body", strings.TrimPrefix(err.Error(), "agui: ")}
	}
	in.thread, in.run, in.at = given.ThreadID, given.RunID, fmt.Sprintf("body.messages[%d]", given.At)
	if err := checkID("body.threadId", in.thread, maxThread); err != nil {
		return in, err
	}
	if err := checkID("body.runId", in.run, maxRunID); err != nil {
		return in, err
	}
	if given.At < 0 {
		return in, &Bad{"body.messages", "found no message of role user, expected one to answer"}
	}
	if err := in.claim(ctx, body, given); err != nil {
		return in, err
	}
	m, err := model.Parse(given.Message) // a copy
	if err != nil {
		return in, &Bad{"body", fmt.Sprintf("messages[%d].%s", given.At, strings.TrimPrefix(err.Error(), "agui: "))}
	}
	if err := checkID(in.at+".id", m.ID, maxMessageID); err != nil {
		return in, err
	}
	one := model.RunInput{ThreadID: in.thread, RunID: in.run, Messages: []model.Message{m}, ForwardedProps: bytes.Clone(given.ForwardedProps)}
	body.Free()
	in.has = make(map[string]bool, len(known))
	for _, id := range known {
		in.has[id] = true
	}
	said, err := one.Canonical()
	switch {
	case errors.Is(err, message.ErrNoContent):
		return in, &Bad{in.at + ".content", "found nothing, expected a string or an array of contents"}
	case err != nil || len(said) != 1:
		return in, &Bad{in.at, fmt.Sprintf("found what can't be read: %v", err)}
	}
	in.message = said[0]
	if err := in.bounded(); err != nil {
		return in, err
	}
	return in, in.native()
}

// claim refuses what would cost too much to decode, and waits for room for the rest.
func (in *input) claim(ctx context.Context, body *intake.Body, given model.TurnInput) error {
	if n := len(given.ForwardedProps); n > maxProps {
		return tooLarge("body.forwardedProps: found %d bytes, expected at most %d", n, maxProps)
	}
	if refused := intake.CheckText(given.Message); refused != nil {
		return &Bad{in.at, refused.Message}
	}
	if n := intake.Values(given.Message); n > intake.MaxValues {
		return tooLarge("%s: found more than %d values, expected at most that", in.at, intake.MaxValues)
	}
	return body.Work(ctx, perByte*(len(given.Message)+len(given.ForwardedProps)))
}

func tooLarge(format string, args ...any) error {
	return &wire.Error{Code: wire.CodeTooLarge, Message: fmt.Sprintf(format, args...)}
}

// perByte is how much memory a byte of a message takes until it is stored.
const perByte = 8

// bounded refuses a message that says too much.
func (in *input) bounded() error {
	if n, most := len(in.message.Parts), message.HostLimits().Parts; n > most {
		return tooLarge("%s.content: found %d contents, expected at most %d", in.at, n, most)
	}
	n := len(in.message.Text)
	for _, p := range in.message.Parts {
		if p.Type == message.TypeText {
			n += len(p.Raw())
		}
	}
	if n > maxText {
		return tooLarge("%s.content: found %d bytes of text, expected at most %d", in.at, n, maxText)
	}
	return nil
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
