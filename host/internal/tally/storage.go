package tally

import "sync/atomic"

// Storage is what an engine counts since the process began. One goroutine adds.
type Storage struct {
	Commits Histogram     // how long the commits of messages took
	Batch   Histogram     // how many units each of them had
	Refused atomic.Uint64 // units that were not stored

	Failing atomic.Bool // the latest commit failed: messages are refused
}
