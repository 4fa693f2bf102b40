package ledger

import (
	"errors"
	"time"
)

// Secret is a value that has a name and is never shown: only when it came, and
// when it last changed.
type Secret struct {
	ID        int64
	Name      string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// MaxSecrets bounds how many there are.
const MaxSecrets = 1000

// ErrTooMany is the error of one more than there may be.
var ErrTooMany = errors.New("there are as many as are allowed")
