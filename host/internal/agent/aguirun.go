package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/message/agui"
)

// Limits of what one run may say.
const (
	maxRunBytes = 8 << 20 // of texts, arguments and results
	maxRunItems = 1000    // messages and tool calls
	maxRunOpen  = 64      // of those, not ended yet
)

// Metadata keys of an agent's messages.
const (
	metaMode  = "mode"  // string: tool = of a tool, and not meant for the user
	metaStage = "stage" // string: what the agent was at
)

// item is a message or a tool call of the run, from its start on.
type item struct {
	id     string // the agent's
	call   bool   // a tool call, and not a text
	name   string // of the tool
	role   string
	stage  string
	text   strings.Builder // or the call's arguments
	chunks bool            // it was begun by a chunk: the next event may end it
	done   bool
	ready  *message.Message // that is no text and no call; it is done
}

// run is a run under way. Its items are sent in the order in which they began,
// each when it has ended: what begins later waits.
type run struct {
	ctx   context.Context // of the turn; a run lives no longer
	id    string
	reply hub.Reply
	steps []string // that have begun and not ended
	open  []*item  // not sent yet
	items int
	bytes int
	over  bool
}

func newRun(ctx context.Context, id string, r hub.Reply) *run {
	return &run{ctx: ctx, id: id, reply: r}
}

// event is one event of AG-UI, with the fields that count here.
type event struct {
	Type         string          `json:"type"`
	MessageID    string          `json:"messageId"`
	Role         string          `json:"role"`
	Delta        string          `json:"delta"`
	ToolCallID   string          `json:"toolCallId"`
	ToolCallName string          `json:"toolCallName"`
	Content      json.RawMessage `json:"content"`  // of TOOL_CALL_RESULT
	Name         string          `json:"name"`     // of CUSTOM
	Value        json.RawMessage `json:"value"`    // likewise
	Message      string          `json:"message"`  // of RUN_ERROR
	Code         string          `json:"code"`     // likewise
	StepName     string          `json:"stepName"` // of STEP_…
	Metadata     struct {
		Stage json.RawMessage `json:"stage"`
	} `json:"metadata"`
}

// handlers say what each event does; others are not for users.
var handlers = map[string]func(*run, *event) error{
	"RUN_STARTED":          func(r *run, _ *event) error { r.reply.Typing(true); return nil },
	"RUN_FINISHED":         (*run).finish,
	"RUN_ERROR":            func(_ *run, e *event) error { return runError(e) },
	"TEXT_MESSAGE_START":   (*run).startText,
	"TEXT_MESSAGE_CONTENT": (*run).addText,
	"TEXT_MESSAGE_CHUNK":   (*run).addText,
	"TEXT_MESSAGE_END":     func(r *run, e *event) error { return r.end(r.find(e.MessageID, false)) },
	"TOOL_CALL_START":      (*run).startCall,
	"TOOL_CALL_ARGS":       (*run).addCall,
	"TOOL_CALL_CHUNK":      (*run).addCall,
	"TOOL_CALL_END":        func(r *run, e *event) error { return r.end(r.find(e.ToolCallID, true)) },
	"TOOL_CALL_RESULT":     (*run).result,
	"STEP_STARTED":         func(r *run, e *event) error { return r.step(e.StepName, true) },
	"STEP_FINISHED":        func(r *run, e *event) error { return r.step(e.StepName, false) },
	"CUSTOM":               (*run).custom,
}

// take reads one event and does what it says.
func (r *run) take(data []byte) error {
	var head struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("found no JSON object, expected one with a type: %w", err)
	}
	if head.Type == nil {
		return errors.New("type: absent, expected the name of an event")
	}
	handle := handlers[*head.Type]
	if handle == nil {
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%s: %w", *head.Type, err)
	}
	if err := r.endChunks(&e); err != nil {
		return err
	}
	if err := handle(r, &e); err != nil {
		return fmt.Errorf("%s: %w", e.Type, err)
	}
	return nil
}

// runError is what the agent says of a run that failed: for the log, not for the
// user.
func runError(e *event) error {
	if e.Code != "" {
		return hub.Quote(fmt.Errorf("the run failed: %.300q (code %.60q)", e.Message, e.Code))
	}
	return hub.Quote(fmt.Errorf("the run failed: %.300q", e.Message))
}

