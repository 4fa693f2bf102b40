package webchat

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/sdk"
	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// One message with every part, as a user sees it, hears it and works with it.
func TestWholePage(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.says("everything, please")
	p.shows("echo: everything")
	r.send(p.conversation(), map[string]any{"parts": everyPart(r.host.url)})
	p.shows("That was all.")
	p.is("one entry, its parts in their order", `document.querySelectorAll('#log .msg:not(.mine)').length === 2 &&
		[...document.querySelector('#log .msg:last-child .body').children].length === %d`, len(strings.Fields(kindsOfAll)))
	p.is("markdown", `(b => b.querySelector('h3')?.textContent === 'A crossing' && b.querySelector('ol ul li') && b.querySelector('blockquote') && b.querySelector('pre').textContent === 'raft --join --with rope' &&
		b.querySelectorAll('td').length === 4 && b.querySelector('em') && [...b.querySelectorAll('a')].map(a => a.href).join() === 'https://example.org/guide_(2),mailto:ferry@example.org')(document.querySelector('.markdown'))`)
	p.is("the rest", `document.querySelectorAll('.sources li').length === 2 && document.querySelectorAll('.product').length === 5 && document.querySelector('.order caption').textContent === 'Order A-17' &&
		document.querySelectorAll('.order tfoot tr').length === 2 && document.querySelectorAll('#log audio').length === 2 && document.querySelectorAll('#log [role=alert]').length === 2 &&
		document.querySelector('#log .divider').textContent === 'That was all.' && [...document.querySelectorAll('.picture img')].every(i => i.naturalWidth > 0)`)
	p.is("nothing that is not for users", "!/hidden-|-of-tool/.test(document.documentElement.textContent)")
	p.signals("Sentiment: positive. ", "Intent: refund. ")
	p.named()
	p.fitsAt(t, "whole", 360, 1440)

	to := sdk.Target{ConversationID: p.conversation()}
	long, err := r.adapter.SendParts(t.Context(), to, "", poisoned(t, strings.Repeat("long", 60)))
	if err != nil {
		t.Fatal(err)
	}
	p.is("nothing but long words", "document.querySelectorAll('.order').length === 2")
	p.fitsAt(t, "long", 360)
	if err := r.adapter.Delete(t.Context(), to, long.Handle); err != nil {
		t.Fatal(err)
	}
	p.is("it is gone", "document.querySelectorAll('.order').length === 1")

	p.tabs("the products", "e.className === 'products'")
	p.clicks("Yes, please")
	p.shows("echo: chip-yes")
	p.is("the choice is spent, the other question is not", "%s?.getAttribute('aria-disabled') === 'true' && !%s.hasAttribute('aria-disabled')", button("No"), button("Nay"))
	p.is("only the choice was shown anew", "document.activeElement.className === 'products'")
	p.clicks("Nay")
	p.shows("echo: nay")
	p.clicks("Card button")
	p.shows("echo: card-value")
	p.clicks("Order")
	p.shows("echo: who:")
	p.do(chromedp.Reload())
	p.online()
	p.is("all of it is still answered, and an old error alarms nobody", `%s?.getAttribute('aria-disabled') === 'true' && document.querySelector('#log form input').readOnly &&
		document.querySelectorAll('#log [aria-disabled=true]').length === 7 && document.querySelectorAll('.error').length === 2 && !document.querySelector('#log [role=alert]')`, button("No"))
	p.quiet()
}

