package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// talk is the page of a conversation.
func talk(channel, conversation string) string {
	return "conversations/" + channel + "?c=" + url.QueryEscape(conversation)
}

// live waits until the page follows what happens.
func live(p *browser.Tab) {
	p.Is("follows", "document.querySelector('#following')?.dataset.state === 'on'")
}

// texts are what the page shows of the messages, in their order.
const texts = "[...document.querySelectorAll('#talk > .msg .said-all')].map(e => e.innerText.trim())"

// TestConsoleTalks: conversations of two adapters are listed, found and read, and
// what happens is seen without reload.
func TestConsoleTalks(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.console("conversations")
	p.Shows("No conversation yet")
	p.Accessible("talks-empty")

	red, blue := h.attach(h.channel("red", "")), h.attach(h.channel("blue", ""), "buttons")
	red.ask("room/1 & more", "the **first** raft", "echo: the **first** raft")
	blue.ask("hall", "another oar", "echo: another oar")
	p.Go(h.url + "/console/conversations")
	p.Shows("room/1 & more")
	p.Is("the latest is the first", "document.querySelector('.talk strong').innerText === 'hall'")
	p.Accessible("talks")
	p.Go(h.url + "/console/conversations?channel=red")
	p.Is("of one channel", "document.querySelectorAll('.talk').length === 1")

	p.Press("room/1 & more")
	live(p)
	p.Is("both are read, the oldest first", texts+".join('|') === 'the **first** raft|echo: the **first** raft'")
	red.ask("room/1 & more", "seen at once", "echo: seen at once")
	p.Is("what is said is seen", texts+".slice(-2).join('|') === 'seen at once|echo: seen at once'")
	blue.ask("hall", "elsewhere", "echo: elsewhere")
	red.ask("room/1 & more", "here", "echo: here")
	p.Is("of this conversation only", texts+".length === 6 && !document.body.innerText.includes('elsewhere')")
	p.Accessible("talk")
	p.Quiet()
}

// TestConsoleTalkAtItsEnd: a conversation shows its newest messages when it is opened by a
// click, by its address, and after a reply.
func TestConsoleTalkAtItsEnd(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.attach(h.channel("red", ""))
	for i := range 20 {
		a.ask("room", fmt.Sprint("line ", i), fmt.Sprint("echo: line ", i))
	}
	const atEnd = "(p => p.scrollHeight > 2 * innerHeight && p.scrollHeight - p.scrollTop - innerHeight < 120)(document.scrollingElement)"
	p := h.console("conversations")
	p.Press("room")
	live(p)
	p.Is("at its end after a click", atEnd)
	p.Do(chromedp.Focus("textarea[name=text]", chromedp.ByQuery), input.InsertText("the last word"))
	p.JS(nil, "document.querySelector('.reply').requestSubmit()")
	p.Is("the reply is there", texts+".at(-1) === 'the last word'")
	p.Shows("is sent")
	p.Is("at its end after a reply", atEnd)
	p.Go(h.url + "/console/" + talk("red", "room"))
	live(p)
	p.Is("at its end by its address", atEnd)
	p.Quiet()
}

// TestConsoleReply: what an operator types goes to the user, once.
func TestConsoleReply(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	a := h.attach(h.channel("red", ""))
	a.ask("room", "anybody there", "echo: anybody there")
	p := h.console(talk("red", "room"))
	live(p)
	p.Do(chromedp.Focus("textarea[name=text]", chromedp.ByQuery), input.InsertText("yes, <b>me</b>"))
	p.JS(nil, "document.querySelector('.reply').requestSubmit()")
	if f := a.next("send"); f["text"] != "yes, <b>me</b>" || f["conversation_id"] != "room" {
		t.Errorf("the adapter got %v", f)
	}
	p.Is("it is seen", texts+".at(-1) === 'yes, <b>me</b>'")
	p.Shows("is sent")
	p.Is("by whom", "document.querySelector('#talk .msg:last-child .author').innerText === 'Operator ada'")
	live(p)

	// The same form twice, as a double click or a reload sends it.
	var once string
	p.JS(&once, "document.querySelector('[name=once]').value")
	p.JS(nil, `Promise.all([1, 2, 3].map(() => fetch(location.href, {method: 'POST', body: new URLSearchParams({once: %s, text: 'only once'})})))`, browser.Quote(once))
	if f := a.next("send"); f["text"] != "only once" {
		t.Errorf("the adapter got %v", f)
	}
	p.Is("it is there once", texts+".filter(t => t === 'only once').length === 1")

	p.Do(chromedp.Focus("textarea[name=text]", chromedp.ByQuery), input.InsertText("   "))
	p.JS(nil, "document.querySelector('.reply').requestSubmit()")
	p.Shows("write something")

	// Nobody is there any more, and there is no queue: the words are kept.
	_ = a.conn.Close()
	eventually(t, "the adapter is gone", func() bool {
		_, text := h.request("GET", "/adapters", "")
		return strings.Contains(text, `"adapters":[]`)
	})
	p.Go(h.url + "/console/" + talk("red", "room"))
	p.Shows("No adapter")
	p.Do(chromedp.Focus("textarea[name=text]", chromedp.ByQuery), input.InsertText("are you gone?"))
	p.JS(nil, "document.querySelector('.reply').requestSubmit()")
	p.Shows("Not sent. No adapter was attached")
	p.Is("what was typed is kept", "document.querySelector('textarea').value.endsWith('are you gone?')")
	p.Accessible("reply-refused")
	p.Quiet()
	if got := h.history("red"); len(got) != 4 {
		t.Errorf("%d messages are stored, expected 4", len(got))
	}
}