// endChunks ends what was begun by chunks, unless the event goes on with it.
func (r *run) endChunks(e *event) error {
	for _, it := range r.open {
		if !it.chunks || it.done {
			continue
		}
		goesOn := !it.call && e.Type == "TEXT_MESSAGE_CHUNK" && (e.MessageID == "" || e.MessageID == it.id) ||
			it.call && e.Type == "TOOL_CALL_CHUNK" && (e.ToolCallID == "" || e.ToolCallID == it.id)
		if !goesOn {
			it.done = true
		}
	}
	return r.flush()
}

// find is the open item of that id; nil = none. For "" it is the newest.
func (r *run) find(id string, call bool) *item {
	for i := len(r.open) - 1; i >= 0; i-- {
		if it := r.open[i]; !it.done && it.call == call && (id == "" || it.id == id) {
			return it
		}
	}
	return nil
}

// add begins an item.
func (r *run) add(it *item, e *event) error {
	if r.items++; r.items > maxRunItems {
		return fmt.Errorf("found more than %d messages and tool calls in a run, which is the limit", maxRunItems)
	}
	if len(r.open) >= maxRunOpen {
		return fmt.Errorf("found more than %d messages and tool calls at a time, which is the limit", maxRunOpen)
	}
	if it.stage = r.stage(e); it.id == "" && it.ready == nil {
		return errors.New("found no id, expected one")
	}
	r.open = append(r.open, it)
	return nil
}

// stage is what the agent is at: as the event says, else the step that it is in.
func (r *run) stage(e *event) string {
	var s string
	if json.Unmarshal(e.Metadata.Stage, &s) == nil && s != "" {
		return s
	}
	if n := len(r.steps); n > 0 {
		return r.steps[n-1]
	}
	return ""
}

func (r *run) step(name string, begins bool) error {
	if begins {
		if len(r.steps) >= maxRunOpen {
			return fmt.Errorf("found more than %d steps at a time, which is the limit", maxRunOpen)
		}
		r.steps = append(r.steps, fmt.Sprintf("%.200s", name))
		return nil
	}
	for i := len(r.steps) - 1; i >= 0; i-- {
		if r.steps[i] == fmt.Sprintf("%.200s", name) {
			r.steps = append(r.steps[:i], r.steps[i+1:]...)
			break
		}
	}
	return nil
}

// room counts what the run says.
func (r *run) room(n int) error {
	if r.bytes += n; r.bytes > maxRunBytes {
		return fmt.Errorf("found more than %d bytes in a run, which is the limit", maxRunBytes)
	}
	return nil
}

func (r *run) startText(e *event) error {
	if it := r.find(e.MessageID, false); it != nil && e.MessageID != "" {
		it.done = true // begun anew
	}
	if err := r.add(&item{id: e.MessageID, role: e.Role}, e); err != nil {
		return err
	}
	return r.flush()
}

// addText adds to a text. One that was not begun begins now: nothing is lost.
func (r *run) addText(e *event) error {
	it := r.find(e.MessageID, false)
	if it == nil {
		it = &item{id: e.MessageID, role: e.Role, chunks: e.Type == "TEXT_MESSAGE_CHUNK"}
		if err := r.add(it, e); err != nil {
			return err
		}
	}
	if err := r.room(len(e.Delta)); err != nil {
		return err
	}
	it.text.WriteString(e.Delta)
	if it == r.open[0] && it.text.Len() > 0 && it.role != agui.RoleUser {
		r.reply.Stream(it.text.String())
	}
	return nil
}

func (r *run) startCall(e *event) error {
	if it := r.find(e.ToolCallID, true); it != nil && e.ToolCallID != "" {
		it.done = true
	}
	if err := r.add(&item{id: e.ToolCallID, call: true, name: e.ToolCallName}, e); err != nil {
		return err
	}
	return r.room(len(e.ToolCallName))
}

