package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

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
