package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// dead are the pages of messages that failed or expired.
func (c *console) dead(mux *routes) {
	mux.HandleFunc("GET "+Path+"dead", c.ofMessages(pageMemory, c.showDead))
	mux.HandleFunc("POST "+Path+"dead/{id}/replay", c.page(c.replay))
	mux.HandleFunc("GET "+Path+"dead/{id}/{act}", c.page(c.toLetter))
	mux.HandleFunc("GET "+Path+"dead/replay", c.page(c.askReplayAll))
	mux.HandleFunc("POST "+Path+"dead/replay", c.page(c.replayAll))
	mux.HandleFunc("GET "+Path+"dead/replays/{id}", c.page(c.showReplay))
	mux.HandleFunc("POST "+Path+"dead/replays/{id}/stop", c.page(c.stopReplay))
}

// deadList is the page of dead letters.
type deadList struct {
	Here     *url.URL
	Channel  string
	Reason   string
	Channels input // the field that chooses the channel
	Letters  []api.DeadLetter
	Refusals []string       // of each letter, the adapter's words
	Counts   api.DeadCounts // of the channel, or of all
	Running  []api.Replay   // that go on
	Next     string
}

func (d deadList) filtered() bool { return d.Channel != "" || d.Reason != "" }

// all is where what is shown, and more like it, is replayed; "" = a channel must
// be chosen first.
func (d deadList) all() string {
	if d.Channel == "" || d.Reason != "" {
		return ""
	}
	return Path + "dead/replay?channel=" + url.QueryEscape(d.Channel)
}

// mostCounts is how many counts a page shows.
const mostCounts = 12

// mostFrequent are the largest counts.
func mostFrequent(n api.DeadCounts) []api.DeadCount {
	list := slices.Clone(n.Counts)
	slices.SortStableFunc(list, func(a, b api.DeadCount) int { return cmp.Compare(b.Count, a.Count) })
	return list[:min(len(list), mostCounts)]
}

// deadAt is where the dead letters of a channel are, for one reason or "" for all.
func deadAt(channel, reason string) string {
	q := url.Values{"channel": {channel}}
	if reason != "" {
		q.Set("reason", reason)
	}
	return Path + "dead?" + q.Encode()
}

func (d deadList) reasonOptions() []option {
	out := []option{{"", "Every reason"}}
	for _, name := range sortedKeys(reasons) {
		out = append(out, option{name, reasons[name].Word})
	}
	return out
}

func (c *console) showDead(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	page := deadList{Here: r.URL, Channel: q.Get("channel"), Reason: q.Get("reason")}
	var err error
	if page.Channels, err = c.channelField(r, page.Channel); err != nil {
		return err
	}
	if page.Counts, err = get[api.DeadCounts](c, r, "dead-letters", "counts?channel="+url.QueryEscape(page.Channel)); err != nil {
		return err
	}
	if page.Running, err = c.running(r); err != nil {
		return err
	}
	list, err := get[struct {
		DeadLetters []api.DeadLetter `json:"dead_letters"`
		NextCursor  string           `json:"next_cursor"`
	}](c, r, "dead-letters"+listQuery(r, "30", "channel", page.Channel, "reason", page.Reason, "max_bytes", pageBytes))
	if err != nil {
		return err
	}
	page.Letters, page.Next = list.DeadLetters, list.NextCursor
	for _, l := range page.Letters {
		why, err := c.refusalOf(r, l.Message)
		if err != nil {
			return err
		}
		page.Refusals = append(page.Refusals, why)
	}
	c.show(w, r, http.StatusOK, view{
		Title: "Dead letters", Nav: navDead, Lead: "Messages that failed or expired, the last that did first. Nothing is lost: each can be replayed.",
	}, deadPage(page))
	return nil
}

// toLetter leads from where a letter is replayed, which is no page, to its story.
func (c *console) toLetter(w http.ResponseWriter, r *http.Request) error {
	if r.PathValue("act") != "replay" {
		return &Problem{Status: http.StatusNotFound, Title: "No such page"}
	}
	http.Redirect(w, r, storyPath(r.PathValue("id")), http.StatusSeeOther)
	return nil
}

// replay sends one message again. If that is refused, the page it was asked for on says why.
func (c *console) replay(w http.ResponseWriter, r *http.Request) error {
	asked, err := form(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	var out sent
	err = c.call(r, http.MethodPost, "/dead-letters/"+url.PathEscape(id)+"/replay", nil, &out)
	if p := (*Problem)(nil); asProblem(err, &p) && p.Status >= 409 && p.Status != http.StatusInternalServerError {
		from := storyPath(id)
		if asked.Has("from") {
			from = local(asked.Get("from"))
		}
		return backRefused(w, r, from, "Message "+id+" was not replayed. "+refusedWords(p))
	}
	if err != nil {
		return err
	}
	said := wordsOf(out.State, "")
	return back(w, r, storyPath(id), "Replayed: it is "+lowerFirst(said.Word)+". "+said.Mean)
}
