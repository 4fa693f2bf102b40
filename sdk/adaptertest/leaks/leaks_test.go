package leaks

import (
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that takes its time to end is none that was left.
func TestLateEnd(t *testing.T) {
	over := make(chan struct{})
	go func() { <-over }()
	if err := find(0); err == nil || !strings.Contains(err.Error(), "TestLateEnd") {
		t.Errorf("one that is there: %v", err)
	}
	time.AfterFunc(2*time.Second, func() { close(over) }) // longer than goleak looks
	if err := find(await.Limit); err != nil {
		t.Error(err)
	}
}
