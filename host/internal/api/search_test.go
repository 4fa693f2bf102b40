package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func TestSearchMessages(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	p, other := h.Peer(h.Make("c", "")), h.Peer(h.Make("d", ""))
	p.Ask("one", "the Crème <b>brûlée</b> is here", "echo: the Crème <b>brûlée</b> is here")
	other.Ask("two", "creme elsewhere", "echo: creme elsewhere")

	type found struct {
		Results []struct {
			Channel string
			Snippet []struct {
				Text  string
				Match bool
			}
			Message hosttest.Message
		}
		Next   string `json:"next_cursor"`
		Behind int
	}
	// search follows the cursor: a page may end before its limit, when its time is up.
	search := func(query string) (all found) {
		for after := ""; ; after = "&cursor=" + url.QueryEscape(all.Next) {
			var page found
			await.Until(t, "the search is answered", func() bool { // on a slow machine it may ask to come again
				a := h.Request(h.Key, "GET", "/search?"+query+after, "")
				if a.Status != http.StatusServiceUnavailable && (a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &page) != nil) {
					t.Fatalf("%s: %d %s", query, a.Status, a.Body)
				}
				return a.Status == http.StatusOK
			})
			page.Results = append(all.Results, page.Results...)
			if all = page; all.Next == "" || strings.Contains(query, "limit=") && len(all.Results) > 0 {
				return all
			}
		}
	}
	got := search("q=" + url.QueryEscape("creme from:alice"))
	if len(got.Results) != 2 || got.Results[0].Channel != "d" || got.Results[1].Message.Text != "the Crème <b>brûlée</b> is here" || got.Behind != 0 {
		t.Fatalf("found %+v", got)
	}
	if s := got.Results[1].Snippet; len(s) != 3 || s[0].Text != "the " || s[1].Text != "Crème" || !s[1].Match || s[2].Text != " <b>brûlée</b> is here" {
		t.Errorf("snippet %+v", s)
	}
	got = search("q=creme&channel=c&limit=1")
	if len(got.Results) != 1 || got.Results[0].Message.Direction != "out" || got.Next == "" {
		t.Errorf("a page of one channel: %+v", got)
	}
	got = search("q=" + url.QueryEscape("creme channel:c -from:alice"))
	if len(got.Results) != 1 || got.Results[0].Message.Author != "echo" {
		t.Errorf("not from alice: %+v", got)
	}
	for q, want := range map[string]string{
		`") OR 1 --`: "", `NEAR(a b) text:* ^x`: "", "'; DROP TABLE message; --": "", "!!!": "found no word", "state:lost": "state: found",
		"channel:nowhere x": "channel: there is none", "before:soon": "before: found", strings.Repeat("x", 501): "length",
	} {
		status, body := h.Ask("GET", "/search?q="+url.QueryEscape(q), "")
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
	h.Must(&list, "GET", "/conversations", "")
	if len(list.Conversations) != 2 || list.Conversations[0].ID != "two" || list.Conversations[1].Last.Snippet != "echo: the Crème <b>brûlée</b> is here" || list.Conversations[1].Last.Author != "echo" {
		t.Errorf("conversations %+v", list)
	}
	h.Must(&list, "GET", "/conversations?channel=c", "")
	if len(list.Conversations) != 1 || list.Conversations[0].Channel != "c" {
		t.Errorf("conversations of c %+v", list)
	}
}

// Who comes back learns what became of what was there already: in its own
// conversation alone, if that is what was asked for.
func TestEventsOfChanges(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	token := h.Make("c", `,"queue":true`)
	var one, other struct{ ID string }
	h.Must(&one, "POST", "/channels/c/messages", `{"conversation_id":"room","text":"waits"}`)
	h.Must(&other, "POST", "/channels/c/messages", `{"conversation_id":"side","text":"waits too"}`)
	h.Peer(token)
	events(h, "/events", other.ID, func(_, data string) bool { return !strings.Contains(data, `"state":"sent"`) })
	for path, want := range map[string][]string{"/events": {one.ID, other.ID}, "/events?channel=c&conversation=room": {one.ID}} {
		var changed []string
		events(h, path, other.ID, func(event, data string) bool {
			var d struct{ ID, State string }
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				t.Error(err)
			}
			if event != "message.state" || d.State != "sent" {
				t.Errorf("%s: %s %s", path, event, data)
			}
			changed = append(changed, d.ID)
			return len(changed) < len(want)
		})
		if !slices.Equal(changed, want) {
			t.Errorf("%s: %q changed, expected %q", path, changed, want)
		}
	}
}

// Who asks for one conversation is told of it alone, also when it comes back.
func TestEventsOfOne(t *testing.T) {
	t.Parallel()
	h := hosttest.Start(t, hosttest.Whole)
	p, other := h.Peer(h.Make("c", "")), h.Peer(h.Make("d", ""))
	p.Ask("room", "first", "echo: first")
	last := h.Messages("c")[0].ID
	other.Ask("room", "elsewhere", "echo: elsewhere")
	p.Ask("side", "beside", "echo: beside")
	p.Ask("room", "second", "echo: second")
	p.Ask("room", "until", "echo: until")
	for path, want := range map[string][]string{
		"/events?channel=c&conversation=room": {"second", "echo: second", "until"},
		"/events?channel=c":                   {"beside", "echo: beside", "second", "echo: second", "until"},
		"/events":                             {"elsewhere", "echo: elsewhere", "beside", "echo: beside", "second", "echo: second", "until"},
	} {
		var texts []string
		events(h, path, last, func(event, data string) bool {
			var d struct{ Message hosttest.Message }
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				t.Error(err)
			}
			if event == "message.created" {
				texts = append(texts, d.Message.Text)
			}
			return d.Message.Text != "until"
		})
		if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "echo: until" }); !slices.Equal(texts, want) {
			t.Errorf("%s: %q, expected %q", path, texts, want)
		}
	}
	for path, want := range map[string]int{"/events?conversation=room": http.StatusUnprocessableEntity, "/events?channel=nowhere": http.StatusNotFound} {
		if status, body := h.Ask("GET", path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
