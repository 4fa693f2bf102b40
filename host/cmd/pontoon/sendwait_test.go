package main

import (
	"strings"
	"testing"
)

// With --wait, send tells what the platform said, and fails if it took nothing.
func TestSendWait(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.dial("?token="+h.channel("c", ""), nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack"}, "protocol": "1.1"})
	a.next("register_ack")
	for _, c := range []struct {
		ack  frame
		code int
		want string
	}{
		{frame{"ok": true}, 0, " delivered\n"},
		{frame{"ok": true, "note": "2 of 5 lines were cut"}, 0, " delivered; not shown as it was: 2 of 5 lines were cut\n"},
		{frame{"ok": false, "error": "no such room"}, 1, " failed/rejected; refused: no such room\n"},
	} {
		done := make(chan result, 1)
		go func() { done <- runCommand(t, h.env(), "", "send", "c", "room", "hi", "--wait") }()
		sent := a.next("send")
		c.ack["type"], c.ack["message_id"] = "message_ack", sent["message_id"]
		if sent["unsolicited"] != true {
			t.Errorf("what nobody asked for came as %v", sent)
		}
		a.send(c.ack)
		r := <-done
		if r.code != c.code || !strings.HasSuffix(r.out, c.want) {
			t.Errorf("%v: exit status %d, %q %q, want %d, %q", c.ack, r.code, r.out, r.err, c.code, c.want)
		}
	}
	r := runCommand(t, h.env(), "", "send", "c", "room", "hi", "--wait=1ms")
	late := a.next("send")
	if r.code != 1 || !strings.Contains(r.err, "nobody has said within 1ms") {
		t.Errorf("no answer: exit status %d, %q %q", r.code, r.out, r.err)
	}
	a.send(frame{"type": "message_ack", "message_id": late["message_id"], "ok": true})
	quiet := h.attach(h.channel("quiet", ""))
	holds(t, h.cli("send", "quiet", "room", "hi", "--wait"), " sent\n")
	quiet.next("send")
	a.send(frame{"type": "message", "conversation_id": "room", "user_id": "u", "text": "hello"})
	if f := a.next("send"); f["unsolicited"] != nil {
		t.Errorf("an answer came as %v", f)
	}
}
