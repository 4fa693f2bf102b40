package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/delivery"
)

func (c *console) channels(mux *routes) {
	at := Path + "channels"
	mux.HandleFunc("GET "+at, c.page(c.listChannels))
	mux.HandleFunc("GET "+at+"/new", c.page(c.newChannel))
	mux.HandleFunc("POST "+at+"/new", c.page(c.createChannel))
	mux.HandleFunc("GET "+at+"/{id}", c.page(c.showChannel))
	mux.HandleFunc("GET "+at+"/{id}/attached", c.page(c.showAttached))
	mux.HandleFunc("GET "+at+"/{id}/edit", c.page(c.editChannel))
	mux.HandleFunc("POST "+at+"/{id}/edit", c.page(c.updateChannel))
	mux.HandleFunc("POST "+at+"/{id}/enable", c.page(c.switchChannel(true)))
	mux.HandleFunc("GET "+at+"/{id}/disable", c.page(c.askDisable))
	mux.HandleFunc("GET "+at+"/{id}/tokens/{token}/revoke", c.page(c.askRevokeToken))
	mux.HandleFunc("POST "+at+"/{id}/disable", c.page(c.switchChannel(false)))
	mux.HandleFunc("POST "+at+"/{id}/test", c.page(c.testChannel))
	mux.HandleFunc("POST "+at+"/{id}/rotate", c.page(c.rotateToken))
	mux.HandleFunc("POST "+at+"/{id}/tokens/{token}/revoke", c.page(c.revokeToken))
	mux.HandleFunc("POST "+at+"/{id}/delete", c.page(c.deleteChannel))
}

// channelRow is a channel with what a list says of it.
type channelRow struct {
	api.Channel
	Is   condition
	Dead int64
	More bool // there are more dead letters than were counted
}

func (c *console) listChannels(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := channelFilter{strings.TrimSpace(q.Get("q")), q.Get("agent"), q.Get("trouble") != ""}
	trouble := ""
	if f.Trouble {
		trouble = "true"
	}
	list, err := get[channelList](c, r, "channels"+listQuery(r, "50", "q", f.Query, "agent", f.Agent, "trouble", trouble))
	if err != nil {
		return err
	}
	dead, err := get[api.DeadCounts](c, r, "dead-letters", "counts")
	if err != nil {
		return err
	}
	c.show(w, r, http.StatusOK, view{
		Title: "Channels", Nav: navChannels, Lead: "A channel is a slot for one adapter: who may attach, who answers, and what happens to messages meanwhile.",
		Actions: button(Path+"channels/new", "plus", "New channel", ""),
	}, channelsPage(f, c.channelRows(list.Channels, dead), r.URL, list.Next))
	return nil
}

// channelRows joins channels with what failed.
func (c *console) channelRows(list []api.Channel, dead api.DeadCounts) []channelRow {
	failed := deadOf(dead)
	rows := make([]channelRow, len(list))
	for i, ch := range list {
		rows[i] = channelRow{ch, conditionOf(ch, c.Now()), failed[ch.ID], !dead.Complete}
	}
	return rows
}

// channelFilter is which channels the page lists.
type channelFilter struct {
	Query, Agent string
	Trouble      bool // only those that want somebody
}

func (f channelFilter) any() bool { return f.Query != "" || f.Agent != "" || f.Trouble }

// channelView is the page of one channel.
type channelView struct {
	channelRow
	Tokens  []api.Token
	Failed  *api.DeadLetter // the newest; nil = none
	Letters api.DeadCounts
	Stats   api.Statistics // of the last hour
	Latest  string         // the conversation that a test goes to; "" = there is none

	Test    *tested
	Typed   map[string]string // what was typed into the form that was refused
	Problem *Problem          // what is wrong with it
	Form    string            // which form that was
	Host    place
	Now     time.Time
}

// tested is what became of a test message.
type tested struct {
	ID           string `json:"id"`
	State        string `json:"state"`
	Conversation string `json:"conversation_id"`
	Confirmed    bool   `json:"confirmed"`
	Detail       string `json:"detail"`
}

// at is what is wrong with a field of one of the page's forms.
func (v channelView) at(form, field string) string {
	if v.Form != form {
		return ""
	}
	return v.Problem.At(field)
}

// wrong is what is wrong with one of the forms, if no field is to blame.
func (v channelView) wrong(form string) string {
	if v.Form != form || v.Problem == nil || len(v.Problem.Errors) > 0 {
		return ""
	}
	return v.Problem.Detail
}

// typed is what was typed into a form that was refused, else what is there at first.
func (v channelView) typed(form, field, first string) string {
	if v.Form != form {
		return first
	}
	return v.Typed[field]
}

// sent is the form that was refused, as it was sent.
func (v channelView) sent(form string) url.Values {
	out := url.Values{}
	for name, text := range v.Typed {
		if v.Form == form && text != "" {
			out.Set(name, text)
		}
	}
	return out
}

