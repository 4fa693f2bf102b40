// Package sdktest is what the SDK's tests share: waiting without sleeping, and a log
// that can be read while it is written.
package sdktest

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait. It only passes where something is broken, so that it
// may be long enough for a machine that has much else to do.
const Patience = 2 * time.Minute

// Eventually polls until ok.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not happen within %s", what, Patience)
		}
	}
}

// Receive waits for the next value of c, or for its end.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("%s: did not happen within %s", what, Patience)
		panic("unreachable")
	}
}

// Logs keeps what was written to it.
type Logs struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
