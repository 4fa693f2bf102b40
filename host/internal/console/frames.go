package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// frames are the pages of what an adapter and the host wrote to each other.
func (c *console) frames(mux *routes) {
	mux.HandleFunc("GET "+Path+"channels/{channel}/frames", c.page(c.showFrames))
	mux.HandleFunc("GET "+Path+"channels/{channel}/frames/live", c.page(c.followFrames))
}

func framesPath(channel string) string {
	return Path + "channels/" + url.PathEscape(channel) + "/frames"
}

type frameList struct {
	Frames    []api.Frame `json:"frames"`
	Recording bool        `json:"recording"`
}

func (c *console) showFrames(w http.ResponseWriter, r *http.Request) error {
	ch, err := get[api.Channel](c, r, "channels", r.PathValue("channel"))
	if err != nil {
		return err
	}
	list, err := get[frameList](c, r, "channels", ch.ID, "frames?limit=100")
	if err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{
		Title: "Raw frames of " + ch.Name, Nav: navChannels, Above: [2]string{ch.Name, Path + "channels/" + url.PathEscape(ch.Name)},
		Lead: "What the adapter and the host wrote to each other last, as it crossed the wire, without secrets, inputs of tools and bytes. It is kept in memory only.",
	}, framesContent(ch, list))
	return nil
}

// followFrames is the stream of a channel's frames, as HTML.
func (c *console) followFrames(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), followTime)
	defer cancel()
	r = r.WithContext(ctx)
	header := http.Header{}
	if after := or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")); after != "" {
		header.Set("Last-Event-ID", after)
	}
	out := newSender(w)
	err := c.stream(r, "/channels/"+url.PathEscape(r.PathValue("channel"))+"/frames?follow=true&limit=100", header, func(e event) error {
		if e.Data == "" {
			return out.send(event{Name: "alive", Data: "-"})
		}
		var f api.Frame
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			return err
		}
		var b bytes.Buffer
		b.WriteString(frameID(f) + "\n")
		if err := overt(frameItem(f)).Render(ctx, &b); err != nil {
			return err
		}
		return out.send(event{ID: e.ID, Name: "message", Data: b.String()})
	})
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return nil // the browser has gone, or comes back
}

// frameID is what the page knows a frame by: its seq.
func frameID(f api.Frame) string { return strconv.FormatInt(f.Seq, 10) }

// verdicts say what became of a frame.
var verdicts = map[string]saying{
	"accepted": {Word: "Accepted", Tone: good},
	"lenient":  {Word: "Accepted, though it is wrong", Tone: warning},
	"repeated": {Word: "Repeated, not stored", Tone: warning},
	"refused":  {Word: "Refused", Tone: fault},
	"ignored":  {Word: "Ignored", Tone: idle},
	"written":  {Word: "Written", Tone: good},
	"broken":   {Word: "Connection broke", Tone: fault},
	"closed":   {Word: "Closed", Tone: idle},
}

func verdictOf(f api.Frame) saying {
	v, ok := verdicts[f.Verdict]
	if !ok {
		v = saying{Word: f.Verdict, Tone: idle}
	}
	if f.Code != "" {
		v.Word += ": " + f.Code
	}
	return v
}

// frameText is the frame as it is read by people: JSON, indented; else as it came.
func frameText(f api.Frame) string {
	if f.Text != "" || len(f.Frame) == 0 || string(f.Frame) == "null" {
		return f.Text
	}
	var b bytes.Buffer
	if json.Indent(&b, f.Frame, "", "  ") != nil {
		return string(f.Frame)
	}
	return b.String()
}
