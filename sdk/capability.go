package sdk

import (
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// capabilities is what the adapter can do, by the interfaces that it implements,
// and what its platform can show.
func capabilities(a Adapter) (wire.Caps, wire.Profile) {
	caps := wire.CapText | wire.CapAck
	var profile Profile
	if p, ok := a.(Profiler); ok {
		profile = p.Profile()
	}
	if _, ok := a.(Cards); ok {
		caps |= wire.CapCard
	}
	if _, ok := a.(Buttons); ok {
		caps |= wire.CapButtons
	}
	if _, ok := a.(Media); ok {
		caps |= wire.CapImage | wire.CapFile
	}
	if _, ok := a.(Typer); ok {
		caps |= wire.CapTyping
	}
	if _, ok := a.(Editor); ok {
		caps |= wire.CapUpdateMessage | wire.CapDeleteMessage
	}
	if _, ok := a.(Reactor); ok {
		caps |= wire.CapReaction
	}
	if _, ok := a.(Streamer); ok {
		caps |= wire.CapStream
	}
	if profile.RepliesInThread {
		caps |= wire.CapReplyToMessage
	}
	if _, ok := a.(Rich); ok {
		caps |= richness(profile.Parts)
	}
	return caps, profile.Profile
}

// richness is what an adapter can be sent that takes parts of these types.
func richness(types []string) (caps wire.Caps) {
	if types == nil {
		return wire.CapParts | wire.CapForm | wire.CapAudio
	}
	if slices.Contains(types, message.TypeUI) {
		caps |= wire.CapForm
	}
	if slices.Contains(types, message.TypeAudioOutput) {
		caps |= wire.CapAudio
	}
	return caps
}
