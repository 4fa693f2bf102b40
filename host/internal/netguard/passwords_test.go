package netguard

import (
	"fmt"
	"testing"
	"time"
)

// try is an attempt with a wrong password.
func try(t *testing.T, f *Failures, remote string) time.Duration {
	t.Helper()
	done, wait := f.Attempt(remote)
	if (done == nil) != (wait > 0) {
		t.Fatalf("%s: may try: %v, and waits %s", remote, done != nil, wait)
	}
	if done != nil {
		done(false)
	}
	return wait
}

// letIn is an attempt with the right password.
func letIn(t *testing.T, f *Failures, remote string) {
	t.Helper()
	done, wait := f.Attempt(remote)
	if wait > 0 {
		t.Fatalf("%s waits %s", remote, wait)
	}
	done(true)
}

func TestPasswords(t *testing.T) {
	f, now := table()
	for i := range 5 {
		if wait := try(t, f, "192.0.2.1"); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
	for want := time.Second; want <= 8*time.Second; want *= 2 {
		if wait := try(t, f, "192.0.2.1"); wait != want {
			t.Fatalf("waits %s, want %s", wait, want)
		}
		*now = now.Add(want)
		if wait := try(t, f, "192.0.2.1"); wait != 0 {
			t.Fatalf("still waits %s after %s", wait, want)
		}
	}
	if try(t, f, "::ffff:192.0.2.1") == 0 {
		t.Error("the same address in another form does not wait")
	}
	if wait := try(t, f, "192.0.2.2"); wait != 0 {
		t.Errorf("another address waits %s", wait)
	}
	for i := range 5 {
		if wait := try(t, f, fmt.Sprintf("2001:db8::%d", i)); wait != 0 {
			t.Errorf("address %d waits %s", i, wait)
		}
	}
	if try(t, f, "2001:db8::ffff") == 0 {
		t.Error("another address of the same network does not wait")
	}
	if wait := f.Allow("192.0.2.1", Tokens); wait != 0 {
		t.Errorf("an adapter at the address waits %s", wait)
	}
	*now = now.Add(forgiven + time.Second)
	if wait := try(t, f, "192.0.2.1"); wait != 0 {
		t.Errorf("waits %s when it is forgiven", wait)
	}
}

// The wait grows no further than its bound, on this machine too.
func TestPasswordsLongest(t *testing.T) {
	for _, remote := range []string{"192.0.2.1:80", "127.0.0.1:80"} {
		f, now := table()
		longest := time.Duration(0)
		for range 60 {
			wait := try(t, f, remote)
			longest = max(longest, wait)
			*now = now.Add(wait)
		}
		if longest != 15*time.Minute {
			t.Errorf("%s: the longest wait is %s", remote, longest)
		}
	}
}

// Those that are under way at once are not all free, and the same one again counts.
func TestPasswordsAtOnce(t *testing.T) {
	f, _ := table()
	for i := range 5 {
		if _, wait := f.Attempt("192.0.2.1"); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
	if done, wait := f.Attempt("192.0.2.1"); done != nil || wait != time.Second {
		t.Errorf("the sixth at once waits %s", wait)
	}
}

// From many addresses all wait, but not who was let in before, even if the table is
// full of others.
func TestPasswordsOfMany(t *testing.T) {
	f, now := table()
	letIn(t, f, "192.0.2.200")
	for i := range 20 {
		if wait := try(t, f, fmt.Sprintf("198.51.100.%d", i)); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
	if try(t, f, "198.51.100.250") == 0 {
		t.Error("a new address does not wait")
	}
	for i := range maxAddresses + 1000 {
		f.Failed(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Tokens, "x")
	}
	letIn(t, f, "192.0.2.200")
	if try(t, f, "198.51.100.250") == 0 {
		t.Error("the operator's login lets those who guess go on")
	}
	*now = now.Add(30 * time.Second)
	if wait := try(t, f, "198.51.100.250"); wait != 0 {
		t.Errorf("waits %s at the end of the wait", wait)
	}
	if try(t, f, "198.51.100.251") == 0 {
		t.Error("that try let all others go on")
	}
	for range 5 {
		if wait := try(t, f, "192.0.2.200"); wait != 0 {
			t.Errorf("where somebody was let in: waits %s", wait)
		}
	}
	if try(t, f, "192.0.2.200") == 0 {
		t.Error("who guesses where somebody was let in does not wait")
	}
	*now = now.Add(time.Minute)
	letIn(t, f, "203.0.113.1") // a new address
	if wait := try(t, f, "198.51.100.252"); wait != 0 {
		t.Errorf("a login from a new address does not make up for what was wrong: waits %s", wait)
	}
}

func TestPasswordsBounded(t *testing.T) {
	f, now := table()
	for i := range maxTrusted + 10 {
		*now = now.Add(time.Second)
		letIn(t, f, fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}
	if n := len(f.trusted); n != maxTrusted {
		t.Errorf("%d addresses are trusted", n)
	}
	for range 20 {
		*now = now.Add(30 * time.Second)
		_ = try(t, f, "192.0.2.1")
		_ = try(t, f, "192.0.2.2")
	}
	if try(t, f, "10.0.0.0") == 0 {
		t.Error("the oldest is trusted still")
	}
	if wait := try(t, f, "10.0.0.10"); wait != 0 {
		t.Errorf("the oldest that is kept waits %s", wait)
	}
}
