package search

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// MaxText bounds what of one message can be searched for, in bytes.
const MaxText = 64 << 10

// Text is what can be searched for in a message: its text, and of its parts what
// people read or wrote in them, such as captions, names of files, what cards say
// and labels of forms. What tools were given or gave back is not among it, nor
// urls or data.
func Text(text string, parts []byte) string {
	if len(parts) == 0 {
		return text
	}
	all, err := message.ParseParts(parts)
	if err != nil {
		return text // a row that some other hand broke
	}
	var out strings.Builder
	out.WriteString(text)
	for _, p := range all {
		switch p.Type {
		case message.TypeText:
			if text != "" {
				continue // it is in the text
			}
		case "tool-call", "tool-result", "diagnostic", "sentiment-signal", "intent-signal", "computer-use-surface", "audio-cue":
			continue
		}
		said(&out, text, p.Raw(), p.Type == "ui_submit")
		if out.Len() >= MaxText {
			break
		}
	}
	return out.String()
}

// readable are the names of the fields whose strings are for people.
var readable = map[string]bool{
	"text": true, "markdown": true, "delta": true, "title": true, "subtitle": true, "snippet": true, "label": true, "caption": true,
	"altText": true, "fileName": true, "name": true, "content": true, "Content": true, "Text": true, "placeholder": true, "Placeholder": true,
	"message": true, "userMessage": true, "description": true, "reason": true, "Title": true, "orderId": true,
}

// said appends the readable strings of an object in their order, but for those
// that known has; all: every string of it.
func said(out *strings.Builder, known string, object []byte, all bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	var in []bool // by level: it is an object
	key, wait := "", false
	for out.Len() < MaxText {
		t, err := d.Token()
		if err != nil {
			return
		}
		switch v := t.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				in = append(in, v == '{')
				wait = v == '{'
				continue
			}
			in = in[:len(in)-1]
		case string:
			if wait {
				key, wait = v, false
				continue
			}
			if hidden := key == "type" || key == "id" || key == "uiId"; v != "" && !hidden && (all || readable[key]) && !strings.Contains(known, v) {
				if out.Len() > 0 {
					out.WriteByte('\n')
				}
				out.WriteString(v)
			}
		}
		wait = len(in) > 0 && in[len(in)-1] // a value ended: the next is a name
	}
}
