package agent

import (
	"bytes"
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
	o := newOutbox()
	o.put([]byte("to nobody"))
	o.open(c, [][]byte{[]byte("again")})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.flush()
	}()
	want := func(texts ...string) {
		t.Helper()
		if got := await.Value(t, "a write", c.writes); !slices.Equal(got, texts) {
			t.Errorf("written %q, want %q", got, texts)
		}
	}
	want("again")
	for _, text := range []string{"a", "b"} {
		o.put([]byte(text))
		o.flush()
	}
	c.goOn <- struct{}{}
	want("a", "b")
	c.goOn <- struct{}{}
	await.Value(t, "the end of the writing", ended)

	o.put([]byte("late"))
	o.flushSoon()
	want("late")
	for n := range maxWrites + 2 { // more than one caller writes for others
		o.put([]byte{byte('0' + n)})
		o.flush()
		c.goOn <- struct{}{}
		want(string(rune('0' + n)))
	}
	c.goOn <- struct{}{}

	o.put([]byte("dropped"))
	o.flushSoon()
	o.shut(&slowConn{}) // another one
	o.shut(c)
	o.flush()
}

// Who says more than is written waits.
func TestOutboxIsBounded(t *testing.T) {
	c := &slowConn{writes: make(chan []string), goOn: make(chan struct{})}
	o := newOutbox()
	o.open(c, nil)
	said := make(chan struct{}, 3)
	for range 3 {
		go func() {
			o.put(make([]byte, maxUnwritten))
			o.flush()
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
