package render

import (
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// parts shows each part by its own ladder. What follows from one to the next is
// seen here: sources stand together, and chips belong to the text before them.
func (p *planner) parts(parts []message.Part) {
	for i := 0; i < len(parts); i++ {
		if parts[i].Type == message.TypeCitation {
			n := i + 1
			for n < len(parts) && parts[n].Type == message.TypeCitation {
				n++
			}
			p.citations(parts[i:n])
			i = n - 1
			continue
		}
		if !p.part(parts[i]) {
			p.note(parts[i].Type, "none", reasonMalformed)
		}
	}
}

// part is false if the part is malformed.
func (p *planner) part(part message.Part) bool {
	switch part.Type {
	case message.TypeText:
		return show(part, func(t message.TextPart) { p.text(t.Text) })
	case message.TypeMarkdown:
		return show(part, func(m message.MarkdownPart) { p.markdown(part.Type, m.Markdown) })
	case message.TypeChips:
		return show(part, p.chips)
	case message.TypeCarousel:
		return show(part, p.carousel)
	case message.TypeOrder:
		return show(part, p.order)
	case message.TypeCustom:
		return p.custom(part)
	case message.TypeVision:
		return show(part, p.image)
	case message.TypeFile:
		return show(part, p.file)
	case message.TypeAudioInput:
		return show(part, func(a message.AudioInputPart) { p.audio(part.Type, a.URL, a.MimeType, a.DurationMs) })
	case message.TypeAudioOutput:
		return show(part, func(a message.AudioOutputPart) { p.audio(part.Type, a.URL, a.MimeType, a.DurationMs) })
	case message.TypeUI:
		return show(part, func(ui message.UIPart) { p.form(part.Raw(), ui) })
	}
	return p.told(part)
}

// told shows the parts that are a sentence, or nothing, to whoever chats.
func (p *planner) told(part message.Part) bool {
	switch part.Type {
	case message.TypeError:
		return show(part, func(e message.ErrorPart) {
			if e.UserMessage == "" {
				p.instead(part.Type, reasonNotForUsers, "Something went wrong.")
				return
			}
			p.text(e.UserMessage)
		})
	case message.TypeTransfer:
		return show(part, func(t message.TransferPart) { p.instead(part.Type, reasonNoFrame, transferText(t)) })
	case message.TypeEndSession:
		return show(part, func(e message.EndSessionPart) { p.sentence(part.Type, e.Message) })
	case message.TypeTranscript:
		return show(part, func(t message.TranscriptPart) {
			if t.Interim {
				p.note(part.Type, "none", reasonInterim)
				return
			}
			p.sentence(part.Type, t.Text)
		})
	case message.TypeMemoryApproval:
		return show(part, func(m message.MemoryApprovalPart) { p.instead(part.Type, reasonNoFrame, approvalText(m)) })
	case message.TypeComputerUse:
		return show(part, func(c message.ComputerUsePart) { p.instead(part.Type, reasonNoFrame, c.StreamURL) })
	case message.TypeUISubmit:
		return show(part, func(s message.UISubmitPart) { p.instead(part.Type, reasonNoFrame, submitText(s)) })
	case message.TypeToolCall, message.TypeToolResult, message.TypeDiagnostic, message.TypeAudioCue, message.TypeMemoryRecall,
		message.TypeSentiment, message.TypeIntent:
		p.note(part.Type, "none", reasonNotForUsers)
		return true
	}
	p.instead(part.Type, reasonNoText, message.TextField(part.Raw(), "text", "markdown", "message", "title"))
	return true
}

// show decodes the part and passes it on; false if it is malformed.
func show[T message.View](part message.Part, fn func(T)) bool {
	v, err := message.As[T](part)
	if err != nil {
		return false
	}
	fn(v)
	return true
}

// sentence is text that is all there is of a part.
func (p *planner) sentence(from, text string) {
	if text == "" {
		p.note(from, "none", reasonEmpty)
		return
	}
	p.instead(from, reasonNoFrame, text)
}

// markdown is sent as it is where the far end shows all of it, else flattened.
func (p *planner) markdown(from, md string) {
	flat := flatten(md, p.level())
	if flat != md {
		p.note(from, "text", reasonMarkdown)
	}
	p.text(flat)
}

// level is the markdown that the far end shows. What says nothing of it shows
// none: stars and brackets read worse than text without them.
func (p *planner) level() string { return firstOf(p.View.Profile.Markdown, "none") }

// citations are the sources of what was said, one a line.
func (p *planner) citations(parts []message.Part) {
	var lines []string
	for _, part := range parts {
		c, err := message.As[message.CitationPart](part)
		if err != nil {
			p.note(part.Type, "none", reasonMalformed)
			continue
		}
		to := "text"
		if p.level() == "none" {
			lines = append(lines, citationText(c))
		} else {
			to = "markdown"
			lines = append(lines, citationMarkdown(c))
		}
		p.note(part.Type, to, reasonNoFrame)
	}
	if len(lines) > 0 {
		p.text(strings.Join(lines, "\n"))
	}
}

// chips → buttons → a card with a select → numbered text. They belong to the
// text before them, if there is one.
func (p *planner) chips(c message.ChipsPart) {
	rows := chipRows(c)
	if len(rows) == 0 {
		p.note(message.TypeChips, "none", reasonEmpty)
		return
	}
	p.out.Offers = true
	reason := reasonNotEffective
	if p.View.Caps.Has(wire.CapButtons) {
		if reason = p.buttonsFit(rows); reason == "" {
			p.note(message.TypeChips, "buttons", reasonNoFrame)
			p.addButtons(p.takeText(len(wire.AppendRows(nil, rows))+len(`,"buttons":`), "Choose one:"), rows)
			return
		}
	}
	if p.View.Caps.Has(wire.CapCard) {
		card := chipCard(c)
		if frame := (wire.Frame{Type: wire.TypeSendCard, Card: card}); p.fits(frame) {
			p.note(message.TypeChips, "card", reasonNoFrame)
			p.add(frame)
			return
		}
		reason = reasonTooLarge
	}
	p.note(message.TypeChips, "text", reason)
	list := numbered(rows)
	if before := p.takeText(wire.StringLen(list)+2, ""); before != "" {
		list = before + "\n" + list
	}
	p.text(list)
}

// takeText takes back the last text frame, so that it can be sent with what
// belongs to it; other if there is none or it leaves less than need bytes.
func (p *planner) takeText(need int, other string) string {
	n := len(p.out.Frames) - 1
	if n < 0 || p.out.Frames[n].Type != wire.TypeSend {
		return other
	}
	text := p.out.Frames[n].Text
	if wire.StringLen(text)+need > p.Room {
		return other
	}
	p.out.Frames = p.out.Frames[:n]
	return text
}
