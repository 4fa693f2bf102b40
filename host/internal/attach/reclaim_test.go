package attach

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// names stands for the messages: what they name stays.
type names struct {
	mu  sync.Mutex
	ids []string
}

func (n *names) among(_ context.Context, ids []string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(n.ids, id) }), nil
}

func (h *host) reclaim(t *testing.T, want int) {
	t.Helper()
	if n, err := h.Reclaim(t.Context()); err != nil || n != want {
		t.Errorf("reclaimed %d, %v, expected %d", n, err, want)
	}
}

func (h *host) there(t *testing.T, o Object, want bool) {
	t.Helper()
	if _, err := h.Stat(o.Ref()); (err == nil) != want || err != nil && !errors.Is(err, ErrNotFound) {
		t.Errorf("%s: %v, expected it there: %v", o.Name, err, want)
	}
}

func TestReclaimRemovesWhatNoMessageNames(t *testing.T) {
	var n names
	h := newHost(t, Options{Named: n.among})
	named := h.put(t, "named", Claim{Name: "named"})
	never := h.put(t, "never named", Claim{Name: "never"})
	n.ids = []string{named.ID()}
	h.reclaim(t, 0)
	h.clock.add(unnamedAge + time.Hour)
	young := h.put(t, "young", Claim{Name: "young"})
	p, _ := young.Ref().place()
	if err := os.Chtimes(h.disk(p.bytes()), h.clock.now(), h.clock.now()); err != nil {
		t.Fatal(err)
	}
	// Of a removal that a crash cut off, and of an upload.
	half := newPlace("owner-1", "txt")
	write(t, h.disk(half.side()), "{}")

	h.reclaim(t, 1)
	h.there(t, named, true)
	h.there(t, young, true)
	h.there(t, never, false)
	if _, err := os.Stat(h.disk(half.side())); err == nil {
		t.Error("what is beside no attachment is there still")
	}
	if files := h.files(t); len(files) != 4 {
		t.Errorf("files: %v, expected two attachments with what is beside them", files)
	}

	n.ids = nil
	h.clock.add(unnamedAge + time.Hour)
	h.reclaim(t, 2)
	h.empty(t)
	h.clock.add(unnamedAge + time.Hour)
	h.reclaim(t, 0)
	if _, err := os.Stat(h.disk(half.dir())); err == nil {
		t.Error("an empty directory is left")
	}
	if h.Bytes() != 0 {
		t.Errorf("%d bytes of nothing", h.Bytes())
	}
	again := h.put(t, "again", Claim{})
	h.there(t, again, true)
}

// Without knowing what messages name, nothing goes.
func TestReclaimKnowsNothing(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "x", Claim{})
	h.clock.add(100 * unnamedAge)
	h.reclaim(t, 0)
	h.there(t, o, true)

	broken := errors.New("database is locked")
	h = newHost(t, Options{Named: func(context.Context, []string) ([]string, error) { return nil, broken }})
	o = h.put(t, "x", Claim{})
	h.clock.add(100 * unnamedAge)
	if _, err := h.Reclaim(t.Context()); !errors.Is(err, broken) {
		t.Errorf("found %v", err)
	}
	h.there(t, o, true)
}

// What a message is about to name stays, though nobody names it yet.
func TestLent(t *testing.T) {
	var n names
	h := newHost(t, Options{Named: n.among})
	byID, byURL, other := h.put(t, "1", Claim{}), h.put(t, "2", Claim{}), h.put(t, "3", Claim{})
	all := []string{byID.ID(), byURL.ID(), other.ID()}
	h.clock.add(unnamedAge + time.Hour)
	if _, err := h.Of("owner-1", byID.ID()); err != nil {
		t.Fatal(err)
	}
	part := message.NewVision(message.VisionPart{Kind: message.VisionInput, MimeType: "image/png", URL: h.get(byURL)})
	stored, err := h.ToStore("owner-1", []message.Part{part})
	if err != nil {
		t.Fatal(err)
	}
	h.Remove(all)
	h.reclaim(t, 0)
	h.there(t, byID, true)
	h.there(t, byURL, true)
	h.there(t, other, false)

	// As a message keeps it: found by its parts, and by its metadata.
	if got := Names([]byte("["+string(stored[0].Raw())+"]"), []byte(`{"links":{"0":"`+byID.ID()+`"},"n":"agent-inputs/x"}`)); !slices.Equal(got, []string{byURL.ID(), byID.ID()}) {
		t.Errorf("names %v", got)
	}
	h.clock.add(lendFor)
	h.Remove(append(all, "nonsense", "agent-files/../x"))
	h.empty(t)
	if _, err := h.Of("owner-1", byID.ID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("found %v", err)
	}
	if len(h.lent) != 0 {
		t.Errorf("%d are lent still", len(h.lent))
	}
}

func TestBytes(t *testing.T) {
	h := newHost(t, Options{})
	h.put(t, "some text", Claim{})
	gone := h.put(t, "more text", Claim{})
	before := h.Bytes()
	if err := h.Delete(gone.Ref()); err != nil {
		t.Fatal(err)
	}
	after := h.Bytes()
	if after <= 9 || before != 2*after {
		t.Errorf("%d bytes, then %d", before, after)
	}
	again := open(t, h.dir, Options{})
	if _, err := again.Reclaim(t.Context()); err != nil || again.Bytes() != after {
		t.Errorf("counted %d, %v, expected %d", again.Bytes(), err, after)
	}
}
