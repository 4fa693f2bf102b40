package api

import (
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Trouble is why a channel wants somebody. Each is a fact of its health; who shows
// channels has the words.
type Trouble string

// The troubles, the gravest first.
const (
	Quarantined     Trouble = "quarantined"      // its process failed too often
	PlatformRefuses Trouble = "platform_refuses" // its platform does not let the adapter in
	Refusing        Trouble = "refusing"         // its adapter refuses much of what it gets
	NoToken         Trouble = "no_token"         // none lets an adapter in
	Restarting      Trouble = "restarting"       // its process ended, and is started again
	PlatformLost    Trouble = "platform_lost"    // its adapter has lost the platform, and tries again
	NoAdapter       Trouble = "no_adapter"       // one was there, and none is attached
	TokenEnds       Trouble = "token_ends"       // soon none will let an adapter in
	AgentAway       Trouble = "agent_away"       // the adapter is there, and the agent is not
	RefusesSome     Trouble = "refuses_some"     // its adapter refuses some of what it gets
	NoTrouble       Trouble = ""
)

// troubles has their order.
var troubles = [...]Trouble{Quarantined, PlatformRefuses, Refusing, NoToken, Restarting, PlatformLost, NoAdapter, TokenEnds, AgentAway, RefusesSome, NoTrouble}

// Of an adapter's newest words on messages: what share of refusals is some and what is
// much, and how many words tell that it is much.
const (
	refusesSome = 0.1
	refusesMuch = 0.5
	enoughWords = 5
)

// SoonEnds is how long before the last token of a channel ends that is trouble.
const SoonEnds = 7 * 24 * time.Hour

// Trouble is the gravest trouble of a channel at a time.
func (c *Channel) Trouble(now time.Time) Trouble {
	h := &c.Health
	process := ""
	if h.Process != nil {
		process = *h.Process
	}
	refused := float64(h.RecentRefusals) / float64(max(h.RecentWords, 1))
	switch {
	case !c.Enabled, c.Kind == "agui", c.Kind == "bridle": // clients of a front end come and go
		return NoTrouble
	case process == "quarantined":
		return Quarantined
	case h.platform() == wire.PlatformRefused:
		return PlatformRefuses
	case h.Attached && refused >= refusesMuch && h.RecentWords >= enoughWords:
		return Refusing
	case c.Kind == kindBridge && !h.Open:
		return NoToken
	case process == "backoff":
		return Restarting
	case h.platform() == wire.PlatformReconnecting:
		return PlatformLost
	case !h.Attached && process != "starting" && !c.unused():
		return NoAdapter
	case c.Kind == kindBridge && h.OpenUntil != nil && h.OpenUntil.Sub(now) < SoonEnds:
		return TokenEnds
	case !h.Attached:
		return NoTrouble
	case h.AgentAway:
		return AgentAway
	case refused >= refusesSome:
		return RefusesSome
	}
	return NoTrouble
}

// platform is the state of the platform of who is attached; "" = nobody says.
func (h *Health) platform() wire.PlatformState {
	if !h.Attached || h.Platform == nil {
		return ""
	}
	return wire.PlatformState(h.Platform.State)
}

// unused reports whether no adapter ever came.
func (c *Channel) unused() bool {
	return c.Health.LastAttachedAt == nil && c.Health.LastInboundAt == nil && c.Health.LastSentAt == nil
}
