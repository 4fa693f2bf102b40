package message

import (
	"encoding/json"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Files, pictures and voice.

// FilePart is a document by address, never its bytes.
type FilePart struct {
	Base
	AttachmentID    string          `json:"attachmentId,omitempty"`
	FileName        string          `json:"fileName"`
	MimeType        string          `json:"mimeType,omitempty"`  // absent on some converted parts
	SizeBytes       *float64        `json:"sizeBytes,omitempty"` // likewise
	URL             string          `json:"url,omitempty"`
	UploadStatus    UploadStatus    `json:"uploadStatus,omitempty"`
	UploadProgress  *float64        `json:"uploadProgress,omitempty"`
	LifecycleStatus Lifecycle       `json:"lifecycleStatus,omitempty"`
	Preview         *FilePreview    `json:"preview,omitempty"`
	ScanStatus      json.RawMessage `json:"scanStatus,omitempty"`

	Path    string `json:"path,omitempty"`    // ours: a file of the host's machine
	Caption string `json:"caption,omitempty"` // ours: a line beside it
}

// FilePreview is what may be known of a file before it is there. Other keys are
// dropped: they could hold what is in the file.
type FilePreview struct {
	Kind      string   `json:"kind,omitempty"`
	FileName  string   `json:"fileName,omitempty"`
	MimeType  string   `json:"mimeType,omitempty"`
	SizeBytes *float64 `json:"sizeBytes,omitempty"`
}

// VisionPart is an image, by address or as base64 in Data.
type VisionPart struct {
	Base
	Kind      VisionKind `json:"kind"`
	MimeType  string     `json:"mimeType"`
	URL       string     `json:"url,omitempty"`
	Data      string     `json:"data,omitempty"`
	Width     *float64   `json:"width,omitempty"`
	Height    *float64   `json:"height,omitempty"`
	AltText   string     `json:"altText,omitempty"`
	Caption   string     `json:"caption,omitempty"`
	SizeBytes *float64   `json:"sizeBytes,omitempty"`

	Path string `json:"path,omitempty"` // ours: a file of the host's machine
}

// AudioInputPart is what a user said.
type AudioInputPart struct {
	Base
	MimeType   string      `json:"mimeType"`
	Status     InputStatus `json:"status"`
	DurationMs *float64    `json:"durationMs,omitempty"`
	SampleRate *float64    `json:"sampleRate,omitempty"`
	Channels   *float64    `json:"channels,omitempty"`
	URL        string      `json:"url,omitempty"`
	Retained   *bool       `json:"retained,omitempty"`
}

// AudioOutputPart is what an agent said.
type AudioOutputPart struct {
	Base
	MimeType     string       `json:"mimeType"`
	Status       OutputStatus `json:"status"`
	DurationMs   *float64     `json:"durationMs,omitempty"`
	SampleRate   *float64     `json:"sampleRate,omitempty"`
	URL          string       `json:"url,omitempty"`
	Retained     *bool        `json:"retained,omitempty"`
	PlayedUpToMs *float64     `json:"playedUpToMs,omitempty"`
}

// TranscriptPart is speech as text. An interim one is replaced by its final.
type TranscriptPart struct {
	Base
	Role       string   `json:"role"`
	Text       string   `json:"text"`
	Interim    bool     `json:"interim"`
	Confidence *float64 `json:"confidence,omitempty"`
	Language   string   `json:"language,omitempty"`
	AudioRefID string   `json:"audioRefId,omitempty"`
}

// AudioCuePart is a signal of a voice session.
type AudioCuePart struct {
	Base
	Cue        Cue                        `json:"cue"`
	ResponseID string                     `json:"responseId,omitempty"`
	Metadata   map[string]json.RawMessage `json:"metadata,omitempty"`
}

func (FilePart) partType() string        { return TypeFile }
func (VisionPart) partType() string      { return TypeVision }
func (AudioInputPart) partType() string  { return TypeAudioInput }
func (AudioOutputPart) partType() string { return TypeAudioOutput }
func (TranscriptPart) partType() string  { return TypeTranscript }
func (AudioCuePart) partType() string    { return TypeAudioCue }

// NewImage is a picture that an agent sends.
func NewImage(i wire.Image) Part {
	return Of(VisionPart{Kind: VisionOutput, URL: i.URL, Path: i.Path, Caption: i.Caption})
}

// NewVision is an image.
func NewVision(v VisionPart) Part { return Of(v) }

// NewFile is a document that an agent sends.
func NewFile(f wire.File) Part {
	return Of(FilePart{FileName: f.Filename, URL: f.URL, Path: f.Path, Caption: f.Caption})
}

// NewAttachment is a document with all that is known of it.
func NewAttachment(f FilePart) Part { return Of(f) }

// NewAudioInput is what a user said.
func NewAudioInput(a AudioInputPart) Part { return Of(a) }

// NewAudioOutput is what an agent said.
func NewAudioOutput(a AudioOutputPart) Part { return Of(a) }

// NewTranscript is speech as text.
func NewTranscript(t TranscriptPart) Part { return Of(t) }

// NewAudioCue is a signal of a voice session.
func NewAudioCue(cue Cue) Part { return Of(AudioCuePart{Cue: cue}) }
