package ledger

// Key is a credential of the API without its secret.
type Key struct {
	Token    // its id is never 0, and never used again; it has no owner
	Name     string
	Scopes   []string
	Channels []string // ids of those that it is limited to, also of deleted ones; empty = all
}
