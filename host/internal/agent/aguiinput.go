package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"unsafe"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/agui"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// ask is what the agent is asked, while it is sent. What was sent is not kept for a
// second attempt: that makes its own.
type ask struct {
	run   string
	beat  func()                        // is called when the agent takes something
	again func() (io.ReadCloser, error) // makes it anew, for another connection if this one was closed meanwhile

	mu   sync.Mutex // guards what follows
	left []byte
	past *hub.Past // whose memory it takes; nil = it is sent, or closed
}

// Len is how many bytes are to be sent.
func (q *ask) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.left)
}

// Read implements io.Reader.
func (q *ask) Read(b []byte) (int, error) {
	q.beat()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(b, q.left)
	if q.left = q.left[n:]; len(q.left) > 0 {
		return n, nil
	}
	q.done()
	return n, io.EOF
}

// Close implements io.Closer.
func (q *ask) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done()
	return nil
}

// done gives back the memory. The mutex must be held.
func (q *ask) done() {
	if q.past != nil {
		q.left = nil
		q.past.Release()
		q.past = nil
	}
}

// ask makes what the agent is asked: the conversation up to the turn's message. It
// must be closed.
func (a *AGUI) ask(ctx context.Context, t *hub.Turn, beat func()) (*ask, error) {
	n := a.config.History
	if n == 0 {
		n = runHistory
	}
	past, err := t.History(ctx, n, runForm{a.log})
	if err != nil {
		return nil, err
	}
	q := &ask{beat: beat, past: past, again: func() (io.ReadCloser, error) { return a.ask(ctx, t, beat) }}
	if q.run, q.left, err = a.input(t, past.Made); err != nil {
		past.Release()
		return nil, fmt.Errorf("encode run: %w", err)
	}
	past.Made = nil
	past.Keep(int64(len(q.left)))
	return q, nil
}

// input is the run of a conversation, whose last message is the turn's, and its id.
func (a *AGUI) input(t *hub.Turn, earlier []any) (run string, input []byte, err error) {
	thread := t.Session()
	if thread == "" {
		thread = t.Conversation
	}
	own := t.Message
	if run = own.Meta.String(agui.MetaRunID); run == "" {
		run = t.ID.String()
	}
	props := own.Meta[agui.MetaPayload]
	if props == nil {
		props = a.config.ForwardedProps
	}
	own.Meta = maps.Clone(own.Meta)
	delete(own.Meta, agui.MetaRunID)
	delete(own.Meta, agui.MetaPayload)
	all := make([]told, 0, len(earlier)+1)
	for _, made := range earlier {
		all = append(all, *made.(*told))
	}
	all = paired(append(all, *runForm{a.log}.tell(&own)))
	if props != nil {
		if props, err = json.Marshal(props); err != nil {
			return "", nil, err
		}
	}
	size := len(props) + len(run) + len(thread) + 128
	for i := range all {
		if err := all[i].err; err != nil {
			return "", nil, err
		}
		size += len(all[i].raw) + 1
	}
	return run, appendInput(make([]byte, 0, size), thread, run, all, props), nil
}

// appendInput is agui.RunInput.MarshalJSON of messages that are encoded.
func appendInput(b []byte, thread, run string, all []told, props json.RawMessage) []byte {
	b = append(b, `{"context":[]`...)
	if props != nil {
		b = append(append(b, `,"forwardedProps":`...), props...)
	}
	b = append(b, `,"messages":[`...)
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, all[i].raw...)
	}
	b = wire.AppendString(append(b, `],"runId":`...), run)
	b = wire.AppendString(append(b, `,"state":{},"threadId":`...), thread)
	return append(b, `,"tools":[]}`...)
}

// told is a message as an agent is told of it.
type told struct {
	raw   json.RawMessage
	tools *agui.Message // if it calls tools or is a tool's result
	err   error         // it can't be encoded
}

// runForm is the form of messages of AG-UI.
type runForm struct{ log *slog.Logger }

var _ hub.Form = runForm{}

// Make implements hub.Form.
func (f runForm) Make(m *message.Message) (made any, bytes int) {
	earlier := *m
	earlier.Meta = withoutRun(m.Meta)
	t := f.tell(&earlier)
	bytes = int(unsafe.Sizeof(*t)) + len(t.raw)
	if t.tools != nil {
		bytes += 2 * len(t.raw) // its pieces, and what they were read from
	}
	return t, bytes
}

func (f runForm) tell(m *message.Message) *told {
	said, losses := agui.From(m)
	if len(losses) > 0 {
		f.log.Debug("AG-UI can't carry all of a message", "message", m.ID, "losses", losses)
	}
	t := &told{}
	if t.raw, t.err = json.Marshal(said); len(said.ToolCalls) > 0 || said.Role == agui.RoleTool {
		t.tools = &said
	}
	return t
}

// withoutRun is the metadata of an earlier message without what its own run was: of no
// use to the next one, and older agents refuse messages with metadata.
func withoutRun(m message.Meta) message.Meta {
	out := maps.Clone(m)
	for _, key := range []string{agui.MetaRunID, agui.MetaPayload, metaMode, metaStage} {
		delete(out, key)
	}
	return out
}

// paired leaves out calls of tools without their result, and results without
// their call: what only half of is within the history is refused by models.
func paired(all []told) []told {
	called, answered := map[string]bool{}, map[string]bool{}
	for _, t := range all {
		m := t.tools
		if m == nil {
			continue
		}
		for _, raw := range m.ToolCalls {
			called[callID(raw)] = true
		}
		if m.Role == agui.RoleTool && called[m.ToolCallID] {
			answered[m.ToolCallID] = true
		}
	}
	out := all[:0]
	for _, t := range all {
		if t.tools == nil || t.pair(answered) {
			out = append(out, t)
		}
	}
	return out
}

// pair leaves the calls out that were not answered; false if nothing is left.
func (t *told) pair(answered map[string]bool) bool {
	if t.tools.Role == agui.RoleTool && !answered[t.tools.ToolCallID] {
		return false
	}
	var calls []json.RawMessage
	for _, raw := range t.tools.ToolCalls {
		if answered[callID(raw)] {
			calls = append(calls, raw)
		}
	}
	if len(calls) == len(t.tools.ToolCalls) {
		return true
	}
	m := *t.tools // others are told of the message as it is
	if m.ToolCalls = calls; len(calls) == 0 && len(m.Content) == 0 {
		return false
	}
	t.tools = &m
	t.raw, t.err = json.Marshal(m)
	return true
}

func callID(raw json.RawMessage) string {
	var call struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(raw, &call)
	return call.ID
}
