package agent

import (
	"context"
	"fmt"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
)

// away is an agent that is there by name alone.
type away struct{ why string }

var _ hub.Agent = away{}

// Connected reports that nobody is there.
func (a away) Connected() bool { return false }

// Handle implements hub.Agent.
func (a away) Handle(context.Context, hub.Turn, hub.Reply) error {
	return fmt.Errorf("%w: %s", hub.ErrAway, a.why)
}
