package main

import (
	"context"
	"encoding/json"
	"time"
)

// platformView is how an adapter's platform is, as the commands print it.
type platformView struct {
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	Since  *time.Time `json:"since"`
}

// word is the state alone.
func (p *platformView) word() string {
	if p == nil {
		return "–"
	}
	return p.State
}

// String is all that is known.
func (p *platformView) String() string {
	if p == nil {
		return "–"
	}
	text := p.State + " since " + ago(p.Since)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// checkPlatforms says which adapters are attached and have no platform.
func checkPlatforms(ctx context.Context, c *client) []finding {
	raw, err := c.all(ctx, "/channels", "channels")
	if err != nil {
		return []finding{{checkWarn, "platforms", "the channels can't be asked for: " + err.Error()}}
	}
	var v struct{ Channels []channelView }
	if err := json.Unmarshal(raw, &v); err != nil {
		return []finding{{checkFail, "platforms", "the channels: " + err.Error()}}
	}
	var found []finding
	for _, ch := range v.Channels {
		p := ch.Health.Platform
		if !ch.On || p == nil {
			continue
		}
		f := finding{checkWarn, "platform of " + ch.Name, p.String()}
		switch p.State {
		case "connected":
			f.Result = checkOK
		case "refused":
			f.Result = checkFail
		}
		found = append(found, f)
	}
	return found
}
