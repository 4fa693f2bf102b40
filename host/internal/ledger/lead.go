package ledger

// Leader is who may commit a unit on its own goroutine. That spares a unit that
// is alone two wake-ups of other goroutines, which take as long as its commit.
type Leader interface {
	Flusher

	// Lively reports whether the caller appends so often that it is worth its
	// while: a commit leaves the goroutine with a larger stack for some time.
	Lively() bool

	// FlushHere is Flush, but that it writes before it returns, for which it
	// may block.
	FlushHere()
}
