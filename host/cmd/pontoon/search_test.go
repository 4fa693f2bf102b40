package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

func TestSearchMessages(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p, other := h.attach(h.channel("c", "")), h.attach(h.channel("d", ""))
	p.ask("one", "the Crème <b>brûlée</b> is here", "echo: the Crème <b>brûlée</b> is here")
	other.ask("two", "creme elsewhere", "echo: creme elsewhere")

	type found struct {
		Results []struct {
			Channel string
			Snippet []struct {
				Text  string
				Match bool
			}
			Message row
		}
		Next   string `json:"next_cursor"`
		Behind int
	}
	var got found
	h.json(&got, "search", "creme", "from:alice")
	if len(got.Results) != 2 || got.Results[0].Channel != "d" || got.Results[1].Message.Text != "the Crème <b>brûlée</b> is here" || got.Behind != 0 {
		t.Fatalf("found %+v", got)
	}
	if s := got.Results[1].Snippet; len(s) != 3 || s[0].Text != "the " || s[1].Text != "Crème" || !s[1].Match || s[2].Text != " <b>brûlée</b> is here" {
		t.Errorf("snippet %+v", s)
	}
	got = found{}
	h.json(&got, "search", "creme", "--channel", "c", "--limit", "1")
	if len(got.Results) != 1 || got.Results[0].Message.Direction != "out" || got.Next == "" {
		t.Errorf("a page of one channel: %+v", got)
	}
	got = found{}
	h.json(&got, "search", "creme channel:c -from:alice")
	if len(got.Results) != 1 || got.Results[0].Message.Author != "echo" {
		t.Errorf("not from alice: %+v", got)
	}
	if text := h.cli("search", "brulee from:alice"); !strings.Contains(text, "alice: the Crème <b>brûlée</b> is here  (handled)") {
		t.Errorf("for people: %s", text)
	}
	for q, want := range map[string]string{
		`") OR 1 --`: "", `NEAR(a b) text:* ^x`: "", "'; DROP TABLE message; --": "", "!!!": "found no word", "state:lost": "state: found",
		"channel:nowhere x": "channel: there is none", "before:soon": "before: found", strings.Repeat("x", 501): "length",
	} {
		status, body := h.request("GET", "/search?q="+url.QueryEscape(q), "")
		if wanted := map[bool]int{true: 200, false: 422}[want == ""]; status != wanted || !strings.Contains(body, want) {
			t.Errorf("%.30s: %d %s", q, status, body)
		}
	}

	var list struct {
		Conversations []struct {
			Channel string
			ID      string `json:"conversation_id"`
			Last    struct{ Author, Snippet, State string }
		}
	}
	h.must(&list, "GET", "/conversations", "")
	if len(list.Conversations) != 2 || list.Conversations[0].ID != "two" || list.Conversations[1].Last.Snippet != "echo: the Crème <b>brûlée</b> is here" || list.Conversations[1].Last.Author != "echo" {
		t.Errorf("conversations %+v", list)
	}
	h.must(&list, "GET", "/conversations?channel=c", "")
	if len(list.Conversations) != 1 || list.Conversations[0].Channel != "c" {
		t.Errorf("conversations of c %+v", list)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	p := h.attach(token)
	follower := startProcess(t, h.env(), pontoonBinary, "frames", "c", "--follow")
	p.ask("one", "hello", "echo: hello")
	p.send(frame{"type": "nonsense", "token": "canary-one", "input": map[string]any{"x": "canary-two"}, "data": strings.Repeat("canary", 100)})
	p.next("error")
	if err := p.conn.WriteMessage(websocket.TextMessage, []byte("{\"half\x1b[31m")); err != nil {
		t.Fatal(err)
	}
	p.next("error")
	var got struct {
		Recording bool
		Frames    []struct {
			Seq                                  int64
			Direction, Type, Verdict, Code, Text string
			Size                                 int
			Frame                                json.RawMessage
		}
		Next string `json:"next_cursor"`
	}
	h.json(&got, "frames", "c")
	var kinds []string
	for _, f := range got.Frames {
		kinds = append(kinds, f.Direction+" "+f.Type+" "+f.Verdict+" "+f.Code)
	}
	want := []string{
		"in message accepted ", "out send written ",
		"in nonsense refused unknown_type", "out error written ", "in  refused bad_json", "out error written ",
	}
	if !slices.Equal(kinds, want) || !got.Recording || got.Frames[4].Text != "{\"half\x1b[31m" || string(got.Frames[4].Frame) != "null" {
		t.Errorf("frames\n%q\n%q, %+v", kinds, want, got)
	}
	if raw := h.cli("frames", "c", "--json"); strings.Contains(raw, "canary") || strings.Contains(raw, token) {
		t.Errorf("secrets are shown: %s", raw)
	}
	h.must(&got, "GET", "/channels/c/frames?cursor="+got.Next, "")
	if len(got.Frames) != 0 {
		t.Errorf("behind the last: %+v", got)
	}
	eventually(t, "the follower sees frames", func() bool {
		out := follower.out.String()
		return strings.Contains(out, `"text":"hello"`) && strings.Contains(out, "refused/bad_json") && !strings.Contains(out, "\x1b")
	})
	if err := p.conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end is a frame", func() bool { return strings.Contains(h.cli("frames", "c", "--limit", "1"), "closed") })
	h.must(nil, "DELETE", "/channels/c", "")
	if status, _ := h.request("GET", "/channels/c/frames", ""); status != 404 {
		t.Errorf("of a deleted channel: %d", status)
	}
}

func TestNoFrames(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--no-frames")
	h.attach(h.channel("c", "")).ask("one", "hello", "echo: hello")
	var got struct {
		Recording bool
		Frames    []any
	}
	h.json(&got, "frames", "c")
	if got.Recording || len(got.Frames) != 0 {
		t.Errorf("frames %+v", got)
	}
	holds(t, h.cli("frames", "c"), "--no-frames")
}

// Who comes back learns what became of what was there already: in its own
// conversation alone, if that is what was asked for.
func TestEventsOfChanges(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", `,"queue":true`)
	var one, other struct{ ID string }
	h.json(&one, "send", "c", "room", "waits")
	h.json(&other, "send", "c", "side", "waits too")
	h.attach(token)
	h.streamed(other.ID, `"state":"sent"`)
	for path, want := range map[string][]string{"/events": {one.ID, other.ID}, "/events?channel=c&conversation=room": {one.ID}} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		var changed []string
		c := &client{base: h.url, key: h.key}
		err := c.events(ctx, path, other.ID, func() error { return nil }, func(event, data string) error {
			var d struct{ ID, State string }
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				return err
			}
			if event != "message.state" || d.State != "sent" {
				t.Errorf("%s: %s %s", path, event, data)
			}
			if changed = append(changed, d.ID); len(changed) == len(want) {
				cancel()
			}
			return nil
		})
		cancel()
		if !slices.Equal(changed, want) {
			t.Errorf("%s: %q changed, expected %q (%v)", path, changed, want, err)
		}
	}
}

