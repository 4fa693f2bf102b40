package ledger

import "context"

// Reader reads what was committed.
type Reader interface {
	// Message reads one message, or ErrNotFound.
	Message(ctx context.Context, id MessageID) (Entry, error)
	// ByPlatformID reads the message that the platform knows by the id, or ErrNotFound.
	ByPlatformID(ctx context.Context, channel int64, id string) (Entry, error)
	// Before reads up to n messages, newest first, from before a message; 0 starts.
	// Before one that was deleted there is nothing. See PageFull, and Scope.Bytes.
	Before(ctx context.Context, in Scope, before MessageID, n int) ([]Entry, error)
	// Entries reads the messages with these ids, in this order, but for those that are
	// deleted. How much they hold is for the caller to know.
	Entries(ctx context.Context, ids []MessageID) ([]Entry, error)
	Planner
}

// Planner tells what a reader of much is to read, so that it can be read little by
// little.
type Planner interface {
	// Headings is Before for who reads the messages later, without a bound of bytes.
	Headings(ctx context.Context, in Scope, before MessageID, n int) ([]Heading, error)
	// HeadingsAfter lists up to n messages of all channels in commit order, from behind
	// one.
	HeadingsAfter(ctx context.Context, id MessageID, n int) ([]Heading, error)
}

// Directory keeps the channels. Each change is in the audit log.
type Directory interface {
	// Channel reads a channel by its id or name, or ErrNotFound.
	Channel(ctx context.Context, ref string) (Channel, error)
	// ChannelByKey reads a channel by its key, or ErrNotFound.
	ChannelByKey(ctx context.Context, key int64) (Channel, error)
	// ChannelOfKind reads the oldest channel of a kind of which the host makes one.
	ChannelOfKind(ctx context.Context, kind string) (Channel, error)
	// Channels reads up to n channels, oldest first, from behind the one with key after.
	Channels(ctx context.Context, after int64, n int) ([]Channel, error)
	// CreateChannel adds a channel, with a first token unless its kind has none. Errors
	// are ErrNameTaken, ErrTokenTaken and those of storage.
	CreateChannel(ctx context.Context, c Channel, token *NewCredential, by Change) (Channel, error)
	// UpdateChannel writes a channel's policy, unless the row is not c.Version any more;
	// see Edit. Errors are ErrNotFound, ErrConflict, ErrNameTaken and those of storage.
	UpdateChannel(ctx context.Context, c Channel, by Change) (Channel, error)
	// DeleteChannel removes a channel with its tokens, and its messages little by little,
	// unless the row is not c.Version any more. Units for it are refused with ErrRemoved
	// from then on. Errors are ErrNotFound, ErrConflict and those of storage.
	DeleteChannel(ctx context.Context, c Channel, by Change) error
}
