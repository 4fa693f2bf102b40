package console

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Bounds of what a page shows of one message; its story shows more of the text.
const (
	maxParts     = 100
	maxItems     = 50       // of a list within a part: products, buttons, fields
	maxShownText = 8 << 10  // bytes of one text in a conversation
	maxStoryText = 64 << 10 // likewise in the message's story
)

// partsOf shows the parts of a message, of each text most bytes at most.
func partsOf(list []message.Part, most int) []templ.Component {
	list = message.Complete(list)
	out := make([]templ.Component, 0, min(len(list), maxParts)+1)
	for i, p := range list {
		if i == maxParts {
			return append(out, happens("Not shown", strconv.Itoa(len(list)-i)+" further parts"))
		}
		out = append(out, partOf(p, most))
	}
	return out
}

// partOf shows one part. What is not known here is named with its size, never
// shown as it came.
func partOf(p message.Part, most int) templ.Component {
	v, err := p.View()
	if err != nil {
		return happens("Part of type "+clip(p.Type, 64), size(float64(len(p.Raw())))+", which this page can't show")
	}
	switch v := v.(type) {
	case message.TextPart:
		return said(clip(v.Text, most))
	case message.MarkdownPart:
		return inMarkdown(clip(v.Markdown, most))
	case message.CitationPart:
		return citation(v)
	case message.ChipsPart:
		return choices("", chipLabels(v.Chips))
	case message.CarouselPart:
		return goods("Products", items(v.Products), nil)
	case message.OrderPart:
		return goods("Order "+v.OrderID, items(v.Items), []pair{{"Subtotal", message.Sum(v.Subtotal)}, {"Total", message.Sum(v.Total)}})
	case message.CustomPart:
		return customPart(v, len(p.Raw()), most)
	case message.UIPart:
		return formPiece(v)
	case message.UISubmitPart:
		return answers(v)
	case message.TranscriptPart:
		return transcript(v)
	}
	if c := mediaOf(v); c != nil {
		return c
	}
	return happening(v, p)
}

// mediaOf shows files, pictures and sound; nil = v is none.
func mediaOf(v message.View) templ.Component {
	switch v := v.(type) {
	case message.FilePart:
		return attachment(media{Name: v.FileName, Kind: v.MimeType, URL: v.URL, Caption: v.Caption, Note: fileNote(v)})
	case message.VisionPart:
		return attachment(media{Name: v.AltText, Kind: or(v.MimeType, "image/*"), URL: or(v.URL, inlinePicture(v.Data)), Caption: v.Caption, Note: sizeNote(v.SizeBytes)})
	case message.AudioInputPart:
		return attachment(media{Name: "Recording", Kind: or(v.MimeType, "audio/*"), URL: v.URL, Note: string(v.Status) + lasts(v.DurationMs)})
	case message.AudioOutputPart:
		return attachment(media{Name: "Speech", Kind: or(v.MimeType, "audio/*"), URL: v.URL, Note: string(v.Status) + lasts(v.DurationMs)})
	}
	return nil
}

// happening shows in a line what is not said, but done. Inputs and outputs of
// tools, and what is remembered, are not shown: they are not the operator's to read
// over the user's shoulder.
func happening(v message.View, p message.Part) templ.Component {
	switch v := v.(type) {
	case message.ToolCallPart:
		return happens("Tool call", joined(" · ", v.ToolName, strings.ReplaceAll(string(v.Status), "_", " "), duration(p.Raw()), failed(v.Error)))
	case message.ToolResultPart:
		return happens("Tool result", joined(" · ", v.ToolName, size(float64(len(v.Output))), duration(p.Raw()), failed(v.Error)))
	case message.TransferPart:
		return happens("Handover", joined(" · ", v.Status, prefixed("to ", v.TargetAgent), v.Reason, queuePlace(v.QueuePosition), prefixed("waits about ", message.Sum(v.EstimatedWaitTime))))
	case message.DiagnosticPart:
		return happens("Diagnostic", joined(": ", v.Category, v.Message))
	case message.EndSessionPart:
		return happens("End of the session", joined(" · ", strings.ReplaceAll(string(v.Reason), "_", " "), v.Message))
	case message.ErrorPart:
		return happens("Error", joined(" · ", v.Code, v.Message, prefixed("shown to the user: ", v.UserMessage), v.DeveloperHint))
	case message.AudioCuePart:
		return happens("Voice", string(v.Cue))
	case message.MemoryApprovalPart:
		return happens("Memory", joined(" · ", string(v.Operation), v.Status))
	case message.MemoryRecallPart:
		return happens("Memory", strconv.Itoa(len(v.Entries))+" entries recalled")
	case message.SentimentPart:
		return happens("Sentiment", joined(" · ", v.Category, v.Polarity, number(v.Score), prefixed("by ", v.Source)))
	case message.IntentPart:
		return happens("Intent", joined(" · ", v.Intent, number(v.Score), prefixed("by ", v.Source)))
	case message.ComputerUsePart:
		return happens("Browser of the agent", joined(" · ", v.State, strconv.Itoa(len(v.ActionLog))+" actions"))
	case message.A2UIPart:
		return happens("Surface", joined(" · ", v.State, size(float64(len(v.Components)))))
	}
	return happens("Part of type "+clip(p.Type, 64), size(float64(len(p.Raw()))))
}

