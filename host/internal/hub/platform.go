package hub

import (
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// PlatformStatus is how an adapter's platform is, as the adapter said last.
type PlatformStatus struct {
	State  wire.PlatformState // "" = it did not say
	Reason string
	Since  time.Time // of the state
	Until  time.Time // when a limit ends; zero = not known, or there is none
}

// TellPlatform takes the adapter's word on its platform. It reports whether the state is
// another one than before.
func (a *Attachment) TellPlatform(said *wire.PlatformStatus) (changed bool) {
	now := time.Now()
	told := PlatformStatus{State: said.State, Reason: clip(said.Reason), Since: now}
	if said.UntilMS > 0 {
		told.Until = now.Add(time.Duration(said.UntilMS) * time.Millisecond)
	}
	ch := a.channel.lock()
	changed = a.platform.State != told.State
	if !changed {
		told.Since = a.platform.Since
	}
	if at, err := time.Parse(time.RFC3339, said.Since); err == nil && at.Before(now) { // its clock may be another
		told.Since = at
	}
	a.platform = told
	current, row := ch.attached == a, ch.policy.Channel
	ch.unlock()
	if current && changed {
		a.channel.hub.Events.publish(Event{Type: EventPlatform, ChannelID: row.ID, ChannelName: row.Name, Attachment: a.summary()})
	}
	return changed
}
