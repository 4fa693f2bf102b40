package ledger

import (
	"time"
)

// Operator is who operates the host.
type Operator struct {
	Name      string
	Password  string // its hash with salt and parameters, never shown
	CreatedAt time.Time
	ChangedAt time.Time // when the password was last set
}
