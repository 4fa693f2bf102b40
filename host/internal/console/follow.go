package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

const (
	// followTime is how long one stream of a page lasts. The browser comes back at
	// once, and is let in only if it is still logged in.
	followTime = 5 * time.Minute
	// maxBehind is how many messages a page that comes back is sent one by one; one
	// further behind asks for all of itself.
	maxBehind = 200
	// mostPagesBehind is of how many pages they are at most, which end by their bytes too.
	mostPagesBehind = maxBehind / 50
	// maxKnown bounds the messages whose changes a page is told.
	maxKnown = 400
)

// follower sends one page what happens in its conversation, as HTML, each message
// whole: where the page has it already, it takes its place.
type follower struct {
	c            *console
	r            *http.Request
	out          *sender
	channel      api.Channel
	conversation string
	after        string   // the newest message that the page has; "" = none
	known        []string // ids that the page has, as far as we know, oldest first
	begun        bool
}

// errReload ends a stream whose page must ask for all of itself.
var errReload = errors.New("page is too far behind")

// followTalk is the stream of one conversation. A browser that does not read is
// given up by the sender; meanwhile the API's stream falls behind and ends, which
// the hub does not feel.
func (c *console) followTalk(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), followTime)
	defer cancel()
	r = r.WithContext(ctx)
	ch, err := get[api.Channel](c, r, "channels", r.PathValue("channel"))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := &follower{c: c, r: r, out: newSender(w), channel: ch, conversation: q.Get("c"), after: or(r.Header.Get("Last-Event-ID"), q.Get("after"))}
	err = c.stream(r, "/events?"+url.Values{"channel": {ch.ID}, "conversation": {f.conversation}, "streaming": {"true"}}.Encode(), nil, f.each)
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	if errors.Is(err, errReload) {
		return nil
	}
	if err != nil {
		c.Log.Debug("page no longer followed", "error", err)
	}
	return nil // the browser has gone, or comes back
}

// change is what the events of messages have in common.
type change struct {
	ChannelID string       `json:"channel_id"`
	ID        string       `json:"id"`
	Text      string       `json:"text"`
	Message   *api.Message `json:"message"`
}

func (f *follower) each(e event) error {
	if !f.begun { // the API has subscribed: nothing is missed from here on
		f.begun = true
		if err := f.catchUp(); err != nil {
			return err
		}
	}
	switch e.Name {
	case "":
		return f.out.send(event{Name: "alive", Data: "-"})
	case "gap":
		return f.reload()
	case "message.created", "message.state", "message.streaming":
	default:
		return nil
	}
	var h change
	if err := json.Unmarshal([]byte(e.Data), &h); err != nil {
		return err
	}
	if h.ChannelID != f.channel.ID {
		return nil
	}
	switch {
	case h.Message != nil && h.Message.ConversationID != f.conversation:
		return nil
	case h.Message != nil:
		return f.show(*h.Message)
	case !slices.Contains(f.known, h.ID):
		return nil
	case e.Name == "message.streaming":
		return f.send("text", h.ID, "", said(clip(h.Text, maxShownText)))
	}
	return f.again(h.ID)
}

// catchUp sends what the page does not have yet, and the newest ones that it has:
// what became of them meanwhile is not among the events.
func (f *follower) catchUp() error {
	share, err := f.c.hold(f.r, pageMemory)
	if err != nil {
		return err
	}
	defer share.Release()
	var missed []api.Message // newest first
	cursor := ""
	for read := 0; ; read++ {
		if read == mostPagesBehind {
			return f.reload()
		}
		page, err := f.c.messagesOf(f.r, f.channel, f.conversation, cursor)
		if err != nil {
			return err
		}
		missed = append(missed, page.Messages...)
		n := len(missed)
		if page.NextCursor == "" || n > 0 && (f.after == "" || missed[n-1].ID <= f.after) {
			break
		}
		if n >= maxBehind {
			return f.reload()
		}
		cursor = page.NextCursor
	}
	for _, m := range slices.Backward(missed) {
		if err := f.show(m); err != nil {
			return err
		}
	}
	return f.out.send(event{Name: "alive", Data: "-"})
}

func (f *follower) reload() error {
	if err := f.out.send(event{Name: "reload", Data: "-"}); err != nil {
		return err
	}
	return errReload
}

// again sends a message whose state has changed.
func (f *follower) again(id string) error {
	life, err := get[api.Life](f.c, f.r, "messages", id)
	var p *Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	return f.show(life.Message)
}

// show sends a message. Its id is where a page that comes back goes on, unless the
// page has newer ones.
func (f *follower) show(m api.Message) error {
	if !slices.Contains(f.known, m.ID) {
		if f.known = append(f.known, m.ID); len(f.known) > maxKnown {
			f.known = slices.Delete(f.known, 0, len(f.known)-maxKnown)
		}
	}
	id := ""
	if m.ID > f.after {
		f.after, id = m.ID, m.ID
	}
	why, err := f.c.refusalOf(f.r, m)
	if err != nil {
		return err
	}
	return f.send("message", m.ID, id, bubbleOf(bubble{Message: m, Channel: f.channel.Name, Refusal: why}))
}

// send sends HTML for a message: all of it, or the text alone.
func (f *follower) send(name, message, id string, content templ.Component) error {
	var b bytes.Buffer
	b.WriteString(message + "\n") // the first line says whose it is
	if err := overt(content).Render(f.r.Context(), &b); err != nil {
		return err
	}
	return f.out.send(event{ID: id, Name: name, Data: b.String()})
}
