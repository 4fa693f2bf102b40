// Package leaks fails the tests of a package that leave goroutines behind. It gives
// those that are about to end as long as any other wait of a test: goleak alone takes
// what a busy machine has not ended within half a second for a leak.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// Main runs the tests, whose HTTP requests have an end, and ends the process with their result. It is for TestMain.
func Main(m *testing.M, known ...goleak.Option) {
	await.ReadsEnd()
	code := m.Run()
	if code == 0 {
		code = Code(known...)
	}
	os.Exit(code)
}

// Code is the exit status of tests that have passed: 1 if goroutines are left, which
// it prints.
func Code(known ...goleak.Option) int {
	if err := find(await.Limit, known...); err != nil {
		fmt.Fprintln(os.Stderr, "the tests passed, but:", err)
		return 1
	}
	return 0
}

// find looks for goroutines until there are none, for at most limit.
func find(limit time.Duration, known ...goleak.Option) error {
	for end := time.Now().Add(limit); ; {
		err := goleak.Find(known...) // waits itself between two looks
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
