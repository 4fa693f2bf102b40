package agui

import (
	"encoding/json"
	"fmt"
)

// TurnInput is what of a RunInput counts for one who keeps the history: the newest
// message of the user, as it came.
type TurnInput struct {
	ThreadID       string
	RunID          string
	At             int             // the place of the message among the messages; -1 = there is none of a user
	Message        json.RawMessage // see Parse
	ForwardedProps json.RawMessage // any; nil = absent
}

// ParseTurn reads of a run request what TurnInput has, without a copy of b, and gives
// the ids of all messages to known, in their order. Earlier messages are not decoded:
// of each it looks at role and id alone. The error names the field.
func ParseTurn(b []byte, known func(id string)) (TurnInput, error) {
	if !json.Valid(b) {
		var raw json.RawMessage
		return TurnInput{}, fmt.Errorf("agui: run: %w", json.Unmarshal(b, &raw))
	}
	t := TurnInput{At: -1}
	var thread, run, messages json.RawMessage
	err := eachField(b, func(name string, value json.RawMessage) error {
		switch name {
		case "threadId":
			thread = value
		case "runId":
			run = value
		case "messages":
			messages = value
		case "forwardedProps":
			t.ForwardedProps = value
		}
		return nil
	})
	if err != nil {
		return TurnInput{}, fmt.Errorf("agui: run: %w", err)
	}
	for _, id := range []struct {
		name string
		raw  json.RawMessage
		to   *string
	}{{"threadId", thread, &t.ThreadID}, {"runId", run, &t.RunID}} {
		if *id.to = str(id.raw); *id.to == "" {
			return TurnInput{}, fmt.Errorf("agui: %s: found %s, expected an id", id.name, found(id.raw))
		}
	}
	if err := t.find(messages, known); err != nil {
		return TurnInput{}, fmt.Errorf("agui: messages%w", err)
	}
	return t, nil
}

// find finds the newest message of the user. The error follows the word messages.
func (t *TurnInput) find(messages json.RawMessage, known func(id string)) error {
	i := -1
	err := eachItem(messages, func(value json.RawMessage) error {
		i++
		var id, role json.RawMessage
		err := eachField(value, func(name string, value json.RawMessage) error {
			switch name {
			case "id":
				id = value
			case "role":
				role = value
			}
			return nil
		})
		said := str(role)
		switch {
		case err != nil:
			return fmt.Errorf("[%d].message: %w", i, err)
		case said == "":
			return fmt.Errorf("[%d].role: found %s, expected user, assistant or another role", i, found(role))
		case said == RoleUser:
			t.At, t.Message = i, value
		}
		known(str(id))
		return nil
	})
	if err != nil && i < 0 {
		return fmt.Errorf(": %w", err)
	}
	return err
}