func customPart(c message.CustomPart, bytes, most int) templ.Component {
	switch c.PayloadType {
	case message.PayloadCard:
		var shown wire.Card
		if json.Unmarshal(c.Data, &shown) == nil {
			return cardPiece(shown, most)
		}
	case message.PayloadButtons:
		var o message.Offer
		if json.Unmarshal(c.Data, &o) == nil {
			return choices(clip(o.Text, most), buttonLabels(o.Buttons))
		}
	}
	return happens("Custom part", joined(" · ", clip(c.PayloadType, 200), size(float64(bytes))))
}

// media is a file, a picture or sound.
type media struct{ Name, Kind, URL, Caption, Note string }

// own is where the browser may load it from; "" = nowhere.
func (m media) own() string {
	if strings.HasPrefix(m.URL, "data:") {
		_, data, _ := strings.Cut(m.URL, ";base64,")
		return inlinePicture(data)
	}
	return ownFile(m.URL)
}

// alt is what the picture shows, as far as anybody said.
func (m media) alt() string { return or(m.Name, or(m.Caption, "Picture without a description")) }

// is reports whether the media type is one of the kind, such as image.
func (m media) is(kind string) bool {
	main, _, _ := strings.Cut(m.Kind, "/")
	return strings.EqualFold(main, kind)
}

func fileNote(f message.FilePart) string {
	status := string(f.LifecycleStatus)
	if status == "" {
		status = string(f.UploadStatus)
	}
	if status == "completed" || status == "sent" {
		status = ""
	}
	return joined(" · ", f.MimeType, sizeNote(f.SizeBytes), strings.ReplaceAll(status, "_", " "))
}

func sizeNote(bytes *float64) string {
	if bytes == nil {
		return ""
	}
	return size(*bytes)
}

func chipLabels(chips []message.Chip) []string {
	var out []string
	for _, c := range chips {
		out = append(out, c.Label)
	}
	return out
}

func buttonLabels(rows [][]wire.Button) []string {
	var out []string
	for _, row := range rows {
		for _, b := range row {
			out = append(out, b.Text)
		}
	}
	return out
}

func optionLabels(options []wire.Option) []string {
	var out []string
	for _, o := range options {
		out = append(out, o.Text)
	}
	return out
}

// few are the first of a list, and how many more there are in words.
func few[T any](list []T) ([]T, string) {
	if len(list) <= maxItems {
		return list, ""
	}
	return list[:maxItems], "and " + strconv.Itoa(len(list)-maxItems) + " more"
}

func items(raw []json.RawMessage) []message.Item {
	var out []message.Item
	for _, r := range raw[:min(len(raw), maxItems+1)] {
		out = append(out, message.ReadItem(r))
	}
	return out
}

// pair is a name with what stands beside it.
type pair struct{ Name, Value string }

// fields are the rows of a form in words.
func fields(f message.UIPart) []pair {
	var out []pair
	for _, c := range f.Components {
		var labels []string
		for _, o := range c.Options[:min(len(c.Options), maxItems)] {
			labels = append(labels, o.Label)
		}
		name := or(c.Label, or(c.Name, c.Text))
		if c.Required {
			name += " (required)"
		}
		out = append(out, pair{name, joined(" · ", string(c.Type), strings.Join(labels, ", "))})
	}
	return out
}

// filled are the values of a form that was sent, by name.
func filled(s message.UISubmitPart) []pair {
	var out []pair
	for name, raw := range s.Values {
		value := message.Sum(raw)
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			value = strings.Join(list, ", ")
		}
		out = append(out, pair{name, clip(value, 2000)})
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func failed(err json.RawMessage) string {
	if len(err) == 0 || string(err) == "null" {
		return ""
	}
	return "failed: " + clip(or(message.TextField(err, "message", "code"), message.Sum(err)), 500)
}

// duration reads how long a tool took, where an agent says so.
func duration(raw json.RawMessage) string {
	var d struct {
		DurationMs *float64 `json:"durationMs"`
		LatencyMs  *float64 `json:"latencyMs"`
	}
	if json.Unmarshal(raw, &d) != nil || d.DurationMs == nil && d.LatencyMs == nil {
		return ""
	}
	if d.DurationMs == nil {
		d.DurationMs = d.LatencyMs
	}
	return number(*d.DurationMs) + " ms"
}

func lasts(ms *float64) string {
	if ms == nil {
		return ""
	}
	return " · " + number(*ms/1000) + " s"
}

func queuePlace(n *float64) string {
	if n == nil {
		return ""
	}
	return "number " + number(*n) + " in the queue"
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// size is bytes in words.
func size(bytes float64) string {
	switch {
	case bytes < 1000:
		return number(bytes) + " bytes"
	case bytes < 1e6:
		return number(bytes/1e3) + " kB"
	}
	return number(bytes/1e6) + " MB"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func prefixed(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// joined joins what is not empty.
func joined(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), between)
}
