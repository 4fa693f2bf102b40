package api

import (
	"context"
	"net/http"

	"github.com/pontoon-bridge/pontoon/host/internal/front/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/store"
)

// ofFront reports a channel that the host makes, for a front end.
func ofFront(row store.Channel) bool { return row.Kind == bridle.Kind }

// checkFront refuses changes that would mean nothing in a built-in channel.
func checkFront(row store.Channel, b PolicyBody) error {
	if !ofFront(row) {
		return nil
	}
	for name, given := range map[string]bool{
		"name": b.Name != nil && *b.Name != row.Name, "queue": b.Queue != nil && *b.Queue, "accept_capabilities": b.AcceptCapabilities != nil,
		"agent": b.Agent != nil && *b.Agent != row.Agent, "profile": b.Profile != nil, "queue_limits": b.QueueLimits != nil,
	} {
		if given {
			return field(http.StatusConflict, "body."+name, "the channel is built in: expected enabled, agents, allow_users, retention_days or rate_limit", "")
		}
	}
	return nil
}

// frontChanged makes a changed row of a built-in channel count.
func (s *server) frontChanged(ctx context.Context, row store.Channel) error {
	if row.Kind == bridle.Kind && s.Bridle != nil {
		return s.Bridle.Changed(ctx, row)
	}
	return nil
}
