package wire

// Card is a structured message: an optional header and elements in order.
type Card struct {
	Header   *Header   `json:"header,omitempty"`
	Elements []Element `json:"elements"`
}

// Header is a card's title. Colour is one of blue, green, red, orange, yellow,
// grey; others pass through.
type Header struct {
	Title string `json:"title"`
	Color string `json:"color,omitempty"`
}

// ElementType tells the elements apart.
type ElementType string

// The element types of a card.
const (
	ElementMarkdown ElementType = "markdown"  // Content
	ElementDivider  ElementType = "divider"   // –
	ElementActions  ElementType = "actions"   // Buttons
	ElementListItem ElementType = "list_item" // Text, Button
	ElementSelect   ElementType = "select"    // Placeholder, InitValue, Options, CallbackPrefix
	ElementNote     ElementType = "note"      // Text
)

// Element is one row of a card; which fields count follows from Type.
type Element struct {
	Type           ElementType `json:"type" enum:"markdown,divider,actions,list_item,select,note"`
	Content        string      `json:"content,omitempty"`
	Text           string      `json:"text,omitempty"`
	Button         *Button     `json:"button,omitempty"`
	Buttons        [][]Button  `json:"buttons,omitempty"`
	Placeholder    string      `json:"placeholder,omitempty"`
	InitValue      string      `json:"init_value,omitempty"`
	Options        []Option    `json:"options,omitempty"`
	CallbackPrefix string      `json:"callback_prefix,omitempty"`
}

// Button is one choice. Value is what comes back as the action. Style is
// primary, default or danger; "" is default.
type Button struct {
	Text  string `json:"text"`
	Value string `json:"value"`
	Style string `json:"style,omitempty"`
}

// Option is one choice of a select; its action is the select's prefix + Value.
type Option struct {
	Text  string `json:"text"`
	Value string `json:"value"`
}

// Append appends the card's JSON in both spellings of its element keys: a 1.0
// adapter may have been written against the document (Content, Buttons, …) or
// against the one known server (content, buttons, …).
func (c *Card) Append(dst []byte) []byte { return c.append(dst, true) }

// AppendPlain appends the card's JSON for an adapter of protocol 1.1: element
// keys in lower case only.
func (c *Card) AppendPlain(dst []byte) []byte { return c.append(dst, false) }

func (c *Card) append(dst []byte, both bool) []byte {
	dst = append(dst, '{')
	if c.Header != nil {
		dst = append(key(dst, "header"), '{')
		dst = field(dst, "title", c.Header.Title)
		dst = fieldIf(dst, "color", c.Header.Color)
		dst = append(dst, '}')
	}
	dst = append(key(dst, "elements"), '[')
	for i := range c.Elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.Elements[i].append(dst, both)
	}
	return append(dst, ']', '}')
}

func (e *Element) append(dst []byte, both bool) []byte {
	dst = append(dst, '{')
	dst = field(dst, "type", string(e.Type))
	switch e.Type {
	case ElementMarkdown:
		dst = spelled(dst, both, "Content", "content", e.Content)
	case ElementNote:
		dst = spelled(dst, both, "Text", "text", e.Text)
	case ElementActions:
		if both {
			dst = AppendRows(key(dst, "Buttons"), e.Buttons)
		}
		dst = AppendRows(key(dst, "buttons"), e.Buttons)
	case ElementListItem:
		dst = spelled(dst, both, "Text", "text", e.Text)
		if e.Button != nil && both {
			dst = e.Button.append(key(dst, "Button"))
		}
		if e.Button != nil {
			dst = e.Button.append(key(dst, "button"))
		}
	case ElementSelect:
		dst = spelled(dst, both, "Placeholder", "placeholder", e.Placeholder)
		dst = spelled(dst, both, "InitValue", "init_value", e.InitValue)
		if both {
			dst = appendOptions(key(dst, "Options"), e.Options)
		}
		dst = appendOptions(key(dst, "options"), e.Options)
		dst = spelled(dst, both, "CallbackPrefix", "callback_prefix", e.CallbackPrefix)
	}
	return append(dst, '}')
}

// spelled appends value under the server's key, and if both under the document's before it.
func spelled(dst []byte, both bool, document, server, value string) []byte {
	if both {
		dst = field(dst, document, value)
	}
	return field(dst, server, value)
}

// AppendRows appends rows of buttons as a JSON array of arrays.
func AppendRows(dst []byte, rows [][]Button) []byte {
	dst = append(dst, '[')
	for i, row := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		for j := range row {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = row[j].append(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

func (b *Button) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = field(dst, "text", b.Text)
	dst = field(dst, "value", b.Value)
	dst = fieldIf(dst, "style", b.Style)
	return append(dst, '}')
}

func appendOptions(dst []byte, options []Option) []byte {
	dst = append(dst, '[')
	for i, o := range options {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		dst = field(dst, "text", o.Text)
		dst = field(dst, "value", o.Value)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// Validate names the first thing about the card that no adapter could show.
func (c *Card) Validate() error {
	if err := c.Check(); err != nil {
		return err
	}
	return nil
}

// Check is Validate for who answers with a frame.
func (c *Card) Check() *Error {
	if c.Header == nil && len(c.Elements) == 0 {
		return errorf(CodeMissingField, "card: found neither header nor elements, expected at least one")
	}
	for i := range c.Elements {
		e := &c.Elements[i]
		switch e.Type {
		case ElementMarkdown, ElementDivider, ElementNote:
		case ElementActions:
			if err := ValidateRows(e.Buttons); err != nil {
				return errorf(CodeMissingField, "card.elements[%d].%s", i, err.Message)
			}
		case ElementListItem:
			if e.Button != nil && e.Button.Text == "" {
				return errorf(CodeMissingField, "card.elements[%d].button.text: found an empty label, expected text", i)
			}
		case ElementSelect:
			if len(e.Options) == 0 {
				return errorf(CodeMissingField, "card.elements[%d].options: found none, expected at least one {text, value}", i)
			}
		default:
			return errorf(CodeWrongType, "card.elements[%d].type: found %q, expected markdown, divider, actions, list_item, select or note", i, e.Type)
		}
	}
	return nil
}

// ValidateRows names the first empty row or label; nil means that they can be shown.
func ValidateRows(rows [][]Button) *Error {
	if len(rows) == 0 {
		return errorf(CodeMissingField, "buttons: found none, expected rows of {text, value}")
	}
	for i, row := range rows {
		if len(row) == 0 {
			return errorf(CodeMissingField, "buttons[%d]: found an empty row, expected at least one {text, value}", i)
		}
		for j := range row {
			if row[j].Text == "" {
				return errorf(CodeMissingField, "buttons[%d][%d].text: found an empty label, expected text", i, j)
			}
		}
	}
	return nil
}
