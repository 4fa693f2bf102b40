package render

import (
	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func (p *planner) image(v message.VisionPart) {
	img := wire.Image{URL: v.URL, Caption: v.Caption}
	if p.View.Local {
		img.Path = v.Path
	}
	frame := wire.Frame{Type: wire.TypeSendImage, Image: &img}
	p.media("image", wire.CapImage, frame, img.URL != "" || img.Path != "", mediaText(v.Caption, v.AltText, v.URL))
}

func (p *planner) file(f message.FilePart) {
	file := wire.File{URL: f.URL, Filename: f.FileName, Caption: f.Caption}
	if p.View.Local {
		file.Path = f.Path
	}
	frame := wire.Frame{Type: wire.TypeSendFile, File: &file}
	p.media("file", wire.CapFile, frame, file.URL != "" || file.Path != "", mediaText(f.Caption, f.FileName, f.URL))
}

// audio → send_audio → file → text with the link.
func (p *planner) audio(from, url, mime string, ms *float64) {
	if url == "" {
		p.note(from, "none", reasonEmpty)
		return
	}
	sound := &wire.Audio{URL: url, MimeType: mime}
	if ms != nil {
		sound.DurationMS = int64(*ms)
	}
	if frame := (wire.Frame{Type: wire.TypeSendAudio, Audio: sound}); p.View.Caps.Has(wire.CapAudio) && p.fits(frame) {
		p.add(frame)
		return
	}
	frame := wire.Frame{Type: wire.TypeSendFile, File: &wire.File{URL: url}}
	if p.View.Caps.Has(wire.CapFile) && p.fits(frame) {
		p.note(from, "file", reasonNoFrame)
		p.add(frame)
		return
	}
	p.instead(from, reasonNotEffective, url)
}

// media sends the frame, or the text in its place.
func (p *planner) media(name string, needs wire.Caps, frame wire.Frame, reachable bool, text string) {
	reason := reasonNotEffective
	switch {
	case !reachable:
		reason = reasonUnreachable
	case p.View.Caps.Has(needs) && p.fits(frame):
		p.add(frame)
		return
	case p.View.Caps.Has(needs):
		reason = reasonTooLarge
	}
	p.instead(name, reason, text)
}
