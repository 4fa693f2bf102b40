package console

import "github.com/pontoon-bridge/pontoon/host/internal/api"

// platformSayings explains every state of a platform but the good one.
var platformSayings = map[string]saying{
	"connecting":   {"platform connecting", "The adapter is attached and has not reached its platform yet.", "", about},
	"reconnecting": {"platform lost", "The adapter is attached and has lost its platform. It tries again by itself.", "", warning},
	"refused":      {"platform refuses", "The platform does not let the adapter in. Mend its credentials, then restart it.", "", fault},
	"limited":      {"platform limits", "The platform takes nothing for a while. Messages for it wait.", "", about},
}

// platformCondition is how a channel is whose adapter is attached and has no platform.
func platformCondition(p api.PlatformStatus) condition {
	s, ok := platformSayings[p.State]
	if !ok {
		s = saying{Word: "platform " + p.State, Tone: about}
	}
	why := s.Mean
	if p.Reason != "" {
		why += " It says: " + p.Reason
	}
	return condition{s.Tone, s.Word, why}
}
