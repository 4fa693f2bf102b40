package api

import (
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

// encodeEvent is an event as the stream has it. It is the same for all readers, so
// that it is made once: what one of them does not see is for show to leave out.
func (s *server) encodeEvent(ev *hub.Event) string {
	var data any
	id := ""
	switch ev.Type {
	case hub.EventCreated:
		id = "id: " + ev.ID.String() + "\n"
		data = struct {
			ChannelID string  `json:"channel_id"`
			Channel   string  `json:"channel"`
			Message   Message `json:"message"`
		}{ev.ChannelID, ev.ChannelName, s.showMessage(ev.Message)}
	case hub.EventState:
		state := struct {
			ChannelID string   `json:"channel_id"`
			Channel   string   `json:"channel"`
			ID        string   `json:"id"`
			State     string   `json:"state"`
			Reason    string   `json:"reason,omitempty"`
			Message   *Message `json:"message,omitempty"` // if what it says is known only now
		}{ev.ChannelID, ev.ChannelName, ev.ID.String(), ev.State.String(), string(ev.Reason), nil}
		if ev.Message.ID != 0 {
			shown := s.showMessage(ev.Message)
			state.Message = &shown
		}
		data = state
	case hub.EventStreaming:
		data = struct {
			ChannelID string `json:"channel_id"`
			Channel   string `json:"channel"`
			ID        string `json:"id"`
			Text      string `json:"text"` // all of it so far
		}{ev.ChannelID, ev.ChannelName, ev.ID.String(), ev.Text}
	case hub.EventPlugin:
		data = struct {
			ChannelID string `json:"channel_id,omitempty"`
			Name      string `json:"name"`
			State     string `json:"state"`
			Reason    string `json:"reason,omitempty"`
		}{ev.ChannelID, ev.ChannelName, ev.Plugin, string(ev.Reason)}
	case hub.EventAgentAttached, hub.EventAgentDetached:
		data = struct {
			Agent string `json:"agent"`
			Since *Time  `json:"since" nullable:"true"`
		}{ev.Agent, when(ev.Since)}
	default:
		data = showAdapter(ev.ChannelID, ev.ChannelName, ev.Attachment)
	}
	return fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, ev.Type, mustJSON(data))
}
