package compose

import (
	"fmt"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Body is content, and what is to be done with it.
type Body struct {
	Content
	Update *Update `json:"update,omitempty"`
	Typing *bool   `json:"typing,omitempty" doc:"Show or end the typing indicator"`
}

// Update names the message that is changed: one of both is set.
type Update struct {
	PreviewHandle string `json:"preview_handle,omitempty" maxLength:"4096"`
	MessageID     string `json:"message_id,omitempty" maxLength:"64"`
}

// OnlyTyping reports that there is nothing to be sent.
func (b Body) OnlyTyping() bool { return b.Typing != nil && b.Empty() && b.Update == nil }

// Check is a Fault of an update that names no message.
func (u *Update) Check() error {
	if u.PreviewHandle == "" && u.MessageID == "" {
		return fault("update", "found neither preview_handle nor message_id, expected one", "")
	}
	return nil
}

// Mark makes the message a change of the one that the platform knows by the
// handle.
func (u *Update) Mark(m *message.Message, handle string) {
	m.Meta = m.Meta.With(message.MetaEdits, u.MessageID).With(message.MetaPreviewHandle, handle)
}

// Path is a file of the host's machine that the content names.
type Path struct{ At, Path string }

// Paths lists them: they are not for everybody to hand out.
func (c Content) Paths() []Path {
	var out []Path
	if c.Image != nil && c.Image.Path != "" {
		out = append(out, Path{"image.path", c.Image.Path})
	}
	if c.File != nil && c.File.Path != "" {
		out = append(out, Path{"file.path", c.File.Path})
	}
	for i, p := range c.Parts {
		for name, path := range p.LocalFiles() {
			out = append(out, Path{fmt.Sprintf("parts[%d].%s", i, name), path})
		}
	}
	return out
}
