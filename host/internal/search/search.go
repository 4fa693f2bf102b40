package search

import (
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// Find is what is looked for.
type Find struct {
	Query    Query
	Channels []int64          // their messages only; nil = of all, none = of none
	Except   []int64          // channels
	Cursor   ledger.MessageID // older ones; 0 = from the newest on
	N        int              // most results
	Patience time.Duration    // 0 = searchTime
}

// Found is what was found, newest first.
type Found struct {
	Messages []ledger.Heading
	// Next is where to go on; 0 = there is nothing more. With fewer messages than
	// were asked for, time was up.
	Next ledger.MessageID
	// Behind is how many messages could not be looked at, as the index does not
	// have them yet; More: at least so many.
	Behind int64
	More   bool
}
