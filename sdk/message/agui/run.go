package agui

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// RunInput is what starts a run of an agent.
type RunInput struct {
	ThreadID       string // the conversation: the envelope's sessionId, which is the caller's to set
	RunID          string
	Messages       []Message
	ForwardedProps json.RawMessage            // any; nil = absent
	More           map[string]json.RawMessage // state, tools, context and further fields, as they came
}

// ParseRun reads the body of a run request. threadId, runId and messages must
// be there; the error names the field.
func ParseRun(b []byte) (RunInput, error) {
	var r RunInput
	if err := r.UnmarshalJSON(b); err != nil {
		return RunInput{}, fmt.Errorf("agui: %w", err)
	}
	return r, nil
}

// UnmarshalJSON implements json.Unmarshaler, with the errors of ParseRun.
func (r *RunInput) UnmarshalJSON(b []byte) error {
	var raw json.RawMessage // a copy, and valid
	if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	o, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for _, name := range []string{"threadId", "runId"} {
		if str(o[name]) == "" {
			return fmt.Errorf("%s: found %s, expected an id", name, found(o[name]))
		}
	}
	list, err := readArray(o["messages"])
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	out := RunInput{ThreadID: str(o["threadId"]), RunID: str(o["runId"]), ForwardedProps: o["forwardedProps"], Messages: make([]Message, len(list))}
	for i, raw := range list {
		if err := out.Messages[i].read(raw); err != nil {
			return fmt.Errorf("messages[%d].%w", i, err)
		}
	}
	for _, name := range []string{"threadId", "runId", "messages", "forwardedProps"} {
		delete(o, name)
	}
	if len(o) > 0 {
		out.More = o
	}
	*r = out
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r RunInput) MarshalJSON() ([]byte, error) {
	o := object(maps.Clone(r.More)).orNew()
	o["threadId"], o["runId"] = quote(r.ThreadID), quote(r.RunID)
	messages, err := json.Marshal(r.Messages)
	if err != nil {
		return nil, err
	}
	if o["messages"] = messages; r.Messages == nil {
		o["messages"] = json.RawMessage("[]")
	}
	if r.ForwardedProps != nil {
		o["forwardedProps"] = r.ForwardedProps
	}
	return o.json(), nil
}

// Canonical are the run's messages as the host knows them. The last one of a
// user, or the very last if there is none, has run_id and, of the
// forwardedProps, payload in its metadata. Messages that can't be taken are
// left out and named in the error, beside which the others are good:
// clients send histories with messages that never got content.
func (r RunInput) Canonical() ([]message.Message, error) {
	var out []message.Message
	var errs []error
	for i := range r.Messages {
		c, err := r.Messages[i].Canonical()
		if err != nil {
			errs = append(errs, fmt.Errorf("messages[%d]: %w", i, err))
			continue
		}
		out = append(out, c)
	}
	if i := starter(out); i >= 0 {
		r.mark(&out[i])
	}
	return out, errors.Join(errs...)
}

// starter is the place of the message that a run is for; -1 = none.
func starter(messages []message.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == message.RoleUser {
			return i
		}
	}
	return len(messages) - 1
}

// mark puts what the run says into the metadata; a run_id that the message had
// of its own is kept aside.
func (r RunInput) mark(c *message.Message) {
	if old, ok := c.Meta[MetaRunID]; ok {
		k := kept(c.Meta)
		k.Metadata = k.Metadata.orNew()
		k.Metadata[MetaRunID] = old
		k.store(c)
	}
	set(c, MetaRunID, quote(r.RunID))
	if r.ForwardedProps != nil {
		set(c, MetaPayload, r.ForwardedProps)
	}
}

// FromRun is the run that messages make, and the losses of each of them, in
// their order. runId and forwardedProps are read where Canonical puts them; the
// rest of the run is the caller's. No message is changed.
func FromRun(threadID string, messages []message.Message) (RunInput, [][]message.Loss) {
	r := RunInput{ThreadID: threadID, Messages: make([]Message, len(messages))}
	losses := make([][]message.Loss, len(messages))
	first := starter(messages)
	for i, m := range messages {
		if i == first {
			r.RunID = m.Meta.String(MetaRunID)
			r.ForwardedProps = m.Meta[MetaPayload]
			m.Meta = maps.Clone(m.Meta)
			delete(m.Meta, MetaRunID)
			delete(m.Meta, MetaPayload)
		}
		r.Messages[i], losses[i] = From(&m)
	}
	return r, losses
}
