package grpcconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

func TestWatchFindsOnlyWritesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan time.Time, 2)
		w := watch{hangs: func() { hung <- time.Now() }}
		for range 50 { // none hangs, however many there are
			w.begin()
			time.Sleep(transport.WriteTimeout - time.Millisecond)
			w.end()
		}
		if len(hung) > 0 {
			t.Fatal("a write within its time hangs")
		}
		time.Sleep(2 * watchEvery)
		if w.awake.Load() {
			t.Error("an idle stream is looked at")
		}
		for range 3 { // idle in between
			w.begin()
			w.end()
			time.Sleep(time.Hour)
		}
		began := time.Now()
		w.begin()
		time.Sleep(3 * transport.WriteTimeout)
		if len(hung) != 1 {
			t.Fatalf("a write that hangs is found %d times, want once", len(hung))
		}
		if after := (<-hung).Sub(began); after < transport.WriteTimeout || after > transport.WriteTimeout+watchEvery {
			t.Errorf("a write that hangs is found after %s, want %s", after, transport.WriteTimeout)
		}
	})
}
