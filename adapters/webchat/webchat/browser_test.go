package webchat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is the one Chromium of all tests; each test has a context of its own
// in it, with empty storage.
var browser = struct {
	sync.Mutex
	ctx  context.Context
	stop func()
}{}

func chromium(t *testing.T) context.Context {
	t.Helper()
	browser.Lock()
	defer browser.Unlock()
	if browser.ctx != nil {
		return browser.ctx
	}
	dir, err := os.MkdirTemp("", "webchat-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, name := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")) // pictures of other machines stay there
	flags = append(flags, chromedp.ExecPath("/usr/bin/chromium"), chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(within))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, stop := chromedp.NewContext(alloc)
	if err := chromedp.Run(ctx); err != nil {
		stopAlloc()
		t.Fatalf("start /usr/bin/chromium: %v", err)
	}
	browser.ctx = ctx
	browser.stop = func() {
		stop()
		stopAlloc()
		chromedp.FromContext(ctx).Allocator.Wait() // it writes until its end
		_ = os.RemoveAll(dir)
	}
	return ctx
}

func closeBrowser() {
	if browser.stop != nil {
		browser.stop()
	}
}

// tab is one page in the browser.
type tab struct {
	t       *testing.T
	ctx     context.Context
	storage cdp.BrowserContextID

	mu   sync.Mutex
	said []string // by the console, errors and dialogs
}

// openTab opens the url with the storage of no other test, or of beside.
func openTab(t *testing.T, url string, beside *tab) *tab {
	t.Helper()
	parent := chromium(t)
	control := cdp.WithExecutor(parent, chromedp.FromContext(parent).Browser)
	var err error
	var storage cdp.BrowserContextID
	if beside != nil {
		storage = beside.storage
	} else if storage, err = target.CreateBrowserContext().WithDisposeOnDetach(true).Do(control); err != nil {
		t.Fatal(err)
	}
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(storage).WithNewWindow(true).Do(control)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(parent, chromedp.WithTargetID(id))
	t.Cleanup(stop)
	p := &tab{t: t, ctx: ctx, storage: storage}
	chromedp.ListenTarget(ctx, p.listen)
	if err := chromedp.Run(ctx); err != nil { // without a deadline: the tab would end with it
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1100, 760), chromedp.Navigate(url))
	return p
}

// listen notes what a page must never do by itself.
func (p *tab) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range ev.Args {
			words = append(words, string(a.Value))
		}
		p.said = append(p.said, "console: "+strings.Join(words, " "))
	case *runtime.EventExceptionThrown:
		p.said = append(p.said, "exception: "+ev.ExceptionDetails.Error())
	case *page.EventJavascriptDialogOpening:
		p.said = append(p.said, "dialog: "+ev.Message)
	}
}

func (p *tab) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		p.t.Errorf("the page is not quiet: %q", p.said)
	}
}

func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}

// js evaluates an expression into v.
func (p *tab) js(v any, format string, args ...any) {
	p.t.Helper()
	p.do(chromedp.Evaluate(fmt.Sprintf(format, args...), v))
}

// is polls until the expression is true.
func (p *tab) is(what, format string, args ...any) {
	p.t.Helper()
	deadline := time.Now().Add(within)
	for {
		var ok bool
		p.js(&ok, "!!("+format+")", args...)
		if ok {
			return
		}
		if time.Now().After(deadline) {
			var shown string
			p.js(&shown, "document.body.innerText")
			p.t.Fatalf("%s: not after %s; %q shows:\n%s", what, within, fmt.Sprintf(format, args...), shown)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// shows waits for text in the conversation.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.is("shows "+text, "document.querySelector('#log').innerText.includes(%s)", quote(text))
}

// says types a message and presses Enter.
func (p *tab) says(text string) {
	p.t.Helper()
	p.do(chromedp.Focus("#text", chromedp.ByQuery), input.InsertText(text))
	p.key("Enter")
}

// key presses a key as a keyboard does: one event, whose default the page may
// prevent. (chromedp sends the character as another.)
func (p *tab) key(name string, modifiers ...input.Modifier) {
	p.t.Helper()
	k := map[string]struct {
		code int64
		text string
	}{"Enter": {13, "\r"}, "Tab": {9, ""}, " ": {32, " "}, "Escape": {27, ""}, "ArrowDown": {40, ""}}[name]
	down := input.DispatchKeyEvent(input.KeyDown).WithKey(name).WithCode(strings.ReplaceAll(name, " ", "Space")).WithWindowsVirtualKeyCode(k.code).WithText(k.text)
	up := input.DispatchKeyEvent(input.KeyUp).WithKey(name).WithWindowsVirtualKeyCode(k.code)
	for _, m := range modifiers {
		down, up = down.WithModifiers(m), up.WithModifiers(m)
	}
	p.do(down, up)
}

// online waits for the connection.
func (p *tab) online() {
	p.t.Helper()
	p.is("online", "document.querySelector('#status').dataset.state === 'online'")
}

// clicks presses the last button of the conversation with this label.
func (p *tab) clicks(label string) {
	p.t.Helper()
	p.is("a button "+label, "%s", button(label))
	p.js(nil, "%s.click()", button(label))
}

func button(label string) string {
	return "[...document.querySelectorAll('#log button')].findLast(b => b.innerText.trim() === " + quote(label) + ")"
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}

func (p *tab) dark(on bool) {
	p.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	p.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// shot writes a picture of the page into $WEBCHAT_SHOTS, for whoever wants to look.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("WEBCHAT_SHOTS")
	if dir == "" {
		return
	}
	var b []byte
	p.js(nil, "Promise.all(document.getAnimations().filter(a => a.effect.getTiming().iterations === 1).map(a => a.finish()))")
	p.do(chromedp.CaptureScreenshot(&b))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// phone makes the tab one of 390 by 844 points.
func (p *tab) phone() {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
}

// tabs presses Tab until the expression, over e = the focused element, is true.
func (p *tab) tabs(what, format string, args ...any) {
	p.t.Helper()
	for range 60 {
		p.key("Tab")
		var there bool
		p.js(&there, "(e => !!("+format+"))(document.activeElement)", args...)
		if there {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %s", what)
}
