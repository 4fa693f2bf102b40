// Package torture says how long tests of faults run, and collects what they
// found in one table. It is for tests.
package torture

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// env names a file: the long form runs, and rows of the table are added to it.
const env = "PONTOON_TORTURE"

// Long reports whether the long form is asked for.
func Long() bool { return os.Getenv(env) != "" }

// Times is how often to try, in the short form or the long one.
func Times(short, long int) int {
	if Long() {
		return long
	}
	return short
}

// Row is what one fault did.
type Row struct {
	Fault      string
	Tried      string
	Lost       int
	Duplicated int
	Disordered int
	Recovery   []time.Duration // of each time it was tried
}

// Report logs the row, and adds it to the table. It fails the test if anything
// was lost, duplicated or out of order.
func Report(t testing.TB, r Row) {
	t.Helper()
	line := fmt.Sprintf("| %s | %s | %d | %d | %d | %s |\n", r.Fault, r.Tried, r.Lost, r.Duplicated, r.Disordered, r.recovery())
	t.Log(line)
	if r.Lost+r.Duplicated+r.Disordered > 0 {
		t.Errorf("%s: %d lost, %d duplicated, %d out of order", r.Fault, r.Lost, r.Duplicated, r.Disordered)
	}
	if Long() {
		add(t, os.Getenv(env), line)
	}
}

// recovery is the median and the longest.
func (r *Row) recovery() string {
	n := len(r.Recovery)
	if n == 0 {
		return "–"
	}
	s := append([]time.Duration(nil), r.Recovery...)
	slices.Sort(s)
	if n == 1 {
		return short(s[0])
	}
	return fmt.Sprintf("%s (≤ %s)", short(s[n/2]), short(s[n-1]))
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
