package webchat

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// conversation is the id of the tab's conversation.
func (p *tab) conversation() string {
	p.t.Helper()
	var key string
	p.js(&key, "localStorage.getItem('webchat.key')")
	return conversationOf(key)
}

// What a user sees of every frame, in Chromium.
func TestPage(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.shot("empty-light")
	p.dark(true)
	p.shot("empty-dark")
	p.dark(false)
	p.do(chromedp.Click("[data-say=hello]", chromedp.ByQuery))
	p.shows("echo: hello")
	p.is("the empty state goes", "document.querySelector('#empty').hidden")

	p.says("one https://example.org/x?a=1. Two 🌉")
	p.shows("echo: one https://example.org/x?a=1. Two 🌉")
	p.is("an address is a link, without the full stop", `[...document.querySelectorAll('#log .text a')].every(a =>
		a.href === 'https://example.org/x?a=1' && a.rel === 'noopener noreferrer' && a.target === '_blank')`)

	p.says("!buttons")
	p.clicks("Yes")
	p.shows("echo: yes")
	p.is("the button is marked, all are spent", "%s?.classList.contains('chosen') && %s?.getAttribute('aria-disabled') === 'true'",
		`[...document.querySelectorAll('#log .choice')].find(b => b.textContent === 'Yes (chosen)')`, button("No"))
	p.js(nil, "%s.click()", button("No"))

	p.says("!card")
	p.is("a card with colour, markdown and all elements", `document.querySelector('.card .card-head.blue h2')?.textContent === 'Every element' &&
		document.querySelector('.card strong').textContent === 'Markdown' && document.querySelector('.card a').href === 'https://example.org/' &&
		document.querySelector('.card hr') && document.querySelector('.card .note').textContent === 'A note'`)
	p.shot("card-light")
	p.dark(true)
	p.shot("card-dark")
	p.dark(false)
	p.clicks("Open")
	p.shows("echo: open:1")
	p.clicks("Say no")
	p.shows("echo: no")
	p.js(nil, "document.querySelector('.card select').selectedIndex = 1")
	p.clicks("Choose")
	p.shows("echo: colour:blue")
	p.is("the select keeps the choice", "document.querySelector('.card select').selectedOptions[0].text === 'Blue'")

	p.says("!image")
	p.is("the picture is there", "document.querySelector('#log .picture img')?.naturalWidth > 0 && document.querySelector('#log .picture img').alt === 'A pontoon bridge'")
	p.says("!file")
	p.is("the file is a link", "document.querySelector('#log a.file')?.href === %s", quote(r.host.url+"/assets/echo.txt"))
	p.says("!update")
	p.is("the edit replaces the text", `[...document.querySelectorAll('#log .msg')].some(m => m.textContent.includes('echo: second version') && m.querySelector('.edited'))`)
	p.says("!typing")
	p.is("typing", "document.querySelector('#typing.on')?.textContent === 'Typing…'")
	p.shot("media")
	p.is("typing ends", "!document.querySelector('#typing.on') && document.querySelector('#typing').textContent === ''")
	p.shows("that was typing")
	p.do(chromedp.Click("#help", chromedp.ByQuery))
	p.shows("/notify")

	png := "../../../host/internal/agent/assets/echo.png"
	g := absolute(t, png)
	if _, err := r.adapter.SendImage(t.Context(), sdk.Target{ConversationID: p.conversation()}, wire.Image{Path: g, Caption: "of a path"}); err != nil {
		t.Fatal(err)
	}
	p.is("a picture by path", "[...document.querySelectorAll('#log img')].find(i => i.alt === 'of a path')?.naturalWidth > 0")

	var before, after int
	p.js(&before, "document.querySelectorAll('#log .msg').length")
	p.do(chromedp.Reload())
	p.online()
	p.js(&after, "document.querySelectorAll('#log .msg').length")
	if before != after {
		t.Errorf("%d messages after a reload, %d before", after, before)
	}
	beside := openTab(t, r.url+"/", p)
	beside.online()
	p.says("in step")
	beside.shows("echo: in step")
	p.quiet()
	beside.quiet()
}