// TestConsoleResumes: a page whose connection ends says so, and then has all that
// was said meanwhile, each once.
func TestConsoleResumes(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("red", "")
	a := h.attach(token)
	a.ask("room", "one", "echo: one")
	p := h.console(talk("red", "room"))
	live(p)
	h.kill()
	p.Is("it says that it is lost", "document.querySelector('#following').dataset.state === 'lost'")
	p.Is("it is seen", "document.querySelector('#following .lost').checkVisibility()")
	h.again()
	a = h.attach(token)
	p.Is("the badge's stream too", "document.querySelector('#talk-state').innerText.trim() === 'Adapter attached'")
	p.Said() // htmx tells the browser's console of a stream that ended
	for i := range 20 {
		a.ask("room", fmt.Sprint("later ", i), fmt.Sprint("echo: later ", i))
	}
	p.Is("it comes back", "document.querySelector('#following')?.dataset.state === 'on'")
	want := "one|echo: one"
	for i := range 20 {
		want += fmt.Sprintf("|later %d|echo: later %d", i, i)
	}
	p.Is("it has all, each once, in order", texts+".join('|') === "+browser.Quote(want))

	// Far behind: what is not in one page any more is asked for anew.
	p.JS(nil, "current = null; window.dispatchEvent(new Event('pagehide'))")
	for i := range 130 {
		a.ask("room", fmt.Sprint("much ", i), fmt.Sprint("echo: much ", i))
	}
	p.JS(nil, "window.dispatchEvent(new Event('online'))")
	p.Is("it ends with the newest", texts+".at(-1) === 'echo: much 129'")
	p.Is("each once", "new Set([...document.querySelectorAll('#talk > .msg')].map(m => m.id)).size === document.querySelectorAll('#talk > .msg').length")
	p.Quiet()
}

// TestConsoleWithoutScripts: reading, searching, answering and replaying need none.
func TestConsoleWithoutScripts(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("red", "")
	a := h.attach(token)
	a.ask("room", "a raft of logs", "echo: a raft of logs")
	p := h.console("conversations")
	p.Scripts(false)
	p.Go(h.url + "/console/conversations")
	p.JS(nil, "document.querySelector('[name=q]').value = 'raf'; document.querySelector('.find button').click()")
	p.Is("words are found, and shown where they are", "document.querySelector('mark')?.innerText === 'raft'")
	p.Go(h.url + "/console/" + talk("red", "room"))
	p.JS(nil, "document.querySelector('textarea').value = 'by hand'; document.querySelector('.reply button').click()")
	if f := a.next("send"); f["text"] != "by hand" {
		t.Errorf("the adapter got %v", f)
	}
	p.Shows("by hand")
	_ = a.conn.Close()
	eventually(t, "the adapter is gone", func() bool {
		_, text := h.request("GET", "/adapters", "")
		return strings.Contains(text, `"adapters":[]`)
	})
	h.must(nil, "PATCH", "/channels/red", `{"queue":true,"queue_limits":{"ttl_seconds":1}}`)
	h.must(nil, "POST", "/channels/red/messages", `{"conversation_id":"room","text":"nobody takes it"}`)
	p.Go(h.url + "/console/dead")
	eventually(t, "it expires", func() bool {
		p.Go(h.url + "/console/dead")
		var n int
		p.JS(&n, "document.querySelectorAll('.letters > li').length")
		return n == 1
	})
	p.Shows("Expired: waited too long")
	a = h.attach(token)
	p.JS(nil, "document.querySelector('.letters button').click()")
	if f := a.next("send"); f["text"] != "nobody takes it" {
		t.Errorf("the adapter got %v", f)
	}
	p.Shows("Replayed: it is")
	p.Quiet()
}

// TestConsoleTalkFollowsAdapter: whether an adapter is attached is seen as it changes, on
// the newest page and on older ones, and what is being typed stays.
func TestConsoleTalkFollowsAdapter(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("red", "")
	a := h.attach(token)
	for i := range 30 { // with their answers more than one page
		a.ask("room", fmt.Sprint("word ", i), fmt.Sprint("echo: word ", i))
	}
	p := h.console(talk("red", "room"))
	live(p)
	p.Shows("Adapter attached")
	var older string
	p.JS(&older, "document.querySelector('[rel=prev]').href")
	q := p.Beside(older)
	q.Shows("Adapter attached")

	p.Type("text", "half a senten")
	_ = a.conn.Close()
	p.Is("the badge follows", "document.querySelector('#talk-state').innerText.trim() === 'No adapter'")
	p.Is("and the hint", "document.querySelector('#text-hint').innerText.includes('it will be refused')")
	q.Is("on an older page too", "document.querySelector('#talk-state').innerText.trim() === 'No adapter'")
	p.Accessible("talk-no-adapter")
	h.attach(token)
	p.Is("it comes back", "document.querySelector('#talk-state').innerText.trim() === 'Adapter attached'")
	p.Is("and the hint", "document.querySelectorAll('#text-hint').length === 1 && document.querySelector('#text-hint').innerText.includes('It goes to the user')")
	p.Is("what was typed is there, where it was typed", "document.querySelector('textarea').value === 'half a senten' && document.activeElement.name === 'text'")
	q.Is("on an older page too", "document.querySelector('#talk-state').innerText.trim() === 'Adapter attached'")
	live(p)
	p.Quiet()
	q.Quiet()
}
