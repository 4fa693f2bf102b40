package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// replayAllPage asks before all dead letters of a channel are sent again.
type replayAllPage struct {
	Channel api.Channel
	Counts  api.DeadCounts // of the channel, the most frequent reason first
}

// unknown reports whether some may be shown a second time.
func (p replayAllPage) unknown() bool {
	return slices.ContainsFunc(p.Counts.Counts, func(n api.DeadCount) bool { return n.Reason == "unknown_outcome" })
}

// askReplayAll shows what would be sent again, and asks.
func (c *console) askReplayAll(w http.ResponseWriter, r *http.Request) error {
	var page replayAllPage
	var err error
	if page.Channel, err = get[api.Channel](c, r, "channels", r.URL.Query().Get("channel")); err != nil {
		return err
	}
	if page.Counts, err = get[api.DeadCounts](c, r, "dead-letters", "counts?channel="+url.QueryEscape(page.Channel.Name)); err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{Title: "Replay all of " + page.Channel.Name, Nav: navDead, Above: [2]string{"Dead letters", Path + "dead"}}, replayAllContent(page))
	return nil
}

// replayAll begins to send all of a channel again, and leads to where it is seen how
// far that is.
func (c *console) replayAll(w http.ResponseWriter, r *http.Request) error {
	channel := r.URL.Query().Get("channel")
	if channel == "" {
		return &Problem{Status: http.StatusUnprocessableEntity, Title: "No channel", Detail: "Expected the channel whose dead letters are replayed."}
	}
	var begun api.Replay
	if err := c.call(r, http.MethodPost, "/dead-letters/replays?channel="+url.QueryEscape(channel), nil, &begun); err != nil {
		return err
	}
	http.Redirect(w, r, replayAt(begun.ID), http.StatusSeeOther)
	return nil
}

func replayAt(id string) string { return where("dead", "replays", id) }

// replayView is the page of one replay of many.
type replayView struct {
	api.Replay
	Now  time.Time
	Path string
}

func (v replayView) running() bool { return v.State == "running" }

// heading says how it stands: it is done only when all have arrived.
func (v replayView) heading() string {
	switch {
	case v.running():
		return digits(int64(v.done())) + " of " + plural(v.Total, "message")
	case v.State == "stopped":
		return "Stopped after " + digits(int64(v.done())) + " of " + plural(v.Total, "message")
	case v.Left > 0 && v.Replayed == 0:
		return "Nothing was replayed"
	case v.DeadAgain > 0:
		return count(v.DeadAgain, "message is", "messages are") + " dead again"
	case v.Waiting > 0:
		return count(v.Waiting, "message has", "messages have") + " not arrived yet"
	case v.Left > 0:
		return "Replayed in part"
	}
	return "Done"
}

// every is how often the page asks again: as long as something may still change.
func (v replayView) every() string {
	switch {
	case v.running():
		return "every 1s"
	case v.Waiting > 0:
		return "every 3s"
	}
	return ""
}

// done is how many it has come to.
func (v replayView) done() int { return v.Replayed + v.Left }

// rest says how long the rest will take, if it goes on as it did; "" = not known.
func (v replayView) rest() string {
	took := v.Now.Sub(v.Began.Time)
	if v.done() == 0 || took < time.Second {
		return ""
	}
	rest := time.Duration(float64(took) / float64(v.done()) * float64(v.Total-v.done())).Round(time.Second)
	return "About " + max(rest, time.Second).String() + " to go."
}

// letters is where the channel's dead letters are.
func (v replayView) letters() string {
	if v.Channel == "" {
		return Path + "dead"
	}
	return deadAt(v.Channel, "")
}

// showReplay shows how far a replay is. While it goes on the page asks again: htmx
// for the piece, and a browser without scripts for the whole page.
func (c *console) showReplay(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	said := view{Title: "Replay", Nav: navDead, Above: [2]string{"Dead letters", Path + "dead"}}
	found, err := get[api.Replay](c, r, "dead-letters", "replays", id)
	if p := (*Problem)(nil); asProblem(err, &p) && p.Status == http.StatusNotFound {
		c.show(w, r, http.StatusNotFound, said, replayGone())
		return nil
	}
	if err != nil {
		return err
	}
	if found.Channel != "" {
		said.Title = "Replay of " + found.Channel
	}
	v := replayView{found, c.Now(), replayAt(found.ID)}
	said.Again = v.running()
	c.show(w, r, http.StatusOK, said, replayContent(v))
	return nil
}

// stopReplay ends a replay before its end.
func (c *console) stopReplay(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := c.call(r, http.MethodDelete, join([]string{"dead-letters", "replays", id}), nil, nil); err != nil {
		return err
	}
	http.Redirect(w, r, replayAt(id), http.StatusSeeOther)
	return nil
}

// running are the replays that go on.
func (c *console) running(r *http.Request) ([]api.Replay, error) {
	list, err := get[struct {
		Replays []api.Replay `json:"replays"`
	}](c, r, "dead-letters", "replays")
	return slices.DeleteFunc(list.Replays, func(r api.Replay) bool { return r.State != "running" }), err
}
