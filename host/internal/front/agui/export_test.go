package agui

import (
	"context"

	"github.com/pontoon-bridge/pontoon/host/internal/intake"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Spoken is the run in which the texts are streamed, as far as they have come,
// and then the message follows that they become.
func Spoken(streamed []string, m *message.Message) (raw string, err error) {
	s := newSpeaker(func(b []byte) error { raw += string(b); return nil }, nil)
	s.say(&event{Type: runStarted, ThreadID: "t", RunID: "r"})
	for _, text := range streamed {
		s.text(m.ID, text)
	}
	s.message(m)
	err = s.end(&event{Type: runFinished, ThreadID: "t", RunID: "r"})
	return raw, err
}

// Decoded is what counts of a run's body.
func Decoded(body []byte) (thread, run, id string, m message.Message, err error) {
	in, err := decode(context.Background(), &intake.Body{JSON: body})
	return in.thread, in.run, in.message.ID, in.message, err
}
