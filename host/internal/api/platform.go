package api

import "github.com/pontoon-bridge/pontoon/host/internal/hub"

// PlatformStatus is how an adapter's platform is, as the adapter says.
type PlatformStatus struct {
	State  string `json:"state" enum:"connecting,connected,reconnecting,refused,limited"`
	Reason string `json:"reason" doc:"In the adapter's words; may be empty"`
	Since  Time   `json:"since"`
	Until  *Time  `json:"until" nullable:"true" doc:"When a limit ends; null = not known, or there is none"`
}

// showPlatform is nil where the adapter does not say how its platform is.
func showPlatform(s hub.PlatformStatus) *PlatformStatus {
	if s.State == "" {
		return nil
	}
	return &PlatformStatus{string(s.State), s.Reason, timeOf(s.Since), when(s.Until)}
}
