package agui

import (
	"bytes"
	"encoding/json"
)

// Types of AG-UI events that a run has.
const (
	runStarted     = "RUN_STARTED"
	runFinished    = "RUN_FINISHED"
	runError       = "RUN_ERROR"
	textStart      = "TEXT_MESSAGE_START"
	textContent    = "TEXT_MESSAGE_CONTENT"
	textEnd        = "TEXT_MESSAGE_END"
	toolCallStart  = "TOOL_CALL_START"
	toolCallArgs   = "TOOL_CALL_ARGS"
	toolCallEnd    = "TOOL_CALL_END"
	toolCallResult = "TOOL_CALL_RESULT"
	custom         = "CUSTOM"
)

// event is one event of AG-UI. Which fields count follows from Type.
type event struct {
	Type      string `json:"type"`
	ThreadID  string `json:"threadId,omitempty"`
	RunID     string `json:"runId,omitempty"`
	MessageID string `json:"messageId,omitempty"`
	Role      string `json:"role,omitempty"`
	Delta     string `json:"delta,omitempty"` // never empty where it counts: AG-UI forbids that

	ToolCallID      string  `json:"toolCallId,omitempty"`
	ToolCallName    string  `json:"toolCallName,omitempty"`
	ParentMessageID string  `json:"parentMessageId,omitempty"`
	Content         *string `json:"content,omitempty"` // of a result

	Name  string          `json:"name,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`

	Message string `json:"message,omitempty"`
	Code    string `json:"code,omitempty"`

	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// append appends the event as it is sent: one line of data, then an empty one.
func (e *event) append(dst []byte) []byte {
	b := bytes.NewBuffer(append(dst, "data: "...))
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("agui: marshal event: " + err.Error()) // strings, and JSON that was read
	}
	return append(b.Bytes(), '\n') // Encode ends the line
}

// alive is a comment, which no client takes for an event.
const alive = ": alive\n\n"
