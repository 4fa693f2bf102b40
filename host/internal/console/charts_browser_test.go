package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// chartSite serves the pictures of a busy hour to whoever comes.
func chartSite(t *testing.T) *httptest.Server {
	t.Helper()
	operate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(": nothing\n\n"))
			<-r.Context().Done()
			return
		case strings.HasPrefix(r.URL.Path, "/api/v1/channels"):
			_, _ = w.Write([]byte(`{"id":"1","name":"a","kind":"bridge","enabled":true,"channels":[{"id":"1","name":"a","kind":"bridge","enabled":true},{"id":"2","name":"b"}]}`))
			return
		case strings.HasSuffix(r.URL.Path, "/counts"):
			_, _ = w.Write([]byte(manyDead))
			return
		case strings.Contains(r.URL.Path, "/replays/"):
			_, _ = w.Write([]byte(halfReplayed))
			return
		case strings.HasSuffix(r.URL.Path, "/replays"):
			_, _ = w.Write([]byte(`{"replays":[` + halfReplayed + `]}`))
			return
		}
		if err := json.NewEncoder(w).Encode(busyHour()); err != nil {
			t.Error(err)
		}
	})
	h := New(Options{API: operate, Log: slog.New(slog.DiscardHandler), Version: "test", Now: time.Now})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.WithHolder(r.Context(), auth.Operator())))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// until waits until the expression is true in the page.
func until(js string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		deadline := time.After(20 * time.Second)
		for {
			var ok bool
			if err := chromedp.Evaluate("!!("+js+")", &ok).Do(ctx); err != nil || ok {
				return err
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				return fmt.Errorf("not true: %s", js)
			}
		}
	})
}

// TestChartsInBrowser: the pictures fit, light and dark, small and wide; nothing is
// refused by the policy; times are those of the browser's zone; and what is open
// stays open when they are shown anew.
func TestChartsInBrowser(t *testing.T) {
	srv := chartSite(t)
	dir, err := os.MkdirTemp("", "console-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	flags := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, name := range []string{"no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.ExecPath("/usr/bin/chromium"),
		chromedp.UserDataDir(dir), chromedp.WSURLReadTimeout(time.Minute))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithErrorf(t.Logf))
	t.Cleanup(func() {
		stop()
		stopAlloc()
		chromedp.FromContext(ctx).Allocator.Wait() // it writes until its end
		_ = os.RemoveAll(dir)
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start /usr/bin/chromium: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(ctx, func(e any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := e.(type) {
		case *cdplog.EventEntryAdded:
			said = append(said, e.Entry.Text)
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Error())
		}
	})
	for _, width := range []int64{360, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			var wide, smallest float64
			var clock, zone string
			var picture []byte
			for i, action := range []chromedp.Action{
				emulation.SetTimezoneOverride("Asia/Kolkata"),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 900),
				chromedp.Navigate(srv.URL + Path + "pictures?channel=a"),
				chromedp.WaitVisible(".chart svg", chromedp.ByQuery),
				chromedp.Evaluate(`Math.max(0, ...[...document.querySelectorAll("#main, .charts, .chart")].map(e => e.scrollWidth - e.clientWidth))`, &wide),
				chromedp.Evaluate(`[...document.querySelectorAll(".chart text")].map(t => t.getBoundingClientRect().height).reduce((a, b) => Math.min(a, b), 1000)`, &smallest),
				until(`document.querySelector(".chart [data-clock]").textContent.includes("45")`),
				chromedp.Evaluate(`document.querySelector(".chart [data-clock]").textContent`, &clock),
				chromedp.Text("[data-zone]", &zone, chromedp.ByQuery),
				chromedp.FullScreenshot(&picture, 100),
			} {
				if err := chromedp.Run(ctx, action); err != nil {
					t.Fatalf("%d %s: step %d: %v", width, scheme, i, err)
				}
			}
			if dir := os.Getenv("PONTOON_SCREENSHOTS"); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("charts-%d-%s.png", width, scheme)), picture, 0o600); err != nil {
					t.Error(err)
				}
			}
			if wide > 0 {
				t.Errorf("%d %s: %v pixels stand out", width, scheme, wide)
			}
			if smallest < 9 {
				t.Errorf("%d %s: text is %v pixels high", width, scheme, smallest)
			}
			if !strings.Contains(clock, "45") || !strings.Contains(zone, "Kolkata") && !strings.Contains(zone, "Calcutta") { // 11:15 UTC is 16:45 there
				t.Errorf("%d %s: found %q, %q", width, scheme, clock, zone)
			}
		}
	}
	for _, page := range []string{"", "channels/a", "dead", "dead/replays/r"} {
		checkBeside(ctx, t, srv.URL+Path+page)
	}
	var anew bool
	err = chromedp.Run(ctx,
		chromedp.Navigate(srv.URL+Path+"pictures?channel=a"),
		chromedp.Click(".chart-table summary", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector(".charts").dataset.old = "yes"; const u = document.querySelector(".charts").getAttribute("hx-get"); htmx.ajax("GET", u, {target: ".charts", swap: "outerHTML"}); true`, &anew),
		until(`!document.querySelector(".charts").dataset.old`),
		until(`document.querySelector(".chart-table").open`),
	)
	if err != nil {
		t.Errorf("the table after the charts were shown anew: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) > 0 {
		t.Errorf("the browser says %q", said)
	}
}

// checkBeside looks at a page that is about something else, with the small pictures
// if it has some: all of it fits, in each width and theme.
func checkBeside(ctx context.Context, t *testing.T, page string) {
	t.Helper()
	for _, width := range []int64{360, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			var wide, smallest float64
			var picture []byte
			if err := chromedp.Run(ctx,
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 900),
				chromedp.Navigate(page),
				chromedp.WaitVisible("#main h1", chromedp.ByQuery),
				chromedp.Evaluate(`Math.max(0, ...[...document.querySelectorAll("html, #main, .chart")].map(e => e.scrollWidth - e.clientWidth))`, &wide),
				chromedp.Evaluate(`[...document.querySelectorAll(".chart text")].map(t => t.getBoundingClientRect().height).reduce((a, b) => Math.min(a, b), 1000)`, &smallest),
				chromedp.FullScreenshot(&picture, 100),
			); err != nil {
				t.Fatalf("%s at %d %s: %v", page, width, scheme, err)
			}
			if dir := os.Getenv("PONTOON_SCREENSHOTS"); dir != "" {
				_, name, _ := strings.Cut(page, Path)
				name = fmt.Sprintf("beside-%s-%d-%s.png", strings.ReplaceAll(name, "/", "-"), width, scheme)
				if err := os.WriteFile(filepath.Join(dir, name), picture, 0o600); err != nil {
					t.Error(err)
				}
			}
			if wide > 0 || smallest < 9 {
				t.Errorf("%s at %d %s: %v pixels stand out, text is %v pixels high", page, width, scheme, wide, smallest)
			}
		}
	}
}
