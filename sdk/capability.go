package sdk

import "github.com/pontoon-bridge/pontoon/sdk/wire"

// capabilities is what the adapter can do, by the interfaces that it implements.
func capabilities(a Adapter) wire.Caps {
	caps := wire.CapText
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
		caps |= wire.CapUpdateMessage
	}
	if t, ok := a.(ThreadReplier); ok && t.RepliesInThread() {
		caps |= wire.CapReplyToMessage
	}
	return caps
}
