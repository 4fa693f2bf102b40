package hub

// pass takes what a typed text may choose from the conversation: that is good for its
// next message, which f is. The channel must be locked.
func (f *inbound) pass() {
	if f.conv.offer.Typed() {
		f.passed, f.offered = f.conv.offer, f.conv.offered
		f.conv.offer = f.passed.Passed()
	}
}

// unpass undoes pass, for a frame that is not stored: it comes again, or was there
// before. The channel must be locked.
func (f *inbound) unpass() {
	if f.passed.Typed() && f.conv.offered == f.offered {
		f.conv.offer = f.passed
	}
}
