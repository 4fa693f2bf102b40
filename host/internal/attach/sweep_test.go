package attach

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	h := newHost(t, Options{})
	ctx := context.Background()
	kept := h.put(t, "text", Claim{})
	over := h.reserve(t, Claim{}, 4)

	// What a crash leaves: bytes half written; and published but for the bytes.
	half, unborn := newPlace("o", "txt"), newPlace("owner-1", "json")
	write(t, h.disk(half.temp()), "ha")
	write(t, h.disk(unborn.temp()), "text")
	write(t, h.disk(unborn.side()), "{}")
	write(t, h.disk(unborn.tempSide()), "{")
	write(t, h.disk(tempDir+"/stray"), "x")
	write(t, h.disk(reservedDir+"/stray.json"), "x")

	if n, err := h.Sweep(ctx, 0); err != nil || n != 1 || len(h.files(t)) != 8 {
		t.Errorf("at once: found %d, %v, %v, expected what is no reservation gone alone", n, err, h.files(t))
	}
	h.clock.add(2 * time.Hour)
	open := h.reserve(t, Claim{}, 4)
	if n, err := h.Sweep(ctx, 0); err != nil || n != 5 {
		t.Errorf("found %d, %v, expected 5", n, err)
	}
	if names := h.files(t); len(names) != 3 {
		t.Errorf("found %v, expected an attachment and a reservation", names)
	}
	if _, err := h.Stat(kept.Ref()); err != nil {
		t.Error(err)
	}
	if r := do(t, "PUT", open.URL, nil, strings.NewReader("text")); r.status != 201 {
		t.Errorf("found %d, expected the reservation to be there", r.status)
	}
	if r := do(t, "PUT", h.Sign(over.Object.Ref(), "PUT", 0), nil, strings.NewReader("text")); r.status != 404 {
		t.Errorf("found %d, expected the reservation gone", r.status)
	}
}

// What is under way is left alone, however old it is.
func TestSweepSpares(t *testing.T) {
	h := newHost(t, Options{})
	res := h.reserve(t, Claim{}, 100_000)
	conn := startPut(t, h, res, 50_000)
	p, _ := res.Object.Ref().place()
	until(t, "the upload to reach the disk", func() bool { _, err := os.Stat(h.disk(p.temp())); return err == nil })
	h.clock.add(24 * time.Hour)
	if n, err := h.Sweep(context.Background(), time.Minute); err != nil || n != 0 {
		t.Errorf("found %d, %v, expected 0", n, err)
	}
	if _, err := conn.Write([]byte(strings.Repeat("x", 50_000))); err != nil {
		t.Fatal(err)
	}
	until(t, "the upload to end", func() bool { _, err := h.Stat(res.Object.Ref()); return err == nil })
}

// An attachment that was half deleted is gone for good.
func TestSweepDeleted(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	p, _ := o.Ref().place()
	if err := os.Rename(h.disk(p.bytes()), h.disk(p.temp())); err != nil { // as Delete does
		t.Fatal(err)
	}
	_, err := h.Stat(o.Ref())
	refused(t, err, ErrNotFound, "")
	h.clock.add(2 * time.Hour)
	if n, err := h.Sweep(context.Background(), 0); err != nil || n != 1 {
		t.Errorf("found %d, %v, expected 1", n, err)
	}
	h.empty(t)
}

func TestSweepBounds(t *testing.T) {
	h := newHost(t, Options{})
	for range 3 * sweepBatch {
		write(t, h.disk(newPlace("o", "txt").temp()), "x")
	}
	h.clock.add(2 * time.Hour)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := h.Sweep(ctx, 0); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("found %d, %v, expected the context's end", n, err)
	}
	if n, err := h.Sweep(context.Background(), 0); n != 3*sweepBatch || err != nil {
		t.Errorf("found %d, %v, expected %d", n, err, 3*sweepBatch)
	}
	// One that can't be read is told, and does not stop the others.
	symlink(t, "nowhere", h.disk(reservedDir+"/link.json"))
	write(t, h.disk(reservedDir+"/stray.json"), "x")
	if n, err := h.Sweep(context.Background(), 0); n != 1 || err == nil || !strings.Contains(err.Error(), "link.json: found a symlink") {
		t.Errorf("found %d, %v", n, err)
	}
}
