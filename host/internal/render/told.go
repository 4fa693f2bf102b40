package render

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// What parts say in words.

func citationText(c message.CitationPart) string {
	line := c.Title
	switch {
	case c.Title == "" || c.Title == c.URL:
		line = c.URL
	case c.URL != "":
		line += " — " + c.URL
	}
	if c.Snippet != "" {
		line += "\n  " + strings.ReplaceAll(c.Snippet, "\n", " ")
	}
	return line
}

func citationMarkdown(c message.CitationPart) string {
	line := citationText(message.CitationPart{URL: c.URL})
	if c.Title != "" && c.URL != "" {
		line = "[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(c.Title) + "](" + strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(c.URL) + ")"
	}
	if c.Snippet != "" {
		line += "\n> " + strings.ReplaceAll(c.Snippet, "\n", " ")
	}
	return line
}

func chipValue(c message.Chip) string { return firstOf(c.Value, c.Label) }

func chipRows(c message.ChipsPart) [][]wire.Button {
	var row []wire.Button
	for _, chip := range c.Chips {
		if chip.Label != "" {
			row = append(row, wire.Button{Text: chip.Label, Value: chipValue(chip)})
		}
	}
	if row == nil {
		return nil
	}
	return [][]wire.Button{row}
}

// chipCard is a card with a select, for more chips than buttons can be.
func chipCard(c message.ChipsPart) *wire.Card {
	e := wire.Element{Type: wire.ElementSelect, Placeholder: "Choose one"}
	for _, chip := range c.Chips {
		if chip.Label != "" {
			e.Options = append(e.Options, wire.Option{Text: chip.Label, Value: chipValue(chip)})
		}
	}
	return &wire.Card{Elements: []wire.Element{e}}
}

// numbered are the choices as lines; their numbers can be typed.
func numbered(rows [][]wire.Button) string {
	var lines []string
	for _, row := range rows {
		for _, b := range row {
			lines = append(lines, strconv.Itoa(len(lines)+1)+". "+b.Text)
		}
	}
	return strings.Join(lines, "\n")
}

func transferText(t message.TransferPart) string {
	text := "Handing over to " + firstOf(t.TargetAgent, "a person") + ": " + t.Status
	if t.QueuePosition != nil {
		text += ", number " + strconv.FormatFloat(*t.QueuePosition, 'f', -1, 64) + " in the queue"
	}
	if wait := value(t.EstimatedWaitTime); wait != "" {
		text += ", about " + wait + " to wait"
	}
	return text + "."
}

func approvalText(m message.MemoryApprovalPart) string {
	text := "May I " + string(m.Operation) + " this in memory?"
	if m.Status != "" && m.Status != "pending" {
		text = "Memory: " + string(m.Operation) + ", " + m.Status
	}
	if what := value(m.Payload); what != "" && what != "{}" {
		text += "\n" + what
	}
	return text
}

func submitText(s message.UISubmitPart) string {
	names := make([]string, 0, len(s.Values))
	for name := range s.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + ": " + value(s.Values[name])
	}
	return strings.Join(names, "\n")
}

// value is a JSON value in words: text as it is, a list with commas, anything
// else as JSON.
func value(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, ", ")
	}
	return string(raw)
}
