// Package browser drives a real Chromium for tests of the host's own pages: one for
// a test program, and a tab with storage of its own for each test.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

// Program is the browser. Tests fail without it.
const Program = "/usr/bin/chromium"

// within bounds everything that a test waits for.
const within = await.Limit

var chromium = struct {
	sync.Mutex
	ctx  context.Context
	stop func()
}{}

func start(t testing.TB) context.Context {
	t.Helper()
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx
	}
	dir, err := os.MkdirTemp("", "pontoon-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, name := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-dev-shm-usage"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), // nothing leaves this machine
		chromedp.ExecPath(Program), chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(within))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, stop := chromedp.NewContext(alloc)
	if err := chromedp.Run(ctx); err != nil {
		stopAlloc()
		t.Fatalf("start %s: %v", Program, err)
	}
	chromium.ctx = ctx
	chromium.stop = func() {
		stop()
		stopAlloc()
		chromedp.FromContext(ctx).Allocator.Wait() // it writes until its end
		_ = os.RemoveAll(dir)
	}
	return ctx
}

// Main runs the tests of a package that opens tabs, ends the browser, and looks for
// goroutines that are left. It returns what the program exits with.
func Main(m *testing.M) int {
	await.ReadsEnd()
	code := m.Run()
	Close()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		code = leaks.Code()
	}
	return code
}

// Close ends the browser, if there is one.
func Close() {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.stop != nil {
		chromium.stop()
		chromium.ctx, chromium.stop = nil, nil
	}
}

// Tab is one page in the browser.
type Tab struct {
	t       testing.TB
	ctx     context.Context
	storage cdp.BrowserContextID

	mu   sync.Mutex // guards said
	said []string   // errors, dialogs, and what the page's policy forbade
}

// Open opens a tab on the url, with the storage of no other test.
func Open(t testing.TB, url string) *Tab { return open(t, url, "") }

// Beside opens another tab with the same storage.
func (p *Tab) Beside(url string) *Tab { return open(p.t, url, p.storage) }

func open(t testing.TB, url string, storage cdp.BrowserContextID) *Tab {
	t.Helper()
	parent := start(t)
	control := cdp.WithExecutor(parent, chromedp.FromContext(parent).Browser)
	var err error
	if storage == "" {
		if storage, err = target.CreateBrowserContext().WithDisposeOnDetach(true).Do(control); err != nil {
			t.Fatal(err)
		}
	}
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(storage).WithNewWindow(true).Do(control)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(parent, chromedp.WithTargetID(id))
	t.Cleanup(stop)
	p := &Tab{t: t, ctx: ctx, storage: storage}
	chromedp.ListenTarget(ctx, p.listen)
	if err := chromedp.Run(ctx); err != nil { // without a deadline: the tab would end with it
		t.Fatal(err)
	}
	p.View(1440, 900, false)
	p.Go(url)
	return p
}

// listen notes what a page must never do by itself.
func (p *Tab) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.said = append(p.said, "exception: "+ev.ExceptionDetails.Error())
	case *page.EventJavascriptDialogOpening:
		p.said = append(p.said, "dialog: "+ev.Message)
	case *log.EventEntryAdded:
		// A test may want a page to fail, and what Chromium recommends is no fault.
		if s := ev.Entry.Source; s != log.SourceNetwork && s != log.SourceRecommendation {
			p.said = append(p.said, string(ev.Entry.Source)+": "+ev.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range ev.Args {
			words = append(words, string(a.Value))
		}
		p.said = append(p.said, "console: "+strings.Join(words, " "))
	}
}

// Quiet fails the test if the page threw, asked, or did what its policy forbids.
func (p *Tab) Quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		p.t.Errorf("the page is not quiet: %q", p.said)
		p.said = nil
	}
}

// Said is what Quiet would complain of, and forgets it.
func (p *Tab) Said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said
	p.said = nil
	return said
}

// Do runs actions, or fails the test.
func (p *Tab) Do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("browser: %v", err)
	}
}

// Go opens another page.
func (p *Tab) Go(url string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(url))
}

// JS evaluates an expression into v, which may be nil.
func (p *Tab) JS(v any, format string, args ...any) {
	p.t.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	p.Do(evaluation(format, v))
}

// evaluation of an expression into v, when what it promises has come.
func evaluation(expression string, v any) chromedp.Action {
	return chromedp.Evaluate(expression, v, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) })
}

// moved says that a page was left while it was asked something.
func moved(err error) bool {
	var e *cdproto.Error
	return errors.As(err, &e) && e.Code == -32000
}

// holds says whether an expression is true of the page as it is, which may just be
// changing.
func (p *Tab) holds(expression string) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	err = chromedp.Run(ctx, evaluation("(() => { try { return !!("+expression+") } catch { return false } })()", &ok))
	return ok, err
}

// Is polls until the expression is true.
func (p *Tab) Is(what, format string, args ...any) {
	p.t.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	deadline := time.Now().Add(within)
	for {
		ok, err := p.holds(format)
		if ok {
			return
		}
		if err != nil && !moved(err) {
			p.t.Fatalf("%s: browser: %v", what, err)
		}
		if time.Now().After(deadline) {
			var shown string
			p.JS(&shown, "location.href + '\\n' + document.body.innerText")
			p.t.Fatalf("%s: not after %s; the page shows:\n%s", what, within, shown)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// Shows waits for text in the page.
func (p *Tab) Shows(text string) {
	p.t.Helper()
	p.Is("shows "+text, "document.body.innerText.includes(%s)", Quote(text))
}

// Press clicks a button or a link by its words.
func (p *Tab) Press(words string) {
	p.t.Helper()
	const find = "[...document.querySelectorAll('main button, main a')].find(b => b.checkVisibility() && b.innerText.trim().startsWith(%s))"
	p.Is("a button "+words, find, Quote(words))
	p.JS(nil, find+".click()", Quote(words))
}

// Type puts text into the field of this name, in the place of what is there.
func (p *Tab) Type(name, text string) {
	p.t.Helper()
	const find = "[...document.getElementsByName(%s)].find(e => e.checkVisibility())"
	p.Is("a field "+name, find, Quote(name))
	p.JS(nil, "(e => { e.focus(); e.select() })("+find+")", Quote(name))
	p.Do(input.InsertText(text))
	if text == "" {
		p.JS(nil, find+".value = ''", Quote(name))
	}
}

// View makes the page this wide and high, light or dark. Nothing moves, so that
// no colour is measured on its way to another.
func (p *Tab) View(width, height int64, dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.Do(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// Scripts lets pages run scripts, or not.
func (p *Tab) Scripts(run bool) {
	p.t.Helper()
	p.Do(emulation.SetScriptExecutionDisabled(!run))
}

// maxShot is how high a picture may be, in points: Chromium makes none that are
// much higher.
const maxShot = 8000

// Shot writes a picture of all of the page, or of what is in view of a very long
// one, into $PONTOON_SHOTS, for whoever wants to look.
func (p *Tab) Shot(name string) {
	p.t.Helper()
	dir := os.Getenv(shots)
	if dir == "" {
		return
	}
	var b []byte
	p.JS(nil, "scrollTo(0, 0)")
	var height int
	if p.JS(&height, "document.documentElement.scrollHeight"); height > maxShot {
		p.Do(chromedp.CaptureScreenshot(&b))
	} else {
		p.Do(chromedp.FullScreenshot(&b, 100))
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Quote is a string as JavaScript writes it.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}
