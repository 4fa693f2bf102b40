package ledger

import "errors"

// PageBytes is how much the messages of one page hold at most, but for a message
// that alone is larger: it goes by itself. A page may thus end before it has as
// many messages as were asked for.
const PageBytes = 8 << 20

// ErrPageBytes is the error of a page that holds more than Scope.Bytes.
var ErrPageBytes = errors.New("the page holds more bytes than were asked for")

// Size is how many bytes a message holds, without what is of the same size for all.
func (e *Entry) Size() int {
	return len(e.Text) + len(e.Parts) + len(e.Meta) + len(e.Notes) + len(e.Origin.ReplyCtx)
}

// PageFull reports whether a page of at most n messages, or changes of the audit
// log, has ended because it was full: then there may be more.
func PageFull[T any, P interface {
	*T
	Size() int
}](page []T, n int) bool {
	if len(page) >= n {
		return true
	}
	size := 0
	for i := range page {
		size += P(&page[i]).Size()
	}
	return size >= PageBytes
}

// Heading is a message without what it says.
type Heading struct {
	ID      MessageID
	Channel int64 // its key
	Size    int   // bytes that it holds, roughly: Entry.Size, or some more
}

// Fitting is how many of the first messages hold no more than most bytes: one at
// least.
func Fitting(list []Heading, most int) int {
	n := 0
	for ; n < len(list) && (n == 0 || list[n].Size <= most); n++ {
		most -= list[n].Size
	}
	return n
}
