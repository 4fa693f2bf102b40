package webchat

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// full fills a page with one of everything.
func (p *tab) full() {
	p.t.Helper()
	p.online()
	p.says("!buttons")
	p.clicks("No")
	p.shows("echo: no")
	p.says("!buttons")
	p.says("!card")
	p.says("!image")
	p.is("the picture", "document.querySelector('#log .picture img')?.naturalWidth > 0")
	p.says("!file")
	p.is("the file", "document.querySelector('#log a.file')")
	p.says("https://example.org/" + strings.Repeat("long", 60))
	p.shows("echo: https://")
}

func TestPhone(t *testing.T) {
	r := startRig(t, `,"title":"A rather long title for a small telephone screen indeed"`)
	p := openTab(t, r.url+"/", nil)
	p.phone()
	p.online()
	check := func(what string) {
		t.Helper()
		var wide, small []string
		p.js(&wide, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().width > 0 && !e.closest('.hidden') && e.getBoundingClientRect().right > innerWidth + 0.5)
			.map(e => e.outerHTML.slice(0, 80)).concat(document.documentElement.scrollWidth > innerWidth ? ['document'] : [], document.querySelector('#scroll').scrollWidth > innerWidth ? ['conversation'] : [])`)
		p.js(&small, `[...document.querySelectorAll('button, select, input, textarea, a.file, .picture a')].filter(e => e.checkVisibility() && (e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44))
			.map(e => e.outerHTML.slice(0, 80) + e.getBoundingClientRect().height)`)
		if len(wide) > 0 || len(small) > 0 {
			t.Errorf("%s: too wide %q, too small %q", what, wide, small)
		}
		p.is("only the conversation scrolls", "document.scrollingElement.scrollHeight <= innerHeight && scrollY === 0")
		var zoomed []string
		p.js(&zoomed, `[...document.querySelectorAll('select, input, textarea')].filter(e => parseFloat(getComputedStyle(e).fontSize) < 16).map(e => e.id)`)
		if len(zoomed) > 0 {
			t.Errorf("%s: phones zoom into %q", what, zoomed)
		}
	}
	check("empty")
	p.shot("phone-empty")
	p.full()
	check("conversation")
	p.shot("phone-media")
	p.js(nil, "document.querySelector('.card').scrollIntoView()")
	p.shot("phone-card")
	p.js(nil, "document.querySelector('#settings-open').click()")
	check("settings")
	p.shot("phone-settings")
	p.quiet()
}

// Everything can be done with Tab, Enter and Space.
func TestKeyboard(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.online()
	p.is("the field has the focus", "document.activeElement.id === 'text'")
	p.tabs("the settings", "e.id === 'settings-open'")
	p.key("Enter")
	p.is("the dialog takes the focus", "document.querySelector('#settings').open && document.activeElement.id === 'name'")
	p.do(input.InsertText("Ann"))
	p.key("Enter")
	p.is("it gives it back", "!document.querySelector('#settings').open && document.activeElement.id === 'settings-open'")
	p.key("Enter")
	p.key("Escape")
	p.is("Escape closes", "!document.querySelector('#settings').open")
	p.tabs("the chip !buttons", "e.dataset.say === '!buttons'")
	p.key(" ")
	p.is("a question", "%s", button("Yes"))
	p.tabs("Yes", "e.innerText === 'Yes'")
	p.key(" ")
	p.shows("echo: yes")
	p.is("the focus stays on the button", "document.activeElement.textContent === 'Yes (chosen)'")
	p.tabs("the help", "e.id === 'help'")
	p.key("Enter")
	p.shows("/notify")
	p.tabs("the field", "e.id === 'text'")
	p.do(input.InsertText("!card"))
	p.tabs("the send button", "e.id === 'send'")
	p.key(" ")
	p.is("a card", "document.querySelector('.card select')")
	p.tabs("the select", "e.tagName === 'SELECT'")
	p.key("ArrowDown")
	p.tabs("its button", "e.innerText === 'Choose'")
	p.key("Enter")
	p.shows("echo: colour:blue")
	var list struct{ Messages []struct{ Author string } }
	r.must(&list, "GET", "/channels/web/messages?direction=in", nil)
	if list.Messages[0].Author != "Ann" {
		t.Errorf("the host sees the name %q", list.Messages[0].Author)
	}
	p.quiet()
}

// Every control has a name, the landmarks are there, and text can be read in
// both schemes.
func TestAccessible(t *testing.T) {
	r := startRig(t, "")
	p := openTab(t, r.url+"/", nil)
	p.full()
	nodes := p.named()
	for _, want := range []string{"banner", "main", "contentinfo", "log", "heading", "status", "textbox"} {
		if !slices.ContainsFunc(nodes, func(n axNode) bool { return n.Role.Value == want }) {
			t.Errorf("nothing has the role %s", want)
		}
	}
	for _, dark := range []bool{false, true} {
		p.dark(dark)
		var poor []string
		p.js(&poor, contrast)
		if len(poor) > 0 {
			t.Errorf("dark %v: too little contrast: %q", dark, poor)
		}
	}
	p.js(nil, "document.querySelector('#settings-open').click()")
	p.named()
	p.js(nil, "document.querySelector('#settings-close').click()")
	r.halt()
	p.is("offline", "document.querySelector('#status').dataset.state === 'offline'")
	p.says("kept")
	for _, dark := range []bool{false, true} {
		p.dark(dark)
		var poor []string
		p.js(&poor, contrast)
		if len(poor) > 0 {
			t.Errorf("offline, dark %v: too little contrast: %q", dark, poor)
		}
	}
}

// named checks that every control and landmark has a name for screen readers, and
// returns what they find.
func (p *tab) named() []axNode {
	p.t.Helper()
	nodes := p.heard()
	controls := 0
	for _, n := range nodes {
		if !slices.Contains([]string{"button", "link", "textbox", "combobox", "image", "dialog", "group", "region", "log", "audio"}, strings.ToLower(n.Role.Value)) {
			continue
		}
		if controls++; n.Name.Value == "" {
			p.t.Errorf("a %s has no name", n.Role.Value)
		}
	}
	if controls < 4 {
		p.t.Errorf("found only %d controls", controls)
	}
	return nodes
}

// heard is what screen readers find on the page.
func (p *tab) heard() []axNode {
	p.t.Helper()
	var tree struct {
		Nodes []axNode `json:"nodes"`
	}
	p.do(chromedp.ActionFunc(func(ctx context.Context) error { return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree) }))
	return slices.DeleteFunc(tree.Nodes, func(n axNode) bool { return n.Ignored })
}

// axNode is what a screen reader learns of an element. (The library's own type
// does not know all that Chromium says.)
type axNode struct {
	Ignored bool    `json:"ignored"`
	Role    axValue `json:"role"`
	Name    axValue `json:"name"`
}

type axValue struct {
	Value string `json:"value"`
}

// contrast lists the texts that stand out by less than 4.5 : 1 (WCAG 2 AA),
// measured against what is behind them.
const contrast = `(() => {
	document.getAnimations().forEach(a => a.cancel());
	const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const poor = [];
	for (const e of document.querySelectorAll('body *')) {
		const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
		if (!own || !e.checkVisibility() || e.closest('.hidden, noscript, option')) continue;
		for (let up = e; up; up = up.parentElement) if (getComputedStyle(up).opacity !== '1') poor.push('opacity: ' + up.className);
		const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.push(ratio.toFixed(2) + ' ' + e.outerHTML.slice(0, 80));
	}
	return poor;
})()`
