package webchat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

const (
	// maxText is the longest message in bytes of UTF-8: quotes and line breaks
	// take two bytes in a frame, and what is left of it suits the rest.
	maxText = 120_000
	// maxAction is the longest value of a button; it came in a frame.
	maxAction = wire.MaxFrame / 2
	// maxUser and maxLabel bound names and labels, in characters.
	maxUser, maxLabel = 64, 200
	// maxAttached bounds the files of one message, maxQuestions the answers of a
	// form, maxAnswers what is shown of them, in bytes.
	maxAttached, maxQuestions, maxAnswers = 10, 200, 4000
	// nobody is who has not said a name.
	nobody = "you"
)

// request is a frame of the browser; which fields count follows from Type.
type request struct {
	Type string `json:"type"` // hello, say, press or submit

	Key   string `json:"key"`   // hello: opens the conversation
	Epoch string `json:"epoch"` // hello: what Since belongs to
	Since uint64 `json:"since"` // hello: the latest revision that the page has

	ID   string `json:"id"`   // the browser's id of what the user did: a repetition is recognised by it
	Name string `json:"name"` // the user's
	Text string `json:"text"` // say

	Files []string `json:"files"` // say: ids of uploads

	Message string `json:"message"` // press, submit: the entry that shows the button
	Piece   int    `json:"piece"`   // press, submit: which piece of it
	Group   int    `json:"group"`   // press: which buttons of that
	Index   int    `json:"index"`   // press: which of those
	Value   string `json:"value"`   // press: the action
	Label   string `json:"label"`   // press: what the button says; submit: the answers in words

	Form   string         `json:"form"`   // submit: the form's uiId
	Values map[string]any `json:"values"` // submit: by the component's name, a string, boolean or list of strings
}

var (
	keyForm    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	clientForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// decodeRequest reads a frame of the browser strictly: our own page wrote it.
func decodeRequest(frame []byte) (*request, error) {
	if !utf8.Valid(frame) {
		return nil, errors.New("frame: found bytes that are no UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(frame))
	d.DisallowUnknownFields()
	var req request
	if err := d.Decode(&req); err != nil {
		return nil, fmt.Errorf("frame: expected one JSON object: %w", err)
	}
	if d.More() {
		return nil, errors.New("frame: found more after the JSON object, expected its end")
	}
	return &req, nil
}

// take does what the page asks for, or says why not.
func (s *site) take(conv *conversation, req *request) *refusal {
	e, err := req.entry()
	if err != nil {
		return &refusal{Reason: err.Error()}
	}
	return s.store.act(conv, e)
}

// entry is what the user did, or what is wrong about it.
func (req *request) entry() (*entry, error) {
	if !clientForm.MatchString(req.ID) {
		return nil, errors.New("id: expected 32 hexadecimal digits")
	}
	e := &entry{Client: req.ID, event: sdk.Event{UserName: oneLine(req.Name, maxUser)}}
	if e.event.UserName == "" {
		e.event.UserName = nobody
	}
	switch req.Type {
	case "say":
		text := strings.TrimRightFunc(clean(req.Text), unicode.IsSpace)
		if strings.TrimSpace(text) == "" && len(req.Files) == 0 {
			return nil, errors.New("the message is empty")
		}
		if len(req.Files) > maxAttached {
			return nil, fmt.Errorf("the message has %d files, at most %d are allowed", len(req.Files), maxAttached)
		}
		if len(text) > maxText {
			return nil, fmt.Errorf("the message has %d bytes, at most %d are allowed", len(text), maxText)
		}
		e.Kind, e.Text, e.event.Text, e.claims = kindText, text, text, req.Files
	case "press":
		if req.Value == "" || len(req.Value) > maxAction || req.Piece < 0 || req.Group < 0 || req.Index < 0 {
			return nil, errors.New("the button has no value that can be sent")
		}
		e.Kind, e.Text, e.event.Action = kindPress, oneLine(req.Label, maxLabel), req.Value
		e.of = &press{message: req.Message, piece: req.Piece, group: req.Group, index: req.Index}
	case "submit":
		size, err := req.answers()
		if err != nil {
			return nil, err
		}
		e.Kind, e.Text, e.formSize = kindPress, clip(clean(req.Label), maxAnswers), size
		e.event.Form = &sdk.Form{ID: req.Form, Values: req.Values}
		e.of = &press{message: req.Message, piece: req.Piece, values: req.Values}
	default:
		return nil, fmt.Errorf("type: found %q, expected say, press or submit", req.Type)
	}
	return e, nil
}

// answers checks what a form says, and tells how large it is.
func (req *request) answers() (size int, err error) {
	if req.Piece < 0 || req.Form == "" || len(req.Form) > wire.MaxField || req.Values == nil || len(req.Values) > maxQuestions {
		return 0, errors.New("the form has no name or answers that can be sent")
	}
	for name, v := range req.Values {
		size += len(name)
		switch v := v.(type) {
		case bool:
		case string:
			size += len(v)
		case []any:
			for _, one := range v {
				text, ok := one.(string)
				if !ok {
					return 0, fmt.Errorf("values.%.64s: found something else than text in the list", name)
				}
				size += len(text)
			}
		default:
			return 0, fmt.Errorf("values.%.64s: expected text, yes or no, or a list of texts", name)
		}
	}
	if size > maxText {
		return 0, fmt.Errorf("the answers have %d bytes, at most %d are allowed", size, maxText)
	}
	return size, nil
}

// clip is s without what makes it longer than so many bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// clean takes out what no keyboard writes: control characters but tab and line
// break. They would take six bytes each in a frame.
func clean(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// oneLine is s without control characters, cut to most characters.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		s = string(r[:most])
	}
	return strings.TrimSpace(s)
}
