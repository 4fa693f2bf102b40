package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// The lists of the API, as far as pages need them. most is as many entries as
// one answer has at most.
const most = "?limit=500"

type channelList struct {
	Channels []api.Channel `json:"channels"`
	Next     string        `json:"next_cursor"`
}

type adapterList struct {
	Adapters []api.Adapter `json:"adapters"`
	Next     string        `json:"next_cursor"`
}

type agentList struct {
	Agents []api.Agent `json:"agents"`
	Next   string      `json:"next_cursor"`
}

type pluginList struct {
	Plugins []api.Plugin `json:"plugins"`
	Next    string       `json:"next_cursor"`
}

type tokenList struct {
	Tokens []api.Token `json:"tokens"`
	Keys   []api.Token `json:"keys"`
}

type failedList struct {
	DeadLetters []api.DeadLetter `json:"dead_letters"`
	Next        string           `json:"next_cursor"`
}

type capabilityList struct {
	Capabilities []capability `json:"capabilities"`
}

type capability struct {
	Name       string   `json:"name"`
	Protocol   string   `json:"protocol"`
	DegradesTo []string `json:"degrades_to"`
	About      string   `json:"about"`
}

type conversationList struct {
	Conversations []api.Conversation `json:"conversations"`
}

// allAgents asks for the agents, page by page.
func (c *console) allAgents(r *http.Request) ([]api.Agent, error) {
	var all []api.Agent
	for cursor := ""; ; {
		list, err := get[agentList](c, r, "agents"+most+"&cursor="+url.QueryEscape(cursor))
		if err != nil {
			return nil, err
		}
		all = append(all, list.Agents...)
		if cursor = list.Next; cursor == "" {
			return all, nil
		}
	}
}

// page is the query of a list that a page of the console shows one page of.
func page(r *http.Request) string {
	q := url.Values{"limit": {"50"}}
	if c := r.URL.Query().Get("cursor"); c != "" {
		q.Set("cursor", c)
	}
	return "?" + q.Encode()
}

// maxForm bounds what a form may send: a list of 1,000 users fits.
const maxForm = 1 << 20

// form reads what a form sent.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Title: "The form did not arrive", Detail: "It could not be read, or was larger than 1 MiB. Go back and try again."}
	}
	return r.PostForm, nil
}

// lines are the lines of a text field that hold something.
func lines(text string) []string {
	out := []string{}
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// deadOf counts dead letters by channel.
func deadOf(list api.DeadCounts) map[string]int64 {
	n := map[string]int64{}
	for _, d := range list.Counts {
		n[d.ChannelID] += d.Count
	}
	return n
}

// condition is a state with the fact that it rests on.
type condition struct {
	Tone tone
	Word string
	Why  string
}

// conditionOf says how a channel is. Green needs a fact: somebody is attached,
// and was heard.
func conditionOf(c api.Channel, now time.Time) condition {
	h := c.Health
	switch c.Trouble(now) {
	case api.Quarantined:
		return condition{fault, "quarantined", "Its process failed too often. It stays off until somebody restarts it."}
	case api.NoToken:
		return condition{fault, "no token", "None of its tokens lets an adapter in."}
	case api.TokenEnds:
		return condition{warning, "token ends", "Its last token ends in " + span(h.OpenUntil.Sub(now)) + ": then no adapter gets in."}
	case api.Restarting:
		return condition{warning, "restarting", "Its process ended and is started again after a pause."}
	case api.NoAdapter:
		if c.Queue {
			return condition{warning, "no adapter", "Messages for it wait in the queue."}
		}
		return condition{warning, "no adapter", "Messages for it are refused, since it has no queue."}
	case api.PlatformRefuses, api.PlatformLost:
		return platformCondition(*h.Platform)
	case api.Refusing:
		return condition{fault, "refusing", refusalWords(h)}
	case api.AgentAway:
		return condition{warning, "agent away", "The adapter is attached, but " + c.Agent + " can't be asked. " + waitingTurns(h.WaitingTurns)}
	case api.RefusesSome:
		return condition{warning, "refuses some", refusalWords(h)}
	}
	switch {
	case !c.Enabled:
		return condition{idle, "disabled", "Nobody can attach, until it is enabled."}
	case c.Kind == "agui" || c.Kind == "bridle":
		return condition{about, "built in", "Clients come and go by themselves; no adapter is needed."}
	case !h.Attached && h.Process != nil && *h.Process == "starting":
		return condition{about, "starting", "Its process has been started and has not attached yet."}
	case !h.Attached:
		return condition{waiting, "waiting", "No adapter has used it yet."}
	case h.Platform != nil && h.Platform.State != "connected":
		return platformCondition(*h.Platform)
	case c.Adapter != nil:
		return condition{good, "attached", "Heard " + span(now.Sub(c.Adapter.LastFrameAt.Time)) + " ago."}
	}
	return condition{good, "attached", ""}
}

func refusalWords(h api.Health) string {
	if h.RecentWords == 1 {
		return "It refused the last message."
	}
	return fmt.Sprintf("It refused %d of the last %d messages.", h.RecentRefusals, h.RecentWords)
}

// waitingTurns says how many messages wait for an agent that is away.
func waitingTurns(n int) string {
	if n == 0 {
		return "No message waits for it yet."
	}
	return count(n, "message waits", "messages wait") + " for it."
}

// span is a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// where is the path of a page of the console, of escaped segments.
func where(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return Path + strings.Join(segments, "/")
}
