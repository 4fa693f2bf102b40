package render

import (
	"testing"
	"time"
)

// linear is the most that a text may take which is as long as another that took
// plain: what is quadratic takes minutes where that takes a moment. The bound is of
// this machine, as busy as it is, and so is the same on a slower one.
func linear(plain time.Duration) time.Duration { return 20*time.Second + 1000*plain }

func timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func wantLinear(t *testing.T, what string, took, plain time.Duration) {
	t.Helper()
	if took > linear(plain) {
		t.Errorf("%s: took %s, and as long a text of words %s", what, took, plain)
	}
}
