package render

// Capability describes one capability to operators and authors.
type Capability struct {
	Name       string   `json:"name"`
	Protocol   string   `json:"protocol" enum:"1.0,1.1" doc:"First protocol that has it: it counts only in sessions of this or a newer one"`
	Frames     []string `json:"frames" doc:"Frames that the host sends only to an adapter with this capability"`
	DegradesTo []string `json:"degrades_to" doc:"What is shown instead, the first that is possible; empty = nothing is lost without it, none = not shown"`
	About      string   `json:"about"`
}

// Catalogue lists every capability that this host knows.
func Catalogue() []Capability {
	return []Capability{
		{"text", "1.0", []string{"send"}, []string{}, "Plain text; every adapter has it"},
		{"card", "1.0", []string{"send_card"}, []string{"buttons", "text"}, "Cards of a header and elements"},
		{"buttons", "1.0", []string{"send_buttons"}, []string{"text"}, "A text with rows of buttons"},
		{"image", "1.0", []string{"send_image"}, []string{"text"}, "Pictures; as text, the caption and the link"},
		{"file", "1.0", []string{"send_file"}, []string{"text"}, "Documents; as text, the caption and the link"},
		{"typing", "1.0", []string{"start_typing", "stop_typing"}, []string{"none"}, "A sign that an answer is being made"},
		{"update_message", "1.0", []string{"update_message"}, []string{"text"}, "Changing a message in place; without it, a new message"},
		{"reply_to_message", "1.0", []string{}, []string{}, "Says that reply_ctx leads answers into the right thread"},
		{"ack", "1.1", []string{"message_ack"}, []string{}, "Acknowledgements both ways: what is not confirmed is sent again; without it, sent once"},
		{"parts", "1.1", []string{"send_parts"}, []string{"card", "buttons", "image", "file", "text"}, "Messages whole, as typed parts; without it, each part by its own ladder"},
		{"stream", "1.1", []string{"stream", "stream_end"}, []string{"text"}, "Answers while they are made; without it, when they are done"},
		{"delete_message", "1.1", []string{"delete_message"}, []string{"none"}, "Taking a message back"},
		{"reaction", "1.1", []string{"send_reaction"}, []string{"none"}, "Emoji on a message"},
		{"audio", "1.1", []string{"send_audio"}, []string{"file", "text"}, "Recordings; as text, the link"},
		{"form", "1.1", []string{"send_form"}, []string{"card", "buttons", "text"}, "Forms to fill in; as text, numbered questions whose answers are read back"},
	}
}
