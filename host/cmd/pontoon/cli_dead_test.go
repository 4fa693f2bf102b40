package main

import (
	"slices"
	"strings"
	"testing"
)

// A message's life is told, and dead letters are listed, by the commands.
func TestCLIWhyAndDead(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", `,"queue":true`)
	var sent struct{ ID string }
	h.must(&sent, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"hello"}`)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"why", sent.ID}, 0, "queued"},
		{[]string{"why", sent.ID, "--json"}, 0, `"what":"committed"`},
		{[]string{"why", "0000000000001"}, 1, "not found"},
		{[]string{"dead", "list"}, 0, "MESSAGE"},
		{[]string{"dead", "list", "--json"}, 0, `"dead_letters":[]`},
		{[]string{"dead", "list", "--channel", "nobody"}, 1, "nobody"},
		{[]string{"dead", "show", sent.ID}, 0, "hello"},
		{[]string{"dead", "replay", sent.ID}, 1, "queued"},
		{[]string{"dead", "replay"}, 2, "--all"},
		{[]string{"dead", "replay", sent.ID, "--all"}, 2, "--all"},
		{[]string{"dead", "replay", "--all"}, 0, "0 sent again"},
		{[]string{"dead", "replay", "--all", "--json"}, 0, `"state":"done"`},
		{[]string{"dead", "replay", "--all", "--channel", "nobody"}, 1, "nobody"},
		{[]string{"dead", "count"}, 0, "all"},
		{[]string{"dead", "count", "--json"}, 0, `"counts":[],"total":0,"complete":true`},
		{[]string{"dead", "count", "--channel", "nobody"}, 1, "nobody"},
	} {
		r := runCommand(t, h.env(), "", c.args...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.want) {
			t.Errorf("%q: status %d, %q %q, want %d with %q", c.args, r.code, r.out, r.err, c.code, c.want)
		}
	}
}

// The story of a message has each time that it was written to an adapter which
// acknowledges, and the frames, until the host forgets them.
func TestCLIWhyFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", `,"queue":true,"profile":{"max_text":12}`)
	var sent struct{ ID string }
	h.must(&sent, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"one two three four"}`)
	type told struct {
		Life   []struct{ What, Detail string }
		Frames []struct {
			Direction, Type, Verdict string
			Size                     int
			Frame                    struct {
				MessageID string `json:"message_id"`
			}
		}
		NoFrames string `json:"no_frames"`
	}
	var v told
	h.json(&v, "why", sent.ID)
	if v.Frames == nil || len(v.Frames) != 0 || v.NoFrames != "none is there: it was not written yet" {
		t.Errorf("before it was sent: %+v", v)
	}

	a := h.dial("?token="+token, nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	a.next("register_ack")
	for _, id := range []string{sent.ID, sent.ID + "/2"} {
		if f := a.next("send"); f["message_id"] != id {
			t.Fatalf("the adapter got %v, expected %s", f, id)
		}
		a.send(frame{"type": "message_ack", "message_id": id, "ok": true})
	}
	eventually(t, "it is delivered", func() bool { return h.history("c")[0].State == "delivered" })
	v = told{}
	h.json(&v, "why", sent.ID)
	var life, frames []string
	for _, l := range v.Life {
		life = append(life, strings.TrimSpace(l.What+" "+l.Detail))
	}
	for _, f := range v.Frames {
		frames = append(frames, f.Direction+" "+f.Type+" "+f.Verdict+" "+f.Frame.MessageID)
		if f.Size == 0 {
			t.Errorf("without a size: %+v", f)
		}
	}
	if want := []string{"committed", "sent send " + sent.ID, "sent send " + sent.ID + "/2", "delivered"}; !slices.Equal(life, want) {
		t.Errorf("life %q, expected %q", life, want)
	}
	if want := []string{
		"out send written " + sent.ID, "in message_ack accepted " + sent.ID, "out send written " + sent.ID + "/2", "in message_ack accepted " + sent.ID + "/2",
	}; !slices.Equal(frames, want) || v.NoFrames != "" {
		t.Errorf("frames %q, expected %q; %s", frames, want, v.NoFrames)
	}
	holds(t, h.cli("why", sent.ID), "sent  send "+sent.ID+"/2", "← written", "→ accepted", `"type":"send"`)

	h.stop()
	h.again()
	holds(t, h.cli("why", sent.ID), "delivered", "frames: none is kept")
}

// A replay of which nothing came says so by its exit status.
func TestCLIReplayNone(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.dial("?token="+h.channel("c", ""), nil)
	a.send(frame{"type": "register", "platform": "test", "capabilities": []string{"ack", "text"}, "protocol": "1.1"})
	a.next("register_ack")
	for range 2 {
		h.must(nil, "POST", "/channels/c/messages", `{"conversation_id":"r","text":"no"}`)
		a.send(frame{"type": "message_ack", "message_id": a.next("send")["message_id"], "ok": false, "error": "no"})
	}
	eventually(t, "both are dead", func() bool {
		return strings.Contains(h.cli("dead", "count", "--json"), `"total":2`)
	})
	_ = a.conn.Close()
	eventually(t, "nobody is attached", func() bool {
		var ch channelView
		h.json(&ch, "channel", "show", "c")
		return !ch.Health.Attached
	})
	r := runCommand(t, h.env(), "", "dead", "replay", "--all")
	oneLine(t, r.err, "none was sent again, 2 could not be; the last of them: ")
	if r.code != 1 || r.out != "" {
		t.Errorf("%+v", r)
	}
	r = runCommand(t, h.env(), "", "dead", "replay", "--all", "--json")
	if r.code != 1 || !strings.Contains(r.out, `"left":2`) {
		t.Errorf("as JSON: %+v", r)
	}
}
