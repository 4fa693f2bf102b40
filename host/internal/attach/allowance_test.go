package attach

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An owner uploads so much at once and an hour; who is over it is told when again, and
// others are not concerned.
func TestAllowance(t *testing.T) {
	h := newHost(t, Options{Burst: 3000, PerHour: 1000, MaxBytes: 1000})
	put := func(owner, by string, bytes int) error {
		_, err := h.Put(t.Context(), owner, strings.NewReader(strings.Repeat("x", bytes)), Claim{Name: "a.txt", By: by})
		return err
	}
	for range 20 { // what is not needed is given back
		if err := put("owner-1", "", 100); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, put("owner-1", "", 1001), ErrTooLarge, "") // it is paid for
	err := put("owner-1", "", 1)
	refused(t, err, ErrTooMany, "one channel or key may upload, or try again in 3600 s")
	if wait := RetryAfter(err); wait != time.Hour {
		t.Errorf("again in %v", wait)
	}
	if err := put("owner-2", "7", 1000); err != nil {
		t.Errorf("another owner: %v", err)
	}
	for _, owner := range []string{"owner-3", "owner-4"} { // a key pays wherever it uploads
		if err := put(owner, "7", 1000); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, put("owner-5", "7", 1), ErrTooMany, "")
	h.clock.add(time.Hour)
	if err := put("owner-5", "7", 1); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// What is uploaded by a url that was reserved counts too, and the answer says when again.
func TestAllowanceOfReserved(t *testing.T) {
	h := newHost(t, Options{Burst: 1000, PerHour: 1000, MaxBytes: 1000})
	first, second := h.reserve(t, Claim{MimeType: "text/plain"}, 1000), h.reserve(t, Claim{MimeType: "text/plain"}, 500)
	if r := do(t, http.MethodPut, first.URL, nil, strings.NewReader(strings.Repeat("x", 1000))); r.status != http.StatusCreated {
		t.Fatalf("%d %s", r.status, r.body)
	}
	text := strings.NewReader(strings.Repeat("x", 500))
	r := do(t, http.MethodPut, second.URL, nil, text)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1800" || !strings.Contains(r.body, "try again in 1800 s") {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	h.clock.add(31 * time.Minute)
	if r := do(t, http.MethodPut, second.URL, nil, strings.NewReader(strings.Repeat("x", 500))); r.status != http.StatusCreated {
		t.Errorf("later: %d %s", r.status, r.body)
	}
}

// An owner has so many reserved uploads at once, however often it asks.
func TestReservationsBounded(t *testing.T) {
	h := newHost(t, Options{})
	for range maxPromised {
		h.reserve(t, Claim{MimeType: "text/plain"}, 1)
	}
	before := len(h.files(t))
	for range 10 {
		_, err := h.Reserve("owner-1", Claim{MimeType: "text/plain"}, 1)
		refused(t, err, ErrTooMany, "found "+strconv.Itoa(maxPromised)+" uploads that are reserved and not made")
	}
	if after := len(h.files(t)); after != before {
		t.Errorf("%d files on the disk, expected %d", after, before)
	}
	if _, err := h.Reserve("owner-2", Claim{MimeType: "text/plain"}, 1); err != nil {
		t.Errorf("another owner: %v", err)
	}
	h.clock.add(DefaultTTL)
	h.reserve(t, Claim{MimeType: "text/plain"}, 1)
}

// Many payers are not kept for ever.
func TestPayersForgotten(t *testing.T) {
	now := time.Unix(1000, 0)
	a := newAllowance(func() time.Time { return now }, 10, 10)
	for i := range 2 * maxPayers {
		if i%maxPayers == 0 {
			now = now.Add(2 * time.Hour)
		}
		if _, err := a.take(1, strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.of) > maxPayers+1 {
		t.Errorf("%d are kept", len(a.of))
	}
}