// A stream ends with what only its end has, in the same place; what is for screen
// readers is there once.
func TestStreamBecomesWhole(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.js(nil, `(() => {
		window.heard = 0;
		new MutationObserver(all => all.forEach(m => m.addedNodes.forEach(n => {
			if (n.textContent?.includes('Sentiment') && !(n.closest ? n : n.parentElement)?.closest('[aria-live=off]')) window.heard++;
		}))).observe(document.querySelector('#log'), { childList: true, subtree: true });
	})()`)
	to := sdk.Target{ConversationID: p.conversation()}
	draft := func(text string, final bool, more ...message.Part) {
		t.Helper()
		parts := append([]message.Part{message.NewText(text), message.NewSentiment(message.SentimentPart{Polarity: "negative"})}, more...)
		if _, err := r.adapter.Stream(t.Context(), to, sdk.Draft{ID: "m1", Text: text, Parts: parts, Final: final}); err != nil {
			t.Fatal(err)
		}
		p.is("it says "+text, "document.querySelector('#log .text')?.textContent === %s", quote(text))
	}
	draft("one", false)
	draft("one two", false)
	p.js(nil, "document.querySelector('#log .hidden').dataset.kept = '1'")
	draft("one two three", false)
	draft("one two three", true, message.NewChips(message.Chip{Label: "Go on"}))
	p.is("it is whole", "%s && !document.querySelector('.growing') && document.querySelectorAll('#log .msg').length === 1", button("Go on"))
	p.is("the signal was read out once", "window.heard === 1")
	p.signals("Sentiment: negative. ")
	if _, err := r.adapter.SendParts(t.Context(), to, "", []message.Part{message.NewIntent(message.IntentPart{Intent: "alone"})}); err != nil {
		t.Fatal(err)
	}
	p.is("a signal alone takes no room", "document.querySelector('#log .silent')?.getBoundingClientRect().height === 0")
	p.signals("Sentiment: negative. ", "Intent: alone. ")

	for _, said := range []struct {
		text, live string
		interim    bool
	}{{"we", "off", true}, {"we cross", "off", true}, {"we cross now", "polite", false}} {
		if _, err := r.adapter.SendParts(t.Context(), to, "", []message.Part{message.NewTranscript(message.TranscriptPart{Role: "user", Text: said.text, Interim: said.interim})}); err != nil {
			t.Fatal(err)
		}
		p.is("speech is read out once, when it is final", `(e => e?.querySelector('.text').textContent === %s && e.closest('.msg').getAttribute('aria-live') === %s &&
			e.classList.contains('interim') === %v)(document.querySelector('#log .speech'))`, quote(said.text), quote(said.live), said.interim)
	}
	p.is("in one place", "document.querySelectorAll('#log .speech').length === 1")
	p.quiet()
}

// signals checks that screen readers find these, and eyes don't.
func (p *tab) signals(want ...string) {
	p.t.Helper()
	nodes := p.heard()
	for _, text := range want {
		if !slices.ContainsFunc(nodes, func(n axNode) bool { return strings.TrimSpace(n.Name.Value) == strings.TrimSpace(text) }) {
			p.t.Errorf("a screen reader does not find %q", text)
		}
	}
	var seen []string
	p.js(&seen, `[...document.querySelectorAll('#log .body > .hidden')].filter(e => {
		const box = e.getBoundingClientRect();
		return box.width > 1 || box.height > 1 || getComputedStyle(e).clipPath !== 'inset(50%%)';
	}).map(e => e.textContent)`)
	if len(seen) > 0 {
		p.t.Errorf("can be seen: %q", seen)
	}
	var there []string
	p.js(&there, "[...document.querySelectorAll('#log .body > .hidden')].map(e => e.textContent)")
	if !slices.Equal(there, want) {
		p.t.Errorf("the page has %q, expected %q", there, want)
	}
}

// fitsAt checks the page at these widths, in both schemes: nothing makes it scroll
// sideways, every control can be touched, every text can be read. Its pictures
// show all of the conversation.
func (p *tab) fitsAt(t *testing.T, name string, widths ...int64) {
	t.Helper()
	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 800))
		for _, dark := range []bool{false, true} {
			p.dark(dark)
			var wide, small, poor []string
			p.js(&wide, `[...document.querySelectorAll('#log *')].filter(e => e.getBoundingClientRect().width > 0 && !e.closest('.hidden, .products ul, .wide table') &&
				e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80)).concat(document.querySelector('#scroll').scrollWidth > innerWidth ? ['conversation'] : [])`)
			p.js(&small, `[...document.querySelectorAll('#log button, #log select, #log input, #log a.file, #log .picture a, #log .line a, #log .product')].filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 44)
				.map(e => e.outerHTML.slice(0, 80) + e.getBoundingClientRect().height)`)
			p.js(&poor, contrast)
			if len(wide)+len(small)+len(poor) > 0 {
				t.Errorf("%d px, dark %v: too wide %q, too small %q, too little contrast %q", width, dark, wide, small, poor)
			}
			p.tall(name, width, dark)
		}
	}
	p.dark(false)
	p.do(chromedp.EmulateViewport(1100, 760))
}

// tall takes a picture of the whole conversation, however long.
func (p *tab) tall(name string, width int64, dark bool) {
	if os.Getenv("WEBCHAT_SHOTS") == "" {
		return
	}
	var height int64
	p.js(&height, "document.querySelector('#content').offsetHeight + 260")
	p.do(chromedp.EmulateViewport(width, height))
	p.is("the pictures are drawn", "[...document.images].every(i => i.complete)")
	p.shot(fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{false: "light", true: "dark"}[dark]))
	p.do(chromedp.EmulateViewport(width, 800))
}
