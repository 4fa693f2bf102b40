package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/message"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Deliver returns when the host has the event; what a lost connection left
// open is delivered again under the same id.
func TestDeliverWaitsForTheAcknowledgement(t *testing.T) {
	h := newHost11(t)
	h.cursor = "40"
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	if got := host.Cursor(); got != "40" {
		t.Errorf("Cursor = %q", got)
	}
	deliver := func(e Event) chan error {
		c := make(chan error, 1)
		go func() { c <- host.Deliver(t.Context(), e) }()
		return c
	}
	delivered := deliver(Event{Text: "no id", Cursor: "41"})
	first := p.next(t)
	if first.MessageID == "" {
		t.Fatalf("found %+v", first)
	}
	p.refused(t, first.MessageID, "storage_unavailable: full", true)
	if again := p.next(t); again.MessageID != first.MessageID {
		t.Errorf("again as %+v", again)
	}
	_ = p.conn.Close(wire.CloseDraining, "")
	p = receive(t, "new connection", h.peers)
	again := p.next(t)
	if again.MessageID != first.MessageID || again.Text != "no id" || again.Cursor != "41" {
		t.Errorf("again as %+v", again)
	}
	if len(delivered) > 0 || host.Cursor() != "40" {
		t.Fatalf("returned %v, cursor %s, without an acknowledgement", <-delivered, host.Cursor())
	}
	p.took(t, first.MessageID)
	if err := receive(t, "Deliver", delivered); err != nil || host.Cursor() != "41" {
		t.Errorf("Deliver = %v, cursor %q", err, host.Cursor())
	}

	other := deliver(Event{Text: "another"})
	if in := p.next(t); in.MessageID == first.MessageID {
		t.Errorf("found the id of the first in %+v", in)
	} else {
		p.took(t, in.MessageID)
	}
	if err := receive(t, "Deliver", other); err != nil {
		t.Errorf("Deliver = %v", err)
	}

	for what, no := range map[string]func(id string){
		"acknowledgement": func(id string) { p.refused(t, id, "why not", false) },
		"error frame": func(id string) {
			p.write(t, string((&wire.Error{Code: wire.CodeTooLarge, Message: "why not", Ref: id}).Append(nil)))
		},
	} {
		delivered = deliver(Event{ID: "tg-1", Text: "refused"})
		no(p.next(t).MessageID)
		var rejected *RejectedError
		if err := receive(t, "Deliver", delivered); !errors.As(err, &rejected) || !strings.Contains(rejected.Reason, "why not") {
			t.Errorf("%s: Deliver = %v", what, err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	c := make(chan error, 1)
	go func() { c <- host.Deliver(ctx, Event{ID: "tg-2", Text: "given up"}) }()
	p.next(t)
	cancel()
	if err := receive(t, "Deliver", c); !errors.Is(err, context.Canceled) {
		t.Errorf("Deliver = %v", err)
	}
	p.took(t, "tg-2") // late: nobody minds
	go func() { c <- host.Deliver(ctx, Event{ID: "tg-3", Text: "last words"}) }()
	p.next(t)
	p.took(t, "tg-3")
	if err := receive(t, "Deliver", c); err != nil {
		t.Errorf("Deliver = %v", err)
	}
	l, err := host.links.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) != 0 || len(l.window) != 0 {
		t.Errorf("%d still wait, window %d", len(l.waiting), len(l.window))
	}
}

// No more events are under way than the host wants.
func TestDeliverKeepsToTheWindow(t *testing.T) {
	const events = 50
	h := newHost11(t)
	h.window = 3
	a, hosts := handed()
	run(t, h, a, Options{})
	p := receive(t, "connection", h.peers)
	host := receive(t, "Run", hosts)
	var done atomic.Int32
	for i := range events {
		go func() {
			if err := host.Deliver(t.Context(), Event{ID: fmt.Sprint(i), Text: "x"}); err != nil {
				t.Errorf("Deliver: %v", err)
			}
			done.Add(1)
		}()
	}
	var open []string
	for range events {
		if len(open) == 3 {
			if len(p.frames) > 0 {
				t.Fatal("a fourth event is under way")
			}
			p.took(t, open[0])
			open = open[1:]
		}
		open = append(open, p.next(t).MessageID)
	}
	p.quiet(t)
	for _, id := range open {
		p.took(t, id)
	}
	eventually(t, "all are delivered", func() bool { return done.Load() == events })
}

func TestEveryKindOfEvent(t *testing.T) {
	all, none := newest, dialect{wire.V11, wire.CapText | wire.CapAck}
	file := []wire.Attachment{{URL: "https://x/a.png", Name: "a.png", Caption: "A"}}
	parts := []message.Part{message.NewText("P")}
	for name, c := range map[string]struct {
		event Event
		as    dialect
		want  string // the frame, or what the error has
	}{
		"parts":           {Event{Text: "t", Parts: parts}, all, `{"type":"message","text":"t","parts":[{"type":"text","text":"P"}],"message_id":"1"}`},
		"parts, no text":  {Event{Parts: parts}, all, `{"type":"message","parts":[{"type":"text","text":"P"}],"message_id":"1"}`},
		"parts as text":   {Event{Parts: parts}, none, `{"type":"message","text":"P","message_id":"1"}`},
		"attachment":      {Event{Attachments: file}, all, `{"type":"message","attachments":[{"url":"https://x/a.png","name":"a.png","caption":"A"}],"message_id":"1"}`},
		"as text":         {Event{Text: "t", Attachments: file}, none, `{"type":"message","text":"t\nA\na.png https://x/a.png","message_id":"1"}`},
		"as text in 1.0":  {Event{Attachments: file}, dialect{}, `{"type":"message","text":"A\na.png https://x/a.png"}`},
		"form":            {Event{UserID: "u", Form: &Form{"f", map[string]any{"a": "<b>", "c": []string{"d"}, "e": true}}, ReplyCtx: 1}, all, `{"type":"form_submit","user_id":"u","ui_id":"f","values":{"a":"<b>","c":["d"],"e":true},"reply_ctx":1,"message_id":"1"}`},
		"form, no grant":  {Event{Form: &Form{"f", map[string]any{}}}, none, "form_submit: " + errLacks.Error()},
		"form, nothing":   {Event{Form: &Form{}}, all, "Form"},
		"edit":            {Event{Edits: "tg-1", Text: "t"}, none, `{"type":"message_edit","text":"t","message_id":"tg-1"}`},
		"edit in 1.0":     {Event{Edits: "tg-1", Text: "t"}, dialect{}, errLacks.Error()},
		"deletion":        {Event{Deletes: "tg-1", Cursor: "9"}, all, `{"type":"message_delete","message_id":"tg-1","cursor":"9"}`},
		"reaction":        {Event{Reaction: &Reaction{"tg-1", "👍", true}}, all, `{"type":"reaction","emoji":"👍","remove":true,"message_id":"tg-1"}`},
		"reaction, empty": {Event{Reaction: &Reaction{To: "tg-1"}}, all, "Emoji"},
		"two at once":     {Event{Action: "a", Edits: "b"}, all, "at most one"},
		"long cursor":     {Event{Cursor: strings.Repeat("x", wire.MaxField+1)}, all, "Cursor"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encode(&c.event, "1", c.as)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if string(got) != c.want {
				t.Errorf("encode = %s\nwant %s", got, c.want)
			}
			if c.as.protocol == wire.V11 {
				if _, bad := wire.DecodeInboundAs(got, wire.Dialect{Protocol: wire.V11, Caps: c.as.caps}); bad != nil {
					t.Errorf("the host reads %v", bad)
				}
			}
		})
	}
}
