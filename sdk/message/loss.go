package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Loss says what another model can't carry, and what stands for it.
type Loss struct {
	Part   int    `json:"part"` // its place, -1 for the message itself
	From   string `json:"from"` // type of the part, or metadata.KEY
	To     string `json:"to"`   // what stands for it; LossNone = nothing
	Reason string `json:"reason"`
}

// What may stand for a part in every model.
const (
	LossText = "text"
	LossNone = "none"
)

// Beside lists the keys that the part has beside type, id and those given, in
// order; null counts as absent. It is what a model leaves out that carries only
// those given.
func (p Part) Beside(carried ...string) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(p.raw, &fields) != nil {
		return nil
	}
	var out []string
	for name, raw := range fields {
		if name != "type" && name != "id" && !slices.Contains(carried, name) && !isNull(raw) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Plain is the nearest text of the part, for models that have no such part. It
// is "" for what people are not meant to read, such as signals and diagnostics,
// for unknown types, and for a part that can't be read.
func (p Part) Plain() string {
	if text := p.plainText(); text != nil {
		return string(text)
	}
	view, err := p.View()
	if err != nil {
		return ""
	}
	switch v := view.(type) {
	case TextPart:
		return v.Text
	case TextDeltaPart:
		return v.Delta
	case MarkdownPart:
		return v.Markdown
	case CitationPart:
		return join("\n", v.Title, v.Snippet, v.URL)
	case ChipsPart:
		return chipsText(v)
	case CarouselPart:
		return titles(v.Products)
	case OrderPart:
		return join("\n", v.OrderID, titles(v.Items), valueText(v.Total))
	case CustomPart:
		return customText(v)
	case ErrorPart:
		return v.UserMessage
	case EndSessionPart:
		return v.Message
	case TransferPart:
		return join(": ", v.TargetAgent, v.Status, v.Reason)
	case UIPart:
		return formText(v)
	case UISubmitPart:
		return answersText(v)
	}
	return plainMedia(view)
}

// plainMedia is the text of files, voice, tools and memories.
func plainMedia(view View) string {
	switch v := view.(type) {
	case FilePart:
		return join("\n", firstOf(v.Caption, v.FileName), v.URL)
	case VisionPart:
		return join("\n", firstOf(v.Caption, v.AltText), v.URL)
	case AudioInputPart:
		return v.URL
	case AudioOutputPart:
		return v.URL
	case TranscriptPart:
		return v.Text
	case ToolCallPart:
		return v.ToolName + "(" + valueText(v.Input) + ")"
	case ToolResultPart:
		return join(": ", v.ToolName, firstOf(valueText(v.Output), valueText(v.Error)))
	case MemoryApprovalPart:
		return join(": ", string(v.Operation), TextField(v.Payload, "text", "content", "value"))
	case MemoryRecallPart:
		return join("\n", v.Query, titles(v.Entries))
	case ComputerUsePart:
		return v.StreamURL
	}
	return ""
}

func customText(c CustomPart) string {
	switch c.PayloadType {
	case PayloadCard:
		var card wire.Card
		if json.Unmarshal(c.Data, &card) != nil {
			return ""
		}
		return cardText(&card)
	case PayloadButtons:
		var o Offer
		if json.Unmarshal(c.Data, &o) != nil {
			return ""
		}
		return join("\n", o.Text, labels(o.Buttons))
	}
	return TextField(c.Data, "text", "title", "message")
}

// cardText is one line for the title and one for each element.
func cardText(c *wire.Card) string {
	var lines []string
	if c.Header != nil {
		lines = append(lines, c.Header.Title)
	}
	for _, e := range c.Elements {
		var options []string
		for _, o := range e.Options {
			options = append(options, o.Text)
		}
		button := ""
		if e.Button != nil {
			button = "[" + e.Button.Text + "]"
		}
		lines = append(lines, join(" ", e.Content, e.Text, e.Placeholder, strings.Join(options, " | "), button, labels(e.Buttons)))
	}
	return join("\n", lines...)
}

func labels(rows [][]wire.Button) string {
	var out []string
	for _, row := range rows {
		for _, b := range row {
			out = append(out, "["+b.Text+"]")
		}
	}
	return strings.Join(out, " ")
}

func chipsText(c ChipsPart) string {
	out := make([]string, len(c.Chips))
	for i, chip := range c.Chips {
		out[i] = "[" + chip.Label + "]"
	}
	return strings.Join(out, " ")
}

// titles is one line for each object that has a name.
func titles(objects []json.RawMessage) string {
	out := make([]string, len(objects))
	for i, o := range objects {
		out[i] = TextField(o, "title", "name", "label", "text", "content")
	}
	return join("\n", out...)
}

// formText is a form as numbered questions.
func formText(ui UIPart) string {
	var lines []string
	n := 0
	for _, c := range ui.Components {
		if c.Name == "" {
			lines = append(lines, c.Text)
			continue
		}
		n++
		line := strconv.Itoa(n) + ". " + firstOf(c.Label, c.Name)
		if len(c.Options) > 0 {
			names := make([]string, len(c.Options))
			for i, o := range c.Options {
				names[i] = firstOf(o.Label, o.Value)
			}
			line += " (" + strings.Join(names, " | ") + ")"
		}
		lines = append(lines, line)
	}
	return join("\n", lines...)
}

// answersText is one line for each answer, by name.
func answersText(s UISubmitPart) string {
	lines := make([]string, 0, len(s.Values))
	for name, raw := range s.Values {
		lines = append(lines, fmt.Sprintf("%s: %s", name, valueText(raw)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// valueText is the text that a JSON string holds, and other JSON as it is; ""
// for nothing and null.
func valueText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || isNull(raw) || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}

// join joins the texts that are not empty.
func join(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), between)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