func (r *run) addCall(e *event) error {
	it := r.find(e.ToolCallID, true)
	if it == nil {
		it = &item{id: e.ToolCallID, call: true, name: e.ToolCallName, chunks: e.Type == "TOOL_CALL_CHUNK"}
		if err := r.add(it, e); err != nil {
			return err
		}
	}
	if err := r.room(len(e.Delta)); err != nil {
		return err
	}
	it.text.WriteString(e.Delta)
	return nil
}

// end ends an item, if it is open.
func (r *run) end(it *item) error {
	if it != nil {
		it.done = true
	}
	return r.flush()
}

// result is what a tool gave.
func (r *run) result(e *event) error {
	if e.ToolCallID == "" {
		return errors.New("toolCallId: found none, expected that of a tool call")
	}
	if it := r.find(e.ToolCallID, true); it != nil {
		it.done = true // its end was left out
	}
	m, err := agui.Message{ID: e.ToolCallID, Role: agui.RoleTool, ToolCallID: e.ToolCallID, Content: e.Content}.Canonical()
	if err != nil {
		return err
	}
	if err := r.room(len(e.Content)); err != nil {
		return err
	}
	m.Meta = m.Meta.With(metaMode, "tool")
	return r.whole(m, e)
}

// custom is an event of the application's own. A form is for the user.
func (r *run) custom(e *event) error {
	if e.Name != message.TypeUI {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(e.Value, &fields); err != nil || fields == nil {
		return errors.New("value: found no JSON object, expected {uiId, components, submit?}")
	}
	fields["type"] = json.RawMessage(`"ui"`)
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	var part message.Part
	if err := json.Unmarshal(raw, &part); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	if err := r.room(len(raw)); err != nil {
		return err
	}
	parts := message.Number([]message.Part{part})
	if err := message.Validate(parts, message.HostLimits()).Err(); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return r.whole(message.New(parts...), e)
}

// whole is a message that is there at once.
func (r *run) whole(m message.Message, e *event) error {
	if err := r.add(&item{done: true, ready: &m}, e); err != nil {
		return err
	}
	return r.flush()
}

// finish ends the run with all that is open.
func (r *run) finish(*event) error {
	for _, it := range r.open {
		it.done = true
	}
	r.over = true
	return r.flush()
}

// broken keeps what can be kept of a run that failed: a text that is open stays
// as it was shown, which is for the hub to end.
func (r *run) broken(err error) error {
	if r.ctx.Err() == nil {
		err = errors.Join(err, r.flush())
	}
	return err
}

// flush sends what has ended, up to the first item that has not, and shows that.
func (r *run) flush() error {
	for len(r.open) > 0 && r.open[0].done {
		it := r.open[0]
		r.open = r.open[1:]
		m, ok, err := it.message()
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		m.Meta = m.Meta.With(agui.MetaRunID, r.id)
		if it.stage != "" {
			m.Meta = m.Meta.With(metaStage, it.stage)
		}
		if _, err := r.reply.Send(r.ctx, m); err != nil {
			return err
		}
		if len(r.open) > 0 && !r.open[0].done && !r.open[0].call && r.open[0].text.Len() > 0 && r.open[0].role != agui.RoleUser {
			r.reply.Stream(r.open[0].text.String())
		}
	}
	return nil
}

// message is what the item says; false = nothing.
func (it *item) message() (message.Message, bool, error) {
	switch {
	case it.ready != nil:
		return *it.ready, true, nil
	case it.call:
		m, err := it.toolCall()
		return m, err == nil, err
	case it.text.Len() == 0 || it.role == agui.RoleUser: // an echo of what was asked
		return message.Message{}, false, nil
	}
	m := message.Text(it.text.String())
	if it.role != "" && it.role != agui.RoleAssistant {
		m.Meta = m.Meta.With(message.MetaRole, it.role)
	}
	return m, true, nil
}

func (it *item) toolCall() (message.Message, error) {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	arguments := it.text.String()
	if strings.TrimSpace(arguments) == "" { // a tool that takes none
		arguments = "{}"
	}
	raw, err := json.Marshal(struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{it.id, "function", function{it.name, arguments}})
	if err != nil {
		return message.Message{}, err
	}
	m, err := agui.Message{ID: it.id, Role: agui.RoleAssistant, ToolCalls: []json.RawMessage{raw}}.Canonical()
	m.Meta = m.Meta.With(metaMode, "tool")
	return m, err
}
