package hub

import (
	"strings"
	"testing"
)

// An event is encoded once for all who get it, unless what it becomes is too long to
// wait with it.
func TestEventIsEncodedOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		long  int
		times int
	}{
		{"short", 2*1 + moreEncoded, 1},
		{"long", 2*1 + moreEncoded + 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e Events
			times := 0
			var readers []<-chan *Event
			for range 3 {
				events, end := e.SubscribeTo(func(*Event) bool { return true })
				defer end()
				readers = append(readers, events)
			}
			e.publish(Event{Type: EventStreaming, Text: "x"})
			for _, events := range readers {
				ev := <-events
				got := ev.Encoded(func(ev *Event) string { times++; return strings.Repeat(ev.Text, c.long) })
				if len(got) != c.long {
					t.Errorf("%d bytes, expected %d", len(got), c.long)
				}
			}
			if times != c.times {
				t.Errorf("encoded %d times, expected %d", times, c.times)
			}
		})
	}
}

// What was not published, as events made of the history, is nobody else's.
func TestEventOfHistoryIsEncoded(t *testing.T) {
	ev := Event{Text: "x"}
	if got := ev.Encoded(func(ev *Event) string { return ev.Text }); got != "x" {
		t.Errorf("found %q", got)
	}
}

// The more subscribers there are, the less each of them may fall behind: those who don't
// read cost no more together.
func TestSubscribersAreBoundedTogether(t *testing.T) {
	var e Events
	var readers []<-chan *Event
	const many, size = 200, 64 << 10
	for range many {
		events, end := e.SubscribeTo(func(*Event) bool { return true })
		defer end()
		readers = append(readers, events)
	}
	for range allEventBytes/many/size + 1 {
		e.publish(Event{Type: EventStreaming, Text: strings.Repeat("x", size)})
	}
	if n := e.Subscribers(); n != 0 {
		t.Errorf("%d of those who don't read are left", n)
	}
	waiting := 0
	for _, events := range readers {
		waiting += len(events) * size
	}
	if waiting > allEventBytes {
		t.Errorf("%d bytes wait", waiting)
	}
	alone, end := e.SubscribeTo(func(*Event) bool { return true })
	defer end()
	for range eventBytes / size {
		e.publish(Event{Type: EventStreaming, Text: strings.Repeat("x", size)})
	}
	if len(alone) != eventBytes/size {
		t.Errorf("one alone has %d events", len(alone))
	}
}
