// Package await is how tests wait: for a condition or a value, with one limit that
// is so generous that only what is broken reaches it. A test that waits with it
// passes on a machine that is ten times slower, and is no slower on a quick one.
package await

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// Limit is how long anything may take before a test gives up, also a read of a
// connection that a test has dialed.
const Limit = 3 * time.Minute

// Pauses between two looks at a condition: short at first, then such that the
// looking leaves a busy machine to whoever works.
const (
	shortest = time.Millisecond
	longest  = 50 * time.Millisecond
)

// Until waits until the condition holds. what says what is waited for, as in
// "the agent is away".
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	UntilElse(t, holds, func() string { return what })
}

// UntilElse is Until for a message that depends on what was seen last.
func UntilElse(t testing.TB, holds func() bool, otherwise func() string) {
	t.Helper()
	end := time.Now().Add(Limit)
	for pause := shortest; !holds(); pause = min(2*pause, longest) {
		if time.Now().After(end) {
			t.Fatalf("did not happen within %s: %s", Limit, otherwise())
		}
		time.Sleep(pause)
	}
}

// Value waits for a value of c, or its end, which is the zero value.
func Value[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	late := time.NewTimer(Limit)
	defer late.Stop()
	select {
	case v := <-c:
		return v
	case <-late.C:
		t.Fatalf("did not happen within %s: %s", Limit, what)
		panic("unreachable")
	}
}

// Give hands a value to whoever receives from c.
func Give[T any](t testing.TB, what string, c chan<- T, v T) {
	t.Helper()
	late := time.NewTimer(Limit)
	defer late.Stop()
	select {
	case c <- v:
	case <-late.C:
		t.Fatalf("did not happen within %s: %s", Limit, what)
	}
}

// Done waits until what waits has returned, as a WaitGroup's Wait.
func Done(t testing.TB, what string, waits func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with what it waits for
		defer close(done)
		waits()
	}()
	Value(t, what, done)
}

// ReadsEnd lets a read of http.DefaultClient fail after Limit in which nothing comes,
// where it would wait for as long as the tests may run: for TestMain. What is read
// from then on may be a stream that goes on for longer.
func ReadsEnd() {
	dialer := &net.Dialer{Timeout: Limit}
	http.DefaultTransport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return ending{c}, nil
	}
}

// ending is a connection each of whose reads has an end.
type ending struct{ net.Conn }

func (c ending) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(Deadline()); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Deadline is for the reads and writes of a connection that a test has dialed.
func Deadline() time.Time { return time.Now().Add(Limit) }
