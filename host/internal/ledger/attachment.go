package ledger

// Files are the attachments that messages name. Both are called outside of any
// transaction.
type Files interface {
	Bytes() int64        // that all of them take
	Remove(ids []string) // which no message names any more
}
