package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// content reads the message that a frame carries. A plain text pays nothing here.
func (f *inbound) content(in *wire.Inbound) *wire.Error {
	f.asked = message.Message{Role: message.RoleUser, Status: message.StatusCompleted, Text: in.Text}
	switch {
	case f.said != nil:
		return f.admitSaid()
	case in.Later == nil:
		return nil
	case in.Type == wire.TypeFormSubmit:
		return f.submitted(in)
	}
	parts, err := message.ParseParts([]byte(in.Later.Parts))
	if err != nil {
		return &wire.Error{Code: wire.CodeWrongType, Message: err.Error()}
	}
	given := &in.Text
	switch {
	case in.Later.NoText:
		given = nil
	case in.Later.Parts == "" && in.Text != "": // the text stands beside the attachments
		parts = append(parts, message.NewText(in.Text))
	}
	for i, a := range in.Later.Attachments {
		p, werr := f.attachment(i, a)
		if werr != nil {
			return werr
		}
		parts = append(parts, p)
	}
	return f.admit(message.Content{Text: given, Parts: parts})
}

// admit takes the content leniently: what is odd is kept, with a warning.
func (f *inbound) admit(c message.Content) *wire.Error {
	files := f.a.channel.hub.Attachments
	var warnings message.Problems
	for i, p := range c.Parts {
		for name := range p.LocalFiles() { // of the host's machine, which the sender can't know
			c.Parts[i] = p.WithoutLocalFiles()
			warnings = append(warnings, message.Problem{Part: i, Type: p.Type, Field: name, Found: "a file of this machine", Allowed: "an http or https url"})
		}
	}
	parts, found, err := message.Admit(c.Parts, message.HostLimits())
	if err != nil {
		var over message.Problems
		errors.As(err, &over)
		return &wire.Error{Code: over.Code(), Message: err.Error()}
	}
	if parts, err = files.ToStore(f.a.channel.owner, parts); err != nil {
		return &wire.Error{Code: wire.CodeWrongType, Message: err.Error()}
	}
	c.Parts = message.Number(parts)
	m, err := c.Message(message.RoleUser)
	if err != nil {
		return &wire.Error{Code: wire.CodeMissingField, Message: err.Error()}
	}
	m.Meta = m.Meta.Warn(append(warnings, found...))
	if objects := files.Objects(m.Parts); len(objects) > 0 {
		if m.Meta == nil {
			m.Meta = message.Meta{}
		}
		m.Meta[message.MetaAttachments] = attachedFiles(objects)
	}
	f.asked = m
	return nil
}

// attachedFiles are the files of a message as its metadata name them: one
// object, or a list of several.
func attachedFiles(objects []attach.Object) []byte {
	type file struct {
		Bucket   string `json:"bucket"`
		Path     string `json:"path"`
		MimeType string `json:"mime_type"`
	}
	files := make([]file, len(objects))
	for i, o := range objects {
		files[i] = file{o.Bucket, o.Path, o.MimeType}
	}
	if len(files) == 1 {
		return marshal(files[0])
	}
	return marshal(files)
}

// attachment makes the part of a file that came with a message: one that was
// uploaded before, or one at an address of its own.
func (f *inbound) attachment(i int, a wire.Attachment) (message.Part, *wire.Error) {
	kind := fmt.Sprintf("attachments[%d].", i)
	if a.AttachmentID == "" {
		if !strings.HasPrefix(a.URL, "https://") && !strings.HasPrefix(a.URL, "http://") {
			return message.Part{}, &wire.Error{Code: wire.CodeWrongType, Message: kind + "url: found " + fmt.Sprintf("%.64q", a.URL) + ", expected an http or https url"}
		}
		return filePart(a, a.URL), nil
	}
	c := f.a.channel
	o, err := c.hub.Attachments.Of(c.owner, a.AttachmentID)
	if errors.Is(err, attach.ErrNotFound) {
		return message.Part{}, &wire.Error{Code: wire.CodeWrongType, Message: fmt.Sprintf(
			"%sattachment_id: found %.80q, expected that of a finished upload of this channel", kind, a.AttachmentID)}
	}
	if err != nil {
		c.hub.Log.Error("attachment not read", "channel", c.name(), "attachment", a.AttachmentID, "error", err)
		return message.Part{}, &wire.Error{Code: wire.CodeStorageUnavailable, Message: "the attachment could not be read: send the message again later"}
	}
	if a.Name == "" {
		a.Name = o.Name
	}
	a.MimeType, a.SizeBytes = o.MimeType, o.SizeBytes // by its bytes, whatever was said
	return filePart(a, c.hub.Attachments.SignID(o.ID(), 0)), nil
}

// filePart is the part for a file by what it is.
func filePart(a wire.Attachment, url string) message.Part {
	var size *float64
	if n := float64(a.SizeBytes); n > 0 {
		size = &n
	}
	switch a.MimeType {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return message.NewVision(message.VisionPart{Kind: message.VisionInput, MimeType: a.MimeType, URL: url, Caption: a.Caption, SizeBytes: size})
	}
	if strings.HasPrefix(a.MimeType, "audio/") && a.Caption == "" {
		return message.NewAudioInput(message.AudioInputPart{MimeType: a.MimeType, Status: message.InputCompleted, URL: url})
	}
	if a.Name == "" {
		a.Name = "file"
	}
	return message.NewAttachment(message.FilePart{
		AttachmentID: a.AttachmentID, FileName: a.Name, MimeType: a.MimeType, SizeBytes: size, URL: url,
		UploadStatus: message.UploadCompleted, Caption: a.Caption,
	})
}

// submitted reads a form filled in.
func (f *inbound) submitted(in *wire.Inbound) *wire.Error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(in.Later.Values), &values); err != nil {
		return &wire.Error{Code: wire.CodeWrongType, Message: "values: " + err.Error()}
	}
	return f.admit(message.Content{Parts: []message.Part{message.Of(message.UISubmitPart{UIID: in.Later.UIID, Values: values})}})
}
