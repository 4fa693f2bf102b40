package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// talks are the pages of conversations: what was said, and how to answer.
func (c *console) talks(mux *routes) {
	mux.HandleFunc("GET "+Path+"conversations", c.ofMessages(pageMemory, c.showTalks))
	mux.HandleFunc("GET "+Path+"conversations/{channel}", c.ofMessages(pageMemory, c.showTalk))
	mux.HandleFunc("POST "+Path+"conversations/{channel}", c.ofMessages(pageMemory, c.reply))
	mux.HandleFunc("GET "+Path+"conversations/{channel}/live", c.page(c.followTalk))
	mux.HandleFunc("GET "+Path+"messages/{id}", c.ofMessages(oneMemory, c.showStory))
}

// talkList is the page of all conversations, or of what was found in them.
type talkList struct {
	Here     *url.URL
	Query    string
	Channel  string // "" = all
	Channels input  // the field that chooses it
	Fault    string // what is wrong with the query

	Conversations []api.Conversation
	Found         *api.SearchResults // nil = nothing was looked for
	Next          string
}

// listQuery is the query of a list of the API: limit, cursor, and what is not empty.
func listQuery(r *http.Request, limit string, rest ...string) string {
	q := url.Values{"limit": {limit}}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		q.Set("cursor", cursor)
	}
	for i := 0; i+1 < len(rest); i += 2 {
		if rest[i+1] != "" {
			q.Set(rest[i], rest[i+1])
		}
	}
	return "?" + q.Encode()
}

func (c *console) showTalks(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	page := talkList{Here: r.URL, Query: strings.TrimSpace(q.Get("q")), Channel: q.Get("channel")}
	var err error
	if page.Channels, err = c.channelField(r, page.Channel); err != nil {
		return err
	}
	status := http.StatusOK
	if page.Query != "" {
		found, err := get[api.SearchResults](c, r, "search"+listQuery(r, "30", "q", page.Query, "channel", page.Channel, "max_bytes", pageBytes))
		var p *Problem
		switch {
		case errors.As(err, &p) && (p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusServiceUnavailable):
			status, page.Fault = p.Status, queryFault(p)
		case err != nil:
			return err
		default:
			page.Found, page.Next = &found, found.NextCursor
		}
	} else {
		list, err := get[struct {
			Conversations []api.Conversation `json:"conversations"`
			NextCursor    string             `json:"next_cursor"`
		}](c, r, "conversations"+listQuery(r, "50", "channel", page.Channel))
		if err != nil {
			return err
		}
		page.Conversations, page.Next = list.Conversations, list.NextCursor
	}
	c.show(w, r, status, view{Title: "Conversations", Nav: navConversations, Lead: "What users and agents say to each other, over all channels, the latest first."}, talksPage(page))
	return nil
}

// queryFault is what is wrong with a query, without the place that only the API
// knows by this name.
func queryFault(p *Problem) string {
	return strings.TrimPrefix(or(p.At("query.q"), p.Detail), "query.q: ")
}

// mostOptions is how many channels a menu offers: of more the name is typed.
const mostOptions = 100

// channelField chooses a channel, or all of them. The one that is chosen is among the
// options even if it is not listed.
func (c *console) channelField(r *http.Request, chosen string) (input, error) {
	in := input{Name: "channel", Label: "Channel", Value: chosen, Optional: true}
	list, err := get[channelList](c, r, "channels?limit="+strconv.Itoa(mostOptions))
	if err != nil {
		return in, err
	}
	if list.Next != "" {
		in.Code, in.Max, in.Hint = true, 64, "Its name; nothing means all. The page Channels finds names by any part of them."
		return in, nil
	}
	in.Options = []option{{"", "All channels"}}
	known := chosen == ""
	for _, ch := range list.Channels {
		in.Options = append(in.Options, option{ch.Name, ch.Name})
		known = known || ch.Name == chosen
	}
	if !known {
		in.Options = append(in.Options, option{chosen, clip(chosen, 64)})
	}
	return in, nil
}
