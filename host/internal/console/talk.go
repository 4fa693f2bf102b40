package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// talkPage is the page of one conversation.
type talkPage struct {
	Channel      api.Channel
	Conversation string
	Messages     []bubble // oldest first
	Older, Newer string   // pages; "" = none
	Cursor       string   // of an older page
	Latest       bool     // it ends with the newest message, and goes on by itself
	Draft        string   // what was typed, and not sent
	Once         string   // tells a reply that comes twice
	Fault        string
}

// pageOfTalk is how many messages a page of a conversation has.
const pageOfTalk = "50"

// pageBytes is how many bytes of messages a page has, of which it shows the beginnings.
const pageBytes = "1048576"

type messageList struct {
	Messages   []api.Message `json:"messages"`
	NextCursor string        `json:"next_cursor"`
}

func (p talkPage) here() string { return talkPath(p.Channel.Name, p.Conversation) }

// this is the page itself, which may be an older one.
func (p talkPage) this() string {
	if p.Latest {
		return p.here()
	}
	return p.here() + "&cursor=" + url.QueryEscape(p.Cursor)
}

// follow is where what happens from now on comes from.
func (p talkPage) follow() string {
	path := Path + "conversations/" + url.PathEscape(p.Channel.Name) + "/live?c=" + url.QueryEscape(p.Conversation)
	if n := len(p.Messages); n > 0 {
		path += "&after=" + url.QueryEscape(p.Messages[n-1].ID)
	}
	return path
}

func (c *console) showTalk(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.Query().Has("c") {
		http.Redirect(w, r, Path+"conversations?channel="+url.QueryEscape(r.PathValue("channel")), http.StatusSeeOther)
		return nil
	}
	return c.talk(w, r, http.StatusOK, "", "")
}

// talk writes the page of a conversation, with what was typed if it could not be sent.
func (c *console) talk(w http.ResponseWriter, r *http.Request, status int, draft, fault string) error {
	q := r.URL.Query()
	page := talkPage{Conversation: q.Get("c"), Cursor: q.Get("cursor"), Latest: q.Get("cursor") == "", Draft: draft, Fault: fault, Once: rand.Text()}
	var err error
	if page.Channel, err = get[api.Channel](c, r, "channels", r.PathValue("channel")); err != nil {
		return err
	}
	list, err := c.messagesOf(r, page.Channel, page.Conversation, q.Get("cursor"))
	if err != nil {
		return err
	}
	if page.Messages, err = c.bubbles(r, page.Channel, list.Messages); err != nil {
		return err
	}
	if list.NextCursor != "" {
		page.Older = page.here() + "&cursor=" + url.QueryEscape(list.NextCursor)
	}
	if !page.Latest {
		page.Newer = page.here()
	}
	title := or(clip(page.Conversation, 200), "Conversation without a name")
	c.show(w, r, status, view{
		Title: title, Nav: navConversations, Above: [2]string{"Conversations", Path + "conversations"}, State: talkState(page), Actions: talkActions(page),
	}, talkContent(page))
	return nil
}

// messagesOf asks for a page of a conversation, newest first.
func (c *console) messagesOf(r *http.Request, ch api.Channel, conversation, cursor string) (messageList, error) {
	q := url.Values{"conversation_id": {conversation}, "limit": {pageOfTalk}, "max_bytes": {pageBytes}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return get[messageList](c, r, "channels", ch.ID, "messages?"+q.Encode())
}

// bubbles are messages in the order that they are read in.
func (c *console) bubbles(r *http.Request, ch api.Channel, newestFirst []api.Message) ([]bubble, error) {
	out := make([]bubble, 0, len(newestFirst))
	for _, m := range slices.Backward(newestFirst) {
		why, err := c.refusalOf(r, m)
		if err != nil {
			return nil, err
		}
		out = append(out, bubble{Message: m, Channel: ch.Name, Refusal: why})
	}
	return out, nil
}

// refusalOf asks for the adapter's words, if it refused the message.
func (c *console) refusalOf(r *http.Request, m api.Message) (string, error) {
	if !refusedBy(m) {
		return "", nil
	}
	life, err := get[api.Life](c, r, "messages", m.ID)
	if p := (*Problem)(nil); asProblem(err, &p) && p.Status == http.StatusNotFound {
		return "", nil // deleted meanwhile
	}
	return refusedWith(life), err
}

// maxReply bounds what can be typed, in characters.
const maxReply = 20_000

// sent is what the API says of a message that it took.
type sent struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Degraded []struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason"`
	} `json:"degraded"`
}

// reply sends what an operator typed. The same form sent twice is one message.
func (c *console) reply(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, 8*maxReply)
	if err := r.ParseForm(); err != nil {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Title: "Too long", Detail: "The message is longer than what can be sent from here."}
	}
	text := strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n")
	conversation := r.URL.Query().Get("c")
	switch n := len([]rune(text)); {
	case strings.TrimSpace(text) == "":
		return c.talk(w, r, http.StatusUnprocessableEntity, text, "Found nothing to send: write something.")
	case n > maxReply:
		return c.talk(w, r, http.StatusUnprocessableEntity, text, "Found "+number(float64(n))+" characters, expected at most "+number(maxReply)+".")
	}
	header := http.Header{}
	if once := r.PostFormValue("once"); once != "" {
		header.Set("Idempotency-Key", clip(once, 64))
	}
	var out sent
	err := c.callWith(r, http.MethodPost, "/channels/"+url.PathEscape(r.PathValue("channel"))+"/messages", header,
		map[string]string{"conversation_id": conversation, "text": text}, &out)
	var p *Problem
	if errors.As(err, &p) && (p.Status == http.StatusConflict || p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusForbidden) {
		return c.talk(w, r, p.Status, text, notSent(p))
	}
	if err != nil {
		return err
	}
	said := wordsOf(out.State, "")
	done := "Message " + out.ID + " is " + lowerFirst(said.Word) + ". " + said.Mean
	if out.State == "sent" {
		ch, err := get[api.Channel](c, r, "channels", r.PathValue("channel"))
		if err != nil {
			return err
		}
		done += " " + sentTo(ch.Adapter)
	}
	for _, d := range out.Degraded {
		done += " " + degradedWords(d.From, d.To, d.Reason) + "."
	}
	return back(w, r, talkPath(r.PathValue("channel"), conversation)+"#m-"+out.ID, done)
}

// refusedWords says why something was refused and what to do next, in the words of the
// table where it has some.
func refusedWords(p *Problem) string {
	if s, ok := reasons[strings.TrimPrefix(p.Type, "urn:pontoon:")]; ok {
		return s.Mean + " " + s.Next
	}
	return p.Error()
}

// notSent says why a reply was refused, in the words of the table where it has some.
func notSent(p *Problem) string {
	if s, ok := reasons[strings.TrimPrefix(p.Type, "urn:pontoon:")]; ok {
		return "Not sent. " + s.Mean + " What you typed is kept here: send it again when that is mended."
	}
	return "Not sent: " + p.Error()
}
