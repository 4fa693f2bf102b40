package render

// Capability describes one capability to operators and authors.
type Capability struct {
	Name       string   `json:"name"`
	Frames     []string `json:"frames" doc:"Frames that the host sends only to an adapter with this capability"`
	DegradesTo []string `json:"degrades_to" doc:"What is shown instead, the first that is possible; empty = nothing is lost without it, none = not shown"`
	About      string   `json:"about"`
}

// Catalogue lists every capability that this host knows.
func Catalogue() []Capability {
	return []Capability{
		{"text", []string{"send"}, []string{}, "Plain text; every adapter has it"},
		{"card", []string{"send_card"}, []string{"buttons", "text"}, "Cards of a header and elements"},
		{"buttons", []string{"send_buttons"}, []string{"text"}, "A text with rows of buttons"},
		{"image", []string{"send_image"}, []string{"text"}, "Pictures; as text, the caption and the link"},
		{"file", []string{"send_file"}, []string{"text"}, "Documents; as text, the caption and the link"},
		{"typing", []string{"start_typing", "stop_typing"}, []string{"none"}, "A sign that an answer is being made"},
		{"update_message", []string{"update_message"}, []string{"text"}, "Changing a message in place; without it, a new message"},
		{"reply_to_message", []string{}, []string{}, "Says that reply_ctx leads answers into the right thread"},
	}
}
