package netguard

import (
	"math"
	"time"
)

// toll is how failures cost time: so many are free. It is steady if most is 0: then
// one failure is paid for each pause. Else it grows: the first pause doubles with
// each further failure up to most, and all are forgiven after an hour without one.
type toll struct {
	free        float64
	pause, most time.Duration
}

// forgiven is when a toll that grows begins anew.
const forgiven = time.Hour

// debt is for failures under way at once, which may exceed what is free, and are
// paid for up to this factor, where the toll is steady.
const debt = 2

// level is failures that are not paid for.
type level struct {
	n  float64
	at time.Time // what n is of; where the toll grows, the latest failure
}

// fall takes off what time has paid for.
func (l *level) fall(now time.Time, p toll) {
	past := now.Sub(l.at)
	if p.most > 0 {
		if past > forgiven {
			l.n = 0
		}
		return
	}
	if past > 0 {
		l.n = max(0, l.n-float64(past)/float64(p.pause))
	}
	l.at = now
}

// add counts a failure.
func (l *level) add(now time.Time, p toll) {
	l.fall(now, p)
	l.n++
	l.at = now
	if p.most == 0 {
		l.n = min(l.n, debt*p.free)
	}
}

// wait is how long until the next try is free; 0 = it is.
func (l *level) wait(now time.Time, p toll) time.Duration {
	l.fall(now, p)
	over := l.n - p.free + 1
	switch {
	case over <= 0:
		return 0
	case p.most == 0:
		return time.Duration(math.Ceil(over * float64(p.pause)))
	}
	pause := p.most
	if doublings := int(over) - 1; doublings < 20 {
		pause = min(pause, p.pause<<doublings)
	}
	return max(0, l.at.Add(pause).Sub(now))
}