// A stream that grows, a form that is filled in, and files, as a user sees them.
func TestRichPage(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.says("!stream one two three")
	p.is("the answer grows", `document.querySelector('#log .growing .text')?.innerText === 'echo: one' &&
		document.querySelector('#log .growing').getAttribute('aria-live') === 'off'`)
	p.shot("stream")
	p.is("in its place, to its end", `[...document.querySelectorAll('#log .msg:not(.mine)')].map(m => m.querySelector('.text').innerText).join() === 'echo: one two three' &&
		!document.querySelector('.growing') && document.querySelector('#log .msg:not(.mine)').getAttribute('aria-live') === 'polite'`)

	p.says("!form")
	p.is("a form with labels", `document.querySelector('#log form.form h2')?.textContent === 'A form' &&
		[...document.querySelectorAll('#log form.form label')].map(l => l.control.id && l.textContent).join() === 'Your name *,Colour'`)
	p.clicks("Send")
	p.is("what is required is asked for", "document.querySelector('#log form.form input:invalid') && document.querySelectorAll('#log .mine').length === 2")
	p.tabs("the field", "e.matches('#log form.form input')")
	p.do(input.InsertText("Ann <b>"))
	p.shot("form")
	p.js(nil, "document.querySelector('#log form.form select').value = 'blue'")
	p.key("Enter")
	p.shows("echo: colour: blue\nname: Ann <b>")
	p.shows("Your name: Ann <b>\nColour: Blue")
	p.is("it is spent", `%s?.getAttribute('aria-disabled') === 'true' && document.querySelector('#log form.form input').readOnly &&
		document.querySelector('#log form.form input').value === 'Ann <b>' && document.querySelector('#log form.form select').value === 'blue'`, button("Send"))

	png, text := absolute(t, "../../../host/internal/agent/assets/echo.png"), filepath.Join(t.TempDir(), "notes ü.txt")
	if err := os.WriteFile(text, []byte("some notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.SetUploadFiles("#files", []string{png, text}, chromedp.ByQuery))
	p.is("both are attached", "document.querySelectorAll('#attached li:not(.busy)').length === 2 && document.querySelector('#send').getAttribute('aria-disabled') === 'false'")
	p.shot("attached")
	p.says("two files")
	p.shows("echo: two files")
	history := `document.querySelector('#log .own img')?.naturalWidth > 0 && document.querySelector('#log .own img').alt === 'echo.png' &&
		document.querySelector('#log .mine a.file')?.download === 'notes ü.txt' && document.querySelector('#attached').hidden`
	p.is("both are shown", "%s", history)
	// The host keeps them; what it signs can be sent back, and is shown and loaded.
	var list struct {
		Messages []struct{ Parts []map[string]any }
	}
	eventually(t, "the host has them", func() bool {
		r.must(&list, "GET", "/channels/web/messages?direction=in&limit=1", nil)
		return len(list.Messages) == 1 && len(list.Messages[0].Parts) == 3
	})
	var back []map[string]any
	for _, part := range list.Messages[0].Parts[1:] {
		back = append(back, map[string]any{"type": part["type"], "kind": "output", "mimeType": part["mimeType"], "fileName": "back.txt", "sizeBytes": 10, "url": part["url"], "altText": "sent back"})
	}
	r.send(p.conversation(), map[string]any{"parts": back})
	p.is("both came back in one message", `(m => m.querySelector('.picture img')?.naturalWidth > 0 && m.querySelector('.picture img').alt === 'sent back' &&
		m.querySelector('a.file')?.href.includes('/storage/v1/object/sign/'))([...document.querySelectorAll('#log .msg')].at(-1))`)
	var loaded string
	p.js(&loaded, "[...document.querySelectorAll('#log a.file')].at(-1).href")
	resp, err := http.Get(loaded)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "some notes" {
		t.Errorf("the file is %q, %v", body, err)
	}
	p.do(chromedp.SetUploadFiles("#files", []string{text}, chromedp.ByQuery))
	p.is("one is attached", "document.querySelector('#attached li:not(.busy)')")
	p.js(nil, "document.querySelector('#attached button').click()")
	p.is("and removed", "document.querySelector('#attached').hidden && document.querySelector('#send').getAttribute('aria-disabled') === 'true'")
	p.do(chromedp.Reload())
	p.online()
	p.is("both are still shown", "%s", history)
	p.is("the form is still spent", "document.querySelector('#log form.form input').readOnly")
	p.shot("rich")

	r.send(p.conversation(), map[string]any{"parts": []map[string]any{{"type": "audio-output", "mimeType": "audio/ogg", "status": "completed", "url": r.host.url + "/assets/none.ogg"}}})
	p.is("sound can be played", "document.querySelector('#log audio')?.controls")
	p.quiet()
}

func TestComposer(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.do(chromedp.Focus("#text", chromedp.ByQuery), input.InsertText("first"))
	p.key("Enter", input.ModifierShift)
	p.do(input.InsertText("second"))
	p.js(nil, "document.querySelector('#text').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, cancelable: true, bubbles: true}))")
	p.is("the field grows and nothing is sent", "document.querySelector('#text').clientHeight > 60 && document.querySelectorAll('#log .msg').length === 0")
	p.key("Enter")
	p.shows("echo: first\nsecond")
	p.is("the field is empty again", "document.querySelector('#text').value === '' && document.querySelector('#text').clientHeight < 60")

	p.do(input.InsertText(strings.Repeat("ü", maxText/2+5)))
	p.is("too long is said, and not sent", "document.querySelector('#hint').textContent.startsWith('Too long by 10 bytes') && document.querySelector('#send').getAttribute('aria-disabled') === 'true'")
	p.key("Enter")
	p.js(nil, "document.querySelector('#text').select()")
	p.do(input.InsertText(strings.Repeat("long", 200)))
	p.key("Enter")
	p.shows("echo: longlong")
	p.is("a long word wraps", "document.querySelector('#scroll').scrollWidth <= document.querySelector('#scroll').clientWidth")

	// Who reads above stays there and is told.
	for i := range 12 {
		r.send(p.conversation(), map[string]any{"text": fmt.Sprintf("filler %d\nof\nsome\nlines", i)})
	}
	p.shows("filler 11")
	p.is("it follows", "document.querySelector('#scroll').scrollTop + document.querySelector('#scroll').clientHeight > document.querySelector('#scroll').scrollHeight - 64")
	p.js(nil, "(document.querySelector('#scroll').scrollTop = 0, new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))))")
	p.do(chromedp.Evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))", nil, chromedp.EvalAsValue, awaitPromise))
	r.send(p.conversation(), map[string]any{"text": "look here"})
	p.shows("look here")
	p.is("it stays, with a hint", "document.querySelector('#scroll').scrollTop === 0 && document.querySelector('#newer').innerText.startsWith('1 new message')")
	p.shot("pill")
	p.do(chromedp.Click("#newer", chromedp.ByQuery))
	p.is("the hint leads to the end", "document.querySelector('#newer').hidden && document.querySelector('#scroll').scrollTop > 0")
	p.quiet()
}

// Whatever is lost, the page says so, keeps what was typed and sends it in the end.
func TestOffline(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.says("hello")
	p.shows("echo: hello")

	r.kill()
	p.says("is the host there?")
	p.shows("Waiting for the host")
	p.shot("waiting")
	p.do(chromedp.Reload())
	p.online()
	p.shows("is the host there?")
	r.again()
	p.is("it is sent", `document.querySelector('#log .mine:last-of-type, #log .mine') && [...document.querySelectorAll('#log .mine')].at(-1).querySelector('.meta').textContent === 'Sent'`)
	p.says("and now?")
	p.shows("echo: and now?")

	r.halt()
	p.is("offline", "document.querySelector('#status').innerText === 'Offline – trying again'")
	p.says("kept one")
	p.says("kept two")
	p.shows("Kept until the connection is back")
	p.shot("offline-light")
	p.dark(true)
	p.shot("offline-dark")
	p.dark(false)
	r.run(fmt.Sprintf(`{"listen":%q}`, r.address()))
	p.online()
	p.shows("echo: kept two")
	p.is("in order, once", `[...document.querySelectorAll('#log .msg:not(.mine)')].map(m => m.innerText).filter(x => x.includes('kept')).map(x => x.trim().split('\n').at(-1)).join() === 'echo: kept one,echo: kept two'`)
	p.shows("The chat was restarted")

	// Gone while offline, and back when the adapter is.
	r.halt()
	p.is("offline", "document.querySelector('#status').dataset.state === 'offline'")
	p.says("kept three")
	p.shows("Kept until the connection is back")
	p.do(chromedp.Navigate("about:blank"))
	r.run(fmt.Sprintf(`{"listen":%q}`, r.address()))
	p.do(chromedp.Navigate(r.url + "/"))
	p.shows("echo: kept three")

	// A frame that never arrives goes again on the next line.
	p.js(nil, `(() => {
		const send = WebSocket.prototype.send;
		WebSocket.prototype.send = function (frame) {
			if (!frame.includes('"say"')) return send.call(this, frame);
			WebSocket.prototype.send = send;
			this.close();
		};
	})()`)
	p.says("lost on the way")
	p.shows("echo: lost on the way")
	p.is("nothing waits", "Object.keys(localStorage).every(k => !k.startsWith('webchat.out.'))")
	p.quiet()
}
