package netguard

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"
)

func table() (*Failures, *time.Time) {
	now := time.Unix(1_700_000_000, 0)
	return NewFailures(func() time.Time { return now }), &now
}

// guess fails with a new credential each time until it must wait.
func guess(f *Failures, remote string, door Door, most int) (guesses int, wait time.Duration) {
	for n := range most {
		if wait := f.Allow(remote, door); wait > 0 {
			return n, wait
		}
		f.Failed(remote, door, fmt.Sprint(remote, n, f.now().UnixNano()))
	}
	return most, 0
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		remote string
		door   Door
		most   int
		every  time.Duration
	}{
		{"192.0.2.1:4000", Tokens, 30, 2 * time.Second},
		{"[2001:db8::1]:4000", Keys, 30, 2 * time.Second},
		{"192.0.2.1", AgentKeys, 30, 2 * time.Second},
		{"127.0.0.1:4000", Tokens, 300, 2 * time.Second},
		{"[::1]:4000", Browsers, 300, 2 * time.Second},
		{"192.0.2.1:4000", Cookies, 30, 2 * time.Second},
		{"192.0.2.1:4000", Links, 30, 2 * time.Second},
		{"", Tokens, 30, 2 * time.Second}, // who can't be told apart are one
	} {
		f, now := table()
		n, wait := guess(f, c.remote, c.door, 1000)
		if n != c.most || wait != c.every {
			t.Errorf("%s at %d: %d guesses, then %s, expected %d, then %s", c.remote, c.door, n, wait, c.most, c.every)
		}
		*now = now.Add(wait)
		if n, _ := guess(f, c.remote, c.door, 1000); n != 1 {
			t.Errorf("%s at %d: %d guesses after the wait, expected 1", c.remote, c.door, n)
		}
		// Over an hour it is the rate that counts.
		total := 0
		for range 3600 {
			*now = now.Add(time.Second)
			n, _ := guess(f, c.remote, c.door, 1000)
			total += n
		}
		if want := int(time.Hour / c.every); total < want-1 || total > want+1 {
			t.Errorf("%s at %d: %d guesses in an hour, expected %d", c.remote, c.door, total, want)
		}
	}
}

func TestFailuresOfOthers(t *testing.T) {
	f, _ := table()
	if n, wait := guess(f, "192.0.2.1:1", Tokens, 1000); n != 30 || wait == 0 {
		t.Fatal(n, wait)
	}
	for _, c := range []struct {
		remote string
		door   Door
		waits  bool
	}{
		{"192.0.2.1:2", Tokens, true},
		{"[::ffff:192.0.2.1]:2", Tokens, true}, // the same address
		{"192.0.2.1:2", Keys, false},
		{"192.0.2.2:1", Tokens, false},
	} {
		if wait := f.Allow(c.remote, c.door); (wait > 0) != c.waits {
			t.Errorf("%s at %d waits %s", c.remote, c.door, wait)
		}
	}
	// A /64 is one.
	for i := range 30 {
		f.Failed(fmt.Sprintf("[2001:db8:0:1::%x]:1", i+1), Tokens, fmt.Sprint("six", i))
	}
	if f.Allow("[2001:db8:0:1:ffff::9]:1", Tokens) == 0 {
		t.Error("addresses of one /64 are told apart")
	}
	if wait := f.Allow("[2001:db8:0:2::1]:1", Tokens); wait != 0 {
		t.Errorf("another /64 waits %s", wait)
	}
}

// A program with a token that was revoked shows it again and again: it does not
// take its neighbours along.
func TestFailuresRepeated(t *testing.T) {
	f, _ := table()
	for i := range 10_000 {
		f.Failed("192.0.2.1:1", Tokens, fmt.Sprint("revoked", i%remembered))
	}
	if wait := f.Allow("192.0.2.1:1", Tokens); wait != 0 {
		t.Errorf("the same few credentials again and again: wait %s", wait)
	}
	if n, _ := guess(f, "192.0.2.1:1", Tokens, 1000); n != 30-remembered {
		t.Errorf("%d guesses beside them, expected %d", n, 30-remembered)
	}
}

// Many guesses that were under way at once are paid for.
func TestFailuresAtOnce(t *testing.T) {
	f, now := table()
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() { f.Failed("192.0.2.1:1", Tokens, fmt.Sprint(i)) })
	}
	wg.Wait()
	if wait := f.Allow("192.0.2.1:1", Tokens); wait != 31*2*time.Second {
		t.Errorf("wait %s, expected until 31 of 60 are paid for", wait)
	}
	*now = now.Add(62 * time.Second)
	if wait := f.Allow("192.0.2.1:1", Tokens); wait != 0 {
		t.Errorf("wait %s after that time", wait)
	}
}

// Many addresses that take part have few guesses each; who did not fail is let in.
func TestFailuresTogether(t *testing.T) {
	f, now := table()
	for i := range 1000 {
		f.Failed(fmt.Sprintf("198.18.%d.%d:1", i/256, i%256), Tokens, fmt.Sprint(i))
	}
	if n, _ := guess(f, "192.0.2.1:1", Tokens, 1000); n != int(secrets.alarm) {
		t.Errorf("%d guesses of a new address, expected %d", n, int(secrets.alarm))
	}
	if wait := f.Allow("192.0.2.2:1", Tokens); wait != 0 {
		t.Errorf("an address without a failure waits %s", wait)
	}
	if n, _ := guess(f, "192.0.2.1:1", Keys, 1000); n != 30 {
		t.Errorf("%d guesses at another door, expected 30", n)
	}
	if n, _ := guess(f, "127.0.0.1:1", Tokens, 1000); n != 300 {
		t.Errorf("%d guesses of this machine, expected 300", n)
	}
	*now = now.Add(10 * time.Minute)
	if n, _ := guess(f, "192.0.2.3:1", Tokens, 1000); n != 30 {
		t.Errorf("%d guesses after it, expected 30", n)
	}
}

// The table is bounded, and who guesses on is not forgotten by filling it.
func TestFailuresBounded(t *testing.T) {
	f, now := table()
	if n, _ := guess(f, "192.0.2.1:1", Tokens, 1000); n != 30 {
		t.Fatal(n)
	}
	for i := range maxAddresses + 20_000 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		f.Failed(a.String(), Tokens, a.String())
	}
	if n := f.Len(); n > maxAddresses {
		t.Errorf("%d addresses are remembered, expected at most %d", n, maxAddresses)
	}
	if f.Allow("192.0.2.1:1", Tokens) == 0 {
		t.Error("who guessed most was forgotten")
	}
	*now = now.Add(time.Hour)
	if wait := f.Allow("192.0.2.1:1", Tokens); wait != 0 {
		t.Errorf("wait %s after an hour", wait)
	}
	(*Failures)(nil).Failed("192.0.2.1:1", Tokens, "x")
	if (*Failures)(nil).Allow("192.0.2.1:1", Tokens) != 0 {
		t.Error("no table, and a wait")
	}
	if done, wait := (*Failures)(nil).Attempt("192.0.2.1:1"); done == nil || wait != 0 {
		t.Error("no table, and a wait for a password")
	}
}

func TestHost(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
		"[::ffff:192.0.2.1]:80": "192.0.2.1", "[fe80::1%eth0]:80": "fe80::1", "": "invalid IP", "@": "invalid IP", "name:80": "invalid IP",
	} {
		if got := Host(remote).String(); got != want {
			t.Errorf("%q: %s, expected %s", remote, got, want)
		}
	}
}
