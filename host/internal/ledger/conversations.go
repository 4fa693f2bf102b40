package ledger

// ConversationInfo is a conversation in a list.
type ConversationInfo struct {
	ID       int64
	Channel  int64
	Key      string
	Settings Settings
	Turns    int64
	Newest   MessageID
	Last     *Entry // the newest message, in short: Text is how it begins, on one line, and the rest of what it says is left out; nil = it was deleted
	Waiting  int64  // messages that are queued, or sent and not acknowledged
	Failed   int64  // messages on their way out that failed or expired, of the newest deadLooked such of the host
}
