package message

// The types of parts that have a struct of their own. Any other type passes
// through as it came.
const (
	TypeText           = "text"
	TypeTextDelta      = "text-delta"
	TypeMarkdown       = "markdown"
	TypeCitation       = "citation"
	TypeChips          = "suggestion-chips"
	TypeCarousel       = "product-carousel"
	TypeOrder          = "order-summary"
	TypeCustom         = "custom"
	TypeToolCall       = "tool-call"
	TypeToolResult     = "tool-result"
	TypeFile           = "file"
	TypeTransfer       = "agent-transfer"
	TypeDiagnostic     = "diagnostic"
	TypeEndSession     = "end-session"
	TypeError          = "error"
	TypeAudioInput     = "audio-input"
	TypeAudioOutput    = "audio-output"
	TypeTranscript     = "transcript"
	TypeAudioCue       = "audio-cue"
	TypeVision         = "vision"
	TypeMemoryApproval = "memory-approval"
	TypeMemoryRecall   = "memory-recall-result"
	TypeSentiment      = "sentiment-signal"
	TypeIntent         = "intent-signal"
	TypeComputerUse    = "computer-use-surface"
	TypeA2UI           = "a2ui-surface"
	TypeUI             = "ui"
	TypeUISubmit       = "ui_submit"
)

// ToolStatus is where a tool call stands.
type ToolStatus string

// The statuses of a tool call.
const (
	ToolRequested         ToolStatus = "requested"          // the agent asked for the call
	ToolAwaitingApproval  ToolStatus = "awaiting_approval"  // the user or the host must allow it
	ToolPendingSupervisor ToolStatus = "pending_supervisor" // a supervisor must allow it
	ToolAsyncPending      ToolStatus = "async_pending"      // accepted, ends later
	ToolApproved          ToolStatus = "approved"
	ToolDenied            ToolStatus = "denied"
	ToolExecuting         ToolStatus = "executing"
	ToolCompleted         ToolStatus = "completed"
	ToolFailed            ToolStatus = "failed"
	ToolTimedOut          ToolStatus = "timed_out"
	ToolDuplicate         ToolStatus = "duplicate" // its idempotency key was seen before
)

// Values are all that are allowed.
func (ToolStatus) Values() []string {
	return []string{"requested", "awaiting_approval", "pending_supervisor", "async_pending", "approved", "denied", "executing", "completed",
		"failed", "timed_out", "duplicate"}
}

// UploadStatus is the coarse state of a file's upload.
type UploadStatus string

// The coarse states of an upload.
const (
	UploadPending   UploadStatus = "pending"
	UploadUploading UploadStatus = "uploading"
	UploadCompleted UploadStatus = "completed" // the part has a url
	UploadFailed    UploadStatus = "failed"
)

// Values are all that are allowed.
func (UploadStatus) Values() []string { return []string{"pending", "uploading", "completed", "failed"} }

// Lifecycle is the fine state of a file; where present it is preferred to
// UploadStatus.
type Lifecycle string

// The fine states of a file.
const (
	FileSelected    Lifecycle = "selected"
	FileValidating  Lifecycle = "validating"
	FileRejected    Lifecycle = "rejected"
	FileQueued      Lifecycle = "queued"
	FileUploading   Lifecycle = "uploading"
	FileUploaded    Lifecycle = "uploaded"
	FileScanPending Lifecycle = "scan_pending"
	FileScanFailed  Lifecycle = "scan_failed"
	FileReadyToSend Lifecycle = "ready_to_send"
	FileSent        Lifecycle = "sent"
	FileFailed      Lifecycle = "failed"
	FileRemoved     Lifecycle = "removed"
)

// Values are all that are allowed.
func (Lifecycle) Values() []string {
	return []string{"selected", "validating", "rejected", "queued", "uploading", "uploaded", "scan_pending", "scan_failed", "ready_to_send",
		"sent", "failed", "removed"}
}

// EndReason says why a session ended.
type EndReason string

// The reasons for the end of a session.
const (
	EndCompleted        EndReason = "completed"
	EndTimeout          EndReason = "timeout"
	EndError            EndReason = "error"
	EndUserEnded        EndReason = "user_ended"
	EndAgentEnded       EndReason = "agent_ended"
	EndHandoffCompleted EndReason = "handoff_completed"
)

// Values are all that are allowed.
func (EndReason) Values() []string {
	return []string{"completed", "timeout", "error", "user_ended", "agent_ended", "handoff_completed"}
}

// InputStatus is where a recording stands.
type InputStatus string

// The states of a recording.
const (
	InputCapturing InputStatus = "capturing"
	InputCompleted InputStatus = "completed"
	InputCancelled InputStatus = "cancelled"
	InputFailed    InputStatus = "failed"
)

// Values are all that are allowed.
func (InputStatus) Values() []string {
	return []string{"capturing", "completed", "cancelled", "failed"}
}

// OutputStatus is where spoken output stands.
type OutputStatus string

// The states of spoken output.
const (
	OutputStreaming   OutputStatus = "streaming"
	OutputCompleted   OutputStatus = "completed"
	OutputInterrupted OutputStatus = "interrupted" // the user spoke; playedUpToMs says where
)

// Values are all that are allowed.
func (OutputStatus) Values() []string { return []string{"streaming", "completed", "interrupted"} }

// Cue is a signal of a voice session.
type Cue string

// The signals of a voice session.
const (
	CueSessionReady  Cue = "session-ready"
	CueSessionEnded  Cue = "session-ended"
	CueSpeechStarted Cue = "speech-started"
	CueSilence       Cue = "silence-threshold-hit"
	CueEndOfTurn     Cue = "end-of-turn"
	CueBargeIn       Cue = "barge-in"
)

// Values are all that are allowed.
func (Cue) Values() []string {
	return []string{"session-ready", "session-ended", "speech-started", "silence-threshold-hit", "end-of-turn", "barge-in"}
}

// VisionKind says who made an image.
type VisionKind string

// The kinds of images.
const (
	VisionInput  VisionKind = "input"  // the user gave it
	VisionOutput VisionKind = "output" // the agent made it
)

// Values are all that are allowed.
func (VisionKind) Values() []string { return []string{"input", "output"} }

// MemoryOperation is what is to happen to a memory.
type MemoryOperation string

// The operations on memories.
const (
	MemorySave   MemoryOperation = "save"
	MemoryUpdate MemoryOperation = "update"
	MemoryDelete MemoryOperation = "delete"
)

// Values are all that are allowed.
func (MemoryOperation) Values() []string { return []string{"save", "update", "delete"} }

// ComponentType is a component of a form.
type ComponentType string

// The components of a form.
const (
	UIHeading       ComponentType = "heading"
	UIText          ComponentType = "text"
	UIInput         ComponentType = "input"
	UITextarea      ComponentType = "textarea"
	UIRadio         ComponentType = "radio"
	UISelect        ComponentType = "select"
	UICheckbox      ComponentType = "checkbox"
	UICheckboxGroup ComponentType = "checkbox-group"
)

// Values are all that are allowed.
func (ComponentType) Values() []string {
	return []string{"heading", "text", "input", "textarea", "radio", "select", "checkbox", "checkbox-group"}
}

// Values are all that are allowed.
func (Role) Values() []string { return []string{"user", "agent"} }

// Values are all that are allowed.
func (Status) Values() []string { return []string{"pending", "streaming", "completed", "error"} }
