package ledger

// PageBytes is how much the messages of one page hold at most, but for a message
// that alone is larger: it goes by itself. A page may thus end before it has as
// many messages as were asked for.
const PageBytes = 8 << 20

// Size is how many bytes a message holds, without what is of the same size for all.
func (e *Entry) Size() int {
	return len(e.Text) + len(e.Parts) + len(e.Meta) + len(e.Notes) + len(e.Origin.ReplyCtx)
}

// PageFull reports whether a page of at most n messages has ended because it was
// full: then there may be more.
func PageFull(page []Entry, n int) bool {
	if len(page) >= n {
		return true
	}
	size := 0
	for i := range page {
		size += page[i].Size()
	}
	return size >= PageBytes
}
