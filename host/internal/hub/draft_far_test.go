package hub_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hub"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// platform is what users see of a model's answers, whichever adapter brought it.
type platform struct {
	posts  map[string]string // what stands there, by what the platform calls it
	of     map[string]string // and that, by the id of the message
	newest string            // id of all that was shown
}

// draftFar is an adapter of the model of drafts: what it is offered is written at once,
// and waits in came until it looks at it.
type draftFar struct {
	m        *draftModel
	n        int
	a        *hub.Attachment
	caps     wire.Caps
	window   int
	interval time.Duration // between two frames that change one message

	// The model's mutex guards the rest.
	gone bool
	came []draftFrame
	void bool // it takes nothing until it is told that it goes on
	said []draftVerdict
}

type draftFrame struct {
	wire.Frame
	tracked bool
}

type draftVerdict struct {
	id     string
	kind   string
	handle string
}

var _ hub.Port = (*draftFar)(nil)

func (f *draftFar) String() string { return fmt.Sprint("adapter ", f.n) }

func (f *draftFar) Offer(p hub.Parcel) bool {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.gone {
		return false
	}
	for i := range p.Frames {
		one := draftFrame{p.Frames[i], p.Tracked}
		f.m.logf("%s was offered %s %q of %q (%s)", f, one.Type, one.Text, one.PreviewHandle, one.MessageID)
		f.m.offered(f, &one)
		f.came = append(f.came, one)
	}
	return true
}

func (f *draftFar) Retire() []hub.Parcel {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.gone = true
	return nil
}

func (f *draftFar) Room() <-chan struct{} {
	room := make(chan struct{})
	close(room)
	return room
}

func (f *draftFar) Flush()                      {}
func (f *draftFar) Admitted(wire.View, string)  {}
func (f *draftFar) Settled(string, *wire.Error) {}
func (f *draftFar) Overdue()                    {}

// look lets the platform look at the next frame. The mutex must be held.
func (f *draftFar) look(kind string, named bool) {
	one := f.came[0]
	f.came = f.came[1:]
	if one.tracked {
		if f.void && !one.Resumed {
			return
		}
		f.void = kind == notNow && f.window > 1
	}
	v := draftVerdict{id: one.MessageID, kind: kind}
	if one.tracked && kind != notNow {
		f.m.decided(&one)
	}
	if kind == taken || !one.tracked {
		v.handle = f.show(&one, named)
	}
	if one.tracked {
		f.said = append(f.said, v)
	}
}

// show shows a frame to the users; the handle is what the platform calls its message.
func (f *draftFar) show(one *draftFrame, named bool) (handle string) {
	p := &f.m.platform
	switch one.Type {
	case wire.TypeUpdateMessage:
		handle = one.PreviewHandle
		if _, there := p.posts[handle]; !there {
			f.m.fault("%q changes %q, which is not there", one.Text, handle)
		}
	default:
		if handle = p.of[one.MessageID]; handle == "" {
			handle = "post " + one.MessageID
			p.of[one.MessageID] = handle
		}
	}
	f.m.seen(one, handle)
	p.posts[handle] = one.Text
	if !named {
		return ""
	}
	return handle
}

// hear lets the host hear the first of what was said.
func (f *draftFar) hear() {
	f.m.mu.Lock()
	v := f.said[0]
	f.said = f.said[1:]
	if v.kind == taken && v.handle != "" {
		f.m.known[v.handle] = true
	}
	f.m.mu.Unlock()
	f.a.Acknowledge(&wire.Inbound{Type: wire.TypeMessageAck, MessageID: v.id, Later: &wire.Later{
		OK: v.kind == taken, Retryable: v.kind == notNow, Ambiguous: v.kind == uncertain, PreviewHandle: v.handle,
	}})
}

// attemptOf is which answer a text is of, and whether it is its end; 0 = it is none's.
func attemptOf(text string) (n int, end bool) {
	first, rest, ok := strings.Cut(text, ":")
	if _, err := fmt.Sscan(first, &n); !ok || err != nil {
		return 0, false
	}
	return n, rest == "end"
}