func (c *console) loadChannel(r *http.Request) (channelView, error) {
	id := r.PathValue("id")
	ch, err := get[api.Channel](c, r, "channels", id)
	if err != nil {
		return channelView{}, err
	}
	letters, err := get[api.DeadCounts](c, r, "dead-letters", "counts?channel="+ch.ID)
	if err != nil {
		return channelView{}, err
	}
	v := channelView{channelRow: c.channelRows([]api.Channel{ch}, letters)[0], Letters: letters, Host: c.place(), Now: c.Now()}
	if v.Stats, err = c.statistics(r, ch.Name, windowHour); err != nil {
		return v, err
	}
	if hasTokens(ch) {
		list, err := get[tokenList](c, r, "channels", id, "tokens"+most)
		if err != nil {
			return v, err
		}
		v.Tokens = list.Tokens
	}
	dead, err := get[failedList](c, r, "dead-letters?limit=1&channel="+ch.ID)
	if err != nil {
		return v, err
	}
	if len(dead.DeadLetters) > 0 {
		v.Failed = &dead.DeadLetters[0]
	}
	latest, err := get[conversationList](c, r, "channels", id, "conversations?limit=1")
	if err != nil {
		return v, err
	}
	if len(latest.Conversations) > 0 {
		v.Latest = latest.Conversations[0].ConversationID
	}
	return v, nil
}

// limitsOf says how many messages may wait in a channel, how long, and how often one is tried.
func limitsOf(ch api.Channel) string {
	l := ch.QueueLimits
	return fmt.Sprintf("At most %d messages wait, each for %s. One that is refused for now is tried %d times.",
		cmp.Or(l.Length, delivery.DefaultLength), span(ttlOf(ch)), cmp.Or(l.Attempts, delivery.DefaultAttempts))
}

// hasAdapters reports whether adapters attach to the channel: to a front end none do.
func hasAdapters(ch api.Channel) bool { return ch.Kind == "bridge" || ch.Kind == "plugin" }

// hasTokens reports whether adapters of the channel bring a token.
func hasTokens(ch api.Channel) bool { return ch.Kind == "bridge" }

func (c *console) showChannel(w http.ResponseWriter, r *http.Request) error {
	v, err := c.loadChannel(r)
	if err != nil {
		return err
	}
	c.channelPage(w, r, http.StatusOK, v)
	return nil
}

func (c *console) channelPage(w http.ResponseWriter, r *http.Request, status int, v channelView) {
	c.show(w, r, status, view{
		Title: v.Name, Nav: navChannels, Above: [2]string{"Channels", Path + "channels"},
		Actions: channelActions(v), Lead: kindAbout(v.Kind),
	}, channelPage(v))
}

func kindAbout(kind string) string {
	switch kind {
	case "bridge":
		return "A bridge: an adapter in any language attaches with a token."
	case "plugin":
		return "A plugin: the host runs its adapter, as plugins.yaml says."
	case "agui":
		return "The front end for clients that speak AG-UI."
	case "bridle":
		return "The front end for browsers that come as Bridle's do."
	}
	return ""
}

// refused shows the channel's page again, with what is wrong beside the form.
func (c *console) refused(w http.ResponseWriter, r *http.Request, form string, typed map[string]string, why error) error {
	var p *Problem
	if !errors.As(why, &p) || p.Status == http.StatusUnauthorized || p.Status == http.StatusNotFound && form != "test" {
		return why
	}
	v, err := c.loadChannel(r)
	if err != nil {
		return err
	}
	v.Form, v.Typed, v.Problem = form, typed, p
	c.channelPage(w, r, p.Status, v)
	return nil
}

// showAttached is the piece of the page of a new channel that waits for its adapter.
func (c *console) showAttached(w http.ResponseWriter, r *http.Request) error {
	ch, err := get[api.Channel](c, r, "channels", r.PathValue("id"))
	if err != nil {
		return err
	}
	c.part(w, r, attachedPart(ch))
	return nil
}

func (c *console) switchChannel(on bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := r.PathValue("id")
		before, err := get[api.Channel](c, r, "channels", id)
		if err != nil {
			return err
		}
		if err := c.call(r, http.MethodPatch, join([]string{"channels", id}), map[string]bool{"enabled": on}, nil); err != nil {
			return c.refused(w, r, "switch", nil, err)
		}
		done := "Channel " + id + " is disabled. Nobody was attached."
		switch {
		case before.Adapter != nil && !on:
			done = "Channel " + id + " is disabled. Whoever was attached has been cut off."
		case on:
			done = "Channel " + id + " is enabled. Adapters may attach."
		}
		return back(w, r, where("channels", id), done)
	}
}

