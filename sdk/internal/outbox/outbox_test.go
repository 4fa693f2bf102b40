package outbox

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// slowConn is a connection whose writes take until the test says so.
type slowConn struct {
	transport.Conn
	writes chan []string
	goOn   chan struct{}
}

func (c *slowConn) Write(frames ...[]byte) error {
	var texts []string
	for _, f := range frames {
		texts = append(texts, string(bytes.Clone(f)))
	}
	c.writes <- texts
	<-c.goOn
	return nil
}

// What comes while a write is under way goes out with the next one, in order, and no
// caller waits for it; what nobody flushes is written all the same.
func TestOutbox(t *testing.T) {
	c := &slowConn{writes: make(chan []string), goOn: make(chan struct{})}
	o := New()
	o.Put([]byte("to nobody"))
	o.Open(c, [][]byte{[]byte("again")})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Flush()
	}()
	want := func(texts ...string) {
		t.Helper()
		if got := await.Value(t, "a write", c.writes); !slices.Equal(got, texts) {
			t.Errorf("written %q, want %q", got, texts)
		}
	}
	want("again")
	for _, text := range []string{"a", "b"} {
		o.Put([]byte(text))
		o.Flush()
	}
	c.goOn <- struct{}{}
	want("a", "b")
	c.goOn <- struct{}{}
	await.Value(t, "the end of the writing", ended)

	o.Put([]byte("late"))
	o.FlushSoon()
	want("late")
	for n := range maxWrites + 2 { // more than one caller writes for others
		o.Put([]byte{byte('0' + n)})
		o.Flush()
		c.goOn <- struct{}{}
		want(string(rune('0' + n)))
	}
	c.goOn <- struct{}{}

	o.Put([]byte("dropped"))
	o.FlushSoon()
	o.Shut(&slowConn{}) // another one
	o.Shut(c)
	o.Flush()
}

// Who says more than is written waits.
func TestOutboxIsBounded(t *testing.T) {
	c := &slowConn{writes: make(chan []string), goOn: make(chan struct{})}
	o := New()
	o.Open(c, nil)
	said := make(chan struct{}, 3)
	for range 3 {
		go func() {
			o.Put(make([]byte, maxUnwritten))
			o.Flush()
			said <- struct{}{}
		}()
	}
	total := 0
	for total < 3 {
		total += len(await.Value(t, "a write", c.writes))
		if len(said) > total {
			t.Errorf("%d callers went on after %d writes", len(said), total)
		}
		c.goOn <- struct{}{}
	}
	for range 3 {
		<-said
	}
}

// Write waits until its frame is written, or is known not to be; Post does not.
func TestOutboxWrite(t *testing.T) {
	c := &slowConn{writes: make(chan []string), goOn: make(chan struct{})}
	o := New()
	if err := o.Write(t.Context(), nil); !errors.Is(err, ErrShut) {
		t.Errorf("without a connection: %v", err)
	}
	o.Open(c, nil)
	said := make(chan error, 2)
	write := func(text string) { said <- o.Write(t.Context(), []byte(text)) }
	go write("a")
	await.Value(t, "a write", c.writes)
	go write("b")
	await.Until(t, "b waits", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.batch.frames) == 1 })
	if err := o.Post(t.Context(), []byte("c")); err != nil {
		t.Error(err)
	}
	if len(said) > 0 {
		t.Error("Write went on before its frame was written")
	}
	c.goOn <- struct{}{}
	if got := await.Value(t, "a write", c.writes); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("written %q", got)
	}
	if err := o.Post(t.Context(), make([]byte, maxUnwritten+1)); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := o.Post(ended, []byte("no room")); !errors.Is(err, ErrNoRoom) {
		t.Errorf("without room: %v", err)
	}
	go func() { said <- o.Write(t.Context(), []byte("lost")) }()
	await.Until(t, "it waits for room", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.turned != nil })
	o.Shut(c)
	if err := await.Value(t, "the end of what waited", said); !errors.Is(err, ErrShut) {
		t.Errorf("of a connection that went: %v", err)
	}
	c.goOn <- struct{}{}
	for range "ab" {
		if err := await.Value(t, "the end of what was written", said); err != nil {
			t.Error(err)
		}
	}
}
