package api

import (
	"context"
	"net/http"

	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/front/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// ofFront reports the channels of front ends, which the host makes.
func ofFront(row ledger.Channel) bool { return row.Kind == agui.Kind || row.Kind == bridle.Kind }

// checkFront refuses changes that would mean nothing in a built-in channel.
func checkFront(row ledger.Channel, b PolicyBody) error {
	if !ofFront(row) {
		return nil
	}
	given := map[string]bool{
		"name": b.Name != nil && *b.Name != row.Name, "queue": b.Queue != nil && *b.Queue, "accept_capabilities": b.AcceptCapabilities != nil, "profile": b.Profile != nil,
	}
	expected := "enabled, agents, allow_users, retention_days or rate_limit"
	if row.Kind == bridle.Kind { // each conversation says who answers it
		given["agent"] = b.Agent != nil && *b.Agent != row.Agent
		given["queue_limits"] = b.QueueLimits != nil
	} else {
		expected = "agent, queue_limits, " + expected
	}
	for name, given := range given {
		if given {
			return field(http.StatusConflict, "body."+name, "the channel is built in: expected "+expected, "")
		}
	}
	return nil
}

// frontChanged makes a changed row of a built-in channel count.
func (s *server) frontChanged(ctx context.Context, row ledger.Channel) error {
	switch {
	case row.Kind == bridle.Kind && s.Bridle != nil:
		return s.Bridle.Changed(ctx, row)
	case row.Kind == agui.Kind && s.AGUI != nil:
		return s.AGUI.Changed(ctx, row)
	}
	return nil
}
