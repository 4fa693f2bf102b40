package message

import "encoding/json"

// UIPart is an interactive form.
type UIPart struct {
	Base
	UIID       string        `json:"uiId"`
	Components []UIComponent `json:"components"`
	Submit     *UISubmit     `json:"submit,omitempty"`
}

// UISubmit labels the button that sends a form.
type UISubmit struct {
	Label string `json:"label"`
}

// UIComponent is one row of a form; which fields count follows from Type.
type UIComponent struct {
	Type        ComponentType   `json:"type"`
	Text        string          `json:"text,omitempty"`
	Name        string          `json:"name,omitempty"`
	Label       string          `json:"label,omitempty"`
	Placeholder string          `json:"placeholder,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"` // text, boolean (checkbox) or texts (checkbox-group)
	Options     []UIOption      `json:"options,omitempty"`
}

// UIOption is one choice of a radio, select or checkbox group.
type UIOption struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// UISubmitPart is a form filled in: for each name a string, a boolean or an
// array of strings.
type UISubmitPart struct {
	Base
	UIID   string                     `json:"uiId"`
	Values map[string]json.RawMessage `json:"values"`
}

func (UIPart) partType() string       { return TypeUI }
func (UISubmitPart) partType() string { return TypeUISubmit }

// NewForm is an interactive form.
func NewForm(f UIPart) Part { return Of(f) }

// NewSubmit is a form filled in. A value is a string, a bool or a []string;
// others panic, which is the caller's mistake.
func NewSubmit(uiID string, values map[string]any) Part {
	out := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		switch v.(type) {
		case string, bool, []string:
		default:
			panic("message: value of " + name + " is no string, bool or []string")
		}
		raw, err := json.Marshal(v)
		if err != nil {
			panic("message: marshal a value: " + err.Error())
		}
		out[name] = raw
	}
	return Of(UISubmitPart{UIID: uiID, Values: out})
}