func (c *console) testChannel(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	in := map[string]string{"conversation_id": sent.Get("conversation_id")}
	if strings.TrimSpace(in["conversation_id"]) == "" { // people read it: nobody is written to who was not named
		return c.refused(w, r, "test", in, &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"body.conversation_id", "name the conversation that it goes to"}}})
	}
	var out tested
	if err := c.call(r, http.MethodPost, join([]string{"channels", r.PathValue("id"), "test"}), in, &out); err != nil {
		return c.refused(w, r, "test", in, err)
	}
	v, err := c.loadChannel(r)
	if err != nil {
		return err
	}
	v.Test = &out
	c.channelPage(w, r, http.StatusOK, v)
	return nil
}

func (c *console) rotateToken(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	typed := map[string]string{}
	for name := range sent {
		typed[name] = sent.Get(name)
	}
	if faults := missed(sent, "token"); faults != nil {
		return c.refused(w, r, "rotate", typed, &Problem{Status: http.StatusUnprocessableEntity, Errors: faults})
	}
	in := map[string]string{"overlap": sent.Get("overlap"), "expires": sent.Get("expires"), "token": sent.Get("token")}
	var made struct {
		api.Token
		Secret string `json:"token"`
	}
	id := r.PathValue("id")
	if err := c.call(r, http.MethodPost, join([]string{"channels", id, "tokens"}), in, &made); err != nil {
		return c.refused(w, r, "rotate", typed, err)
	}
	v, err := c.loadChannel(r)
	if err != nil {
		return err
	}
	w.Header().Set("HX-Push-Url", where("channels", id))
	c.show(w, r, http.StatusOK, view{
		Title: "New token of " + v.Name, Nav: navChannels, Above: [2]string{v.Name, where("channels", v.Name)},
		Lead: "Give it to the adapter now. The older tokens go on until their time is over, so that nothing is cut off.",
	}, rotatedPage(v, made.Secret))
	return nil
}

func (c *console) revokeToken(w http.ResponseWriter, r *http.Request) error {
	id, token := r.PathValue("id"), r.PathValue("token")
	before, err := get[api.Channel](c, r, "channels", id)
	if err != nil {
		return err
	}
	if err := c.call(r, http.MethodDelete, join([]string{"channels", id, "tokens", token}), nil, nil); err != nil {
		return c.refused(w, r, "tokens", nil, err)
	}
	done := "The token is revoked. Nobody was attached with it."
	if before.Adapter != nil && before.Adapter.TokenID == token {
		done = "The token is revoked. The adapter that was attached with it has been cut off."
	}
	return back(w, r, where("channels", id), done)
}

func (c *console) deleteChannel(w http.ResponseWriter, r *http.Request) error {
	sent, err := form(w, r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	ch, err := get[api.Channel](c, r, "channels", id)
	if err != nil {
		return err
	}
	if typed := sent.Get("confirm"); typed != ch.Name {
		return c.refused(w, r, "delete", map[string]string{"confirm": typed}, notConfirmed(ch.Name))
	}
	if err := c.call(r, http.MethodDelete, join([]string{"channels", ch.ID}), nil, nil); err != nil {
		return c.refused(w, r, "delete", map[string]string{"confirm": ch.Name}, err)
	}
	return back(w, r, Path+"channels", "Channel "+ch.Name+" is deleted, with its tokens and messages.")
}

// tokenName is what a token or key is called everywhere: its id, and the letters that it
// ends with.
func tokenName(t api.Token) string { return t.ID + " …" + t.Hint }

// tokenTrouble is what is wrong with the channel's tokens; "" = nothing. ends is when the
// last one does.
func (v channelView) tokenTrouble() (what, why string, ends *api.Time) {
	until := v.Health.OpenUntil
	switch {
	case !v.Health.Open:
		return "No token is live", "No adapter can attach, and one that is attached can't come back. Rotate makes a new token.", nil
	case hasTokens(v.Channel) && until != nil && until.Sub(v.Now) < api.SoonEnds:
		return "The last token ends soon", "Then no adapter can attach, and the one that is attached with it is cut off. Rotate makes a new token.", until
	}
	return "", "", nil
}

// notConfirmed is what is wrong where the name that was typed is another.
func notConfirmed(name string) *Problem {
	return &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"confirm", "expected " + strconv.Quote(name) + ", letter by letter"}}}
}

// testHint says what the test can show.
func testHint(v channelView) string {
	if v.Latest == "" {
		return "There is none yet. Type one that the adapter knows, or write to it from the platform first."
	}
	return "People may read it there. The latest is " + clip(v.Latest, 80) + "."
}

// testBusy says what is waited for meanwhile.
func testBusy(v channelView) string {
	if v.Adapter != nil && has(v.Adapter.Effective, "ack") {
		return "Waiting for the platform's word, at most 5 seconds…"
	}
	return "Sending…"
}

func has(list []string, s string) bool { return slices.Contains(list, s) }
