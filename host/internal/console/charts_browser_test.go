package console

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/browser"
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
		shown := busyHour()
		if r.FormValue("channel") == "" {
			shown = slowHour()
		}
		if err := json.NewEncoder(w).Encode(shown); err != nil {
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

// TestChartsInBrowser: the pictures fit, light and dark, small and wide; nothing is
// refused by the policy; times are those of the browser's zone; and what is open
// stays open when they are shown anew.
func TestChartsInBrowser(t *testing.T) {
	srv := chartSite(t)
	p := browser.Open(t, srv.URL+Path)
	p.Do(emulation.SetTimezoneOverride("Asia/Kolkata"))
	eachView(func(width int64, dark bool) {
		p.View(width, 900, dark)
		p.Go(srv.URL + Path + "metrics?channel=a")
		p.Is("times are the browser's", `document.querySelector(".chart [data-clock]").textContent.includes("45")`) // 11:15 UTC is 16:45 there
		p.Is("it names the zone", `/Kolkata|Calcutta/.test(document.querySelector("[data-zone]").textContent)`)
		fits(t, p, "charts", width, dark)
	})
	for _, page := range []string{"", "metrics", "channels/a", "dead", "dead/replays/r"} {
		eachView(func(width int64, dark bool) {
			p.View(width, 900, dark)
			p.Go(srv.URL + Path + page)
			p.Is("a heading", `document.querySelector("#main h1").checkVisibility()`)
			fits(t, p, "beside-"+strings.ReplaceAll(page, "/", "-"), width, dark)
		})
	}
	p.Go(srv.URL + Path + "metrics?channel=a")
	p.JS(nil, `document.querySelector(".chart-table summary").click()`)
	p.JS(nil, `(c => { c.dataset.old = "yes"; htmx.ajax("GET", c.getAttribute("hx-get"), {target: ".charts", swap: "outerHTML"}); return true })(document.querySelector(".charts"))`)
	p.Is("the charts are shown anew", `!document.querySelector(".charts").dataset.old`)
	p.Is("the table is open still", `document.querySelector(".chart-table").open`)
	p.Quiet()
}

// eachView calls fn for both widths in both themes.
func eachView(fn func(width int64, dark bool)) {
	for _, width := range []int64{360, 1440} {
		for _, dark := range []bool{false, true} {
			fn(width, dark)
		}
	}
}

// fits fails the test if something stands out of the page, or a chart's text is too
// small to be read.
func fits(t *testing.T, p *browser.Tab, name string, width int64, dark bool) {
	t.Helper()
	var wide, smallest float64
	p.JS(&wide, `Math.max(0, ...[...document.querySelectorAll("html, #main, .charts, .chart")].map(e => e.scrollWidth - e.clientWidth))`)
	p.JS(&smallest, `[...document.querySelectorAll(".chart text")].map(t => t.getBoundingClientRect().height).reduce((a, b) => Math.min(a, b), 1000)`)
	var cut []string
	p.JS(&cut, `[...document.querySelectorAll(".chart text")].filter(t => { const a = t.getBoundingClientRect(), b = t.closest("svg").getBoundingClientRect();
		return a.left < b.left - 0.5 || a.right > b.right + 0.5 || a.bottom > b.bottom + 0.5 || a.top < b.top - 0.5 }).map(t => t.textContent)`)
	if len(cut) > 0 {
		t.Errorf("%s at %d: labels are cut off: %q", name, width, cut)
	}
	at := fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{false: "light", true: "dark"}[dark])
	if wide > 0 || smallest < 9 {
		t.Errorf("%s: %v pixels stand out, text is %v pixels high", at, wide, smallest)
	}
	p.Shot(at)
}
