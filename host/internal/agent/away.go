package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

// away is an agent that is there by name alone.
type away struct {
	why   string
	since time.Time
}

var (
	_ hub.Agent    = away{}
	_ hub.Presence = away{}
)

func absent(why string) hub.Agent { return away{why, time.Now()} }

// Away implements hub.Presence.
func (a away) Away() (time.Time, bool) { return a.since, true }

// Handle implements hub.Agent.
func (a away) Handle(context.Context, hub.Turn, hub.Reply) error {
	return fmt.Errorf("%w: %s", hub.ErrAway, a.why)
}
