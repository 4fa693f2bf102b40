package message

import "encoding/json"

// What happens around a conversation: tools, handover, errors, memories,
// classifications and surfaces that an agent shares.

// ToolCallPart is a call of a tool and what became of it.
type ToolCallPart struct {
	Base
	ToolCallID           string          `json:"toolCallId"`
	ToolName             string          `json:"toolName"`
	Input                json.RawMessage `json:"input"`
	Status               ToolStatus      `json:"status"`
	Output               json.RawMessage `json:"output,omitempty"`
	Error                json.RawMessage `json:"error,omitempty"`
	IdempotencyKey       string          `json:"idempotencyKey,omitempty"`
	DuplicateDisposition json.RawMessage `json:"duplicateDisposition,omitempty"`
	ApprovalPolicy       json.RawMessage `json:"approvalPolicy,omitempty"`
}

// ToolResultPart is what a tool gave.
type ToolResultPart struct {
	Base
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Output     json.RawMessage `json:"output"`
	Error      json.RawMessage `json:"error,omitempty"`
}

// TransferPart says how a handover to a person goes.
type TransferPart struct {
	Base
	Status            string          `json:"status"`
	TargetAgent       string          `json:"targetAgent,omitempty"`
	Reason            string          `json:"reason,omitempty"`
	QueuePosition     *float64        `json:"queuePosition,omitempty"`
	EstimatedWaitTime json.RawMessage `json:"estimatedWaitTime,omitempty"`
}

// DiagnosticPart is an event for whoever runs the system.
type DiagnosticPart struct {
	Base
	Category  string          `json:"category"`
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"`
	Timestamp json.RawMessage `json:"timestamp"`
}

// EndSessionPart ends a session.
type EndSessionPart struct {
	Base
	Reason  EndReason `json:"reason"`
	Message string    `json:"message,omitempty"`
}

// ErrorPart is an error in the course of a conversation. UserMessage is the
// only part of it that end users are to see.
type ErrorPart struct {
	Base
	Code          string `json:"code"`
	Message       string `json:"message"`
	UserMessage   string `json:"userMessage,omitempty"`
	DeveloperHint string `json:"developerHint,omitempty"`
	DocsURL       string `json:"docsUrl,omitempty"`
	Retryable     *bool  `json:"retryable,omitempty"`
}

// MemoryApprovalPart asks whether something may be remembered.
type MemoryApprovalPart struct {
	Base
	Operation MemoryOperation `json:"operation"`
	EntryID   string          `json:"entryId,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	Status    string          `json:"status"`
}

// MemoryRecallPart is what was remembered.
type MemoryRecallPart struct {
	Base
	Query   string            `json:"query,omitempty"`
	Entries []json.RawMessage `json:"entries"`
}

// SentimentPart classifies the mood of a message.
type SentimentPart struct {
	Base
	Category            string  `json:"category"`
	Score               float64 `json:"score"`
	Confidence          float64 `json:"confidence"`
	Polarity            string  `json:"polarity"`
	Source              string  `json:"source"`
	LatencyMs           float64 `json:"latencyMs"`
	AttributedMessageID string  `json:"attributedMessageId,omitempty"`
}

// IntentPart classifies what a message is for.
type IntentPart struct {
	Base
	Intent              string  `json:"intent"`
	Score               float64 `json:"score"`
	Confidence          float64 `json:"confidence"`
	Source              string  `json:"source"`
	LatencyMs           float64 `json:"latencyMs"`
	AttributedMessageID string  `json:"attributedMessageId,omitempty"`
}

// ComputerUsePart shows a browser that an agent works in.
type ComputerUsePart struct {
	Base
	SessionID string            `json:"sessionId"`
	State     string            `json:"state"`
	StreamURL string            `json:"streamUrl,omitempty"`
	ActionLog []json.RawMessage `json:"actionLog"`
	Error     json.RawMessage   `json:"error,omitempty"`
}

// A2UIPart is a surface that an agent builds.
type A2UIPart struct {
	Base
	SurfaceID  string          `json:"surfaceId"`
	State      string          `json:"state"`
	Components json.RawMessage `json:"components"`
	DataModel  json.RawMessage `json:"dataModel,omitempty"`
}

func (ToolCallPart) partType() string       { return TypeToolCall }
func (ToolResultPart) partType() string     { return TypeToolResult }
func (TransferPart) partType() string       { return TypeTransfer }
func (DiagnosticPart) partType() string     { return TypeDiagnostic }
func (EndSessionPart) partType() string     { return TypeEndSession }
func (ErrorPart) partType() string          { return TypeError }
func (MemoryApprovalPart) partType() string { return TypeMemoryApproval }
func (MemoryRecallPart) partType() string   { return TypeMemoryRecall }
func (SentimentPart) partType() string      { return TypeSentiment }
func (IntentPart) partType() string         { return TypeIntent }
func (ComputerUsePart) partType() string    { return TypeComputerUse }
func (A2UIPart) partType() string           { return TypeA2UI }

// NewToolCall is a call of a tool; input is any JSON.
func NewToolCall(id, name string, input json.RawMessage, status ToolStatus) Part {
	return Of(ToolCallPart{ToolCallID: id, ToolName: name, Input: input, Status: status})
}

// NewToolResult is what a tool gave; output is any JSON.
func NewToolResult(id, name string, output json.RawMessage) Part {
	return Of(ToolResultPart{ToolCallID: id, ToolName: name, Output: output})
}

// NewTransfer says how a handover goes.
func NewTransfer(t TransferPart) Part { return Of(t) }

// NewDiagnostic is an event for whoever runs the system; timestamp is ISO 8601.
func NewDiagnostic(category, text, timestamp string) Part {
	raw, err := json.Marshal(timestamp)
	if err != nil {
		panic("message: marshal a string: " + err.Error())
	}
	return Of(DiagnosticPart{Category: category, Message: text, Timestamp: raw})
}

// NewEndSession ends a session; text may be empty.
func NewEndSession(why EndReason, text string) Part {
	return Of(EndSessionPart{Reason: why, Message: text})
}

// NewError is an error; userMessage is what end users see, and may be empty.
func NewError(code, text, userMessage string) Part {
	return Of(ErrorPart{Code: code, Message: text, UserMessage: userMessage})
}

// NewMemoryApproval asks whether something may be remembered.
func NewMemoryApproval(m MemoryApprovalPart) Part { return Of(m) }

// NewMemoryRecall is what was remembered.
func NewMemoryRecall(query string, entries ...json.RawMessage) Part {
	return Of(MemoryRecallPart{Query: query, Entries: entries})
}

// NewSentiment classifies the mood of a message.
func NewSentiment(s SentimentPart) Part { return Of(s) }

// NewIntent classifies what a message is for.
func NewIntent(i IntentPart) Part { return Of(i) }

// NewComputerUse shows a browser that an agent works in.
func NewComputerUse(c ComputerUsePart) Part { return Of(c) }

// NewA2UI is a surface that an agent builds.
func NewA2UI(a A2UIPart) Part { return Of(a) }