// Who asks for one conversation is told of it alone, also when it comes back.
func TestEventsOfOne(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p, other := h.attach(h.channel("c", "")), h.attach(h.channel("d", ""))
	p.ask("room", "first", "echo: first")
	last := h.history("c")[0].ID
	other.ask("room", "elsewhere", "echo: elsewhere")
	p.ask("side", "beside", "echo: beside")
	p.ask("room", "second", "echo: second")
	p.ask("room", "until", "echo: until")
	for path, want := range map[string][]string{
		"/events?channel=c&conversation=room": {"second", "echo: second", "until"},
		"/events?channel=c":                   {"beside", "echo: beside", "second", "echo: second", "until"},
		"/events":                             {"elsewhere", "echo: elsewhere", "beside", "echo: beside", "second", "echo: second", "until"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		var texts []string
		c := &client{base: h.url, key: h.key}
		err := c.events(ctx, path, last, func() error { return nil }, func(event, data string) error {
			var d struct{ Message row }
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				return err
			}
			if event == "message.created" {
				texts = append(texts, d.Message.Text)
			}
			if d.Message.Text == "until" {
				cancel()
			}
			return nil
		})
		cancel()
		if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "echo: until" }); !slices.Equal(texts, want) {
			t.Errorf("%s: %q, expected %q (%v)", path, texts, want, err)
		}
	}
	for path, want := range map[string]int{"/events?conversation=room": http.StatusUnprocessableEntity, "/events?channel=nowhere": http.StatusNotFound} {
		if status, body := h.request("GET", path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
