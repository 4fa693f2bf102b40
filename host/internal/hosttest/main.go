package hosttest

import (
	"flag"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

// Main runs a package's tests, more at a time than there are processors, since they
// wait for the disk and for peers more than they compute, and fails if a goroutine is
// left in the end.
func Main(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	leaks.Main(m, toxic.Left()...)
}
