// Package console is the operator's web pages. It is a client of the API like any
// other: what a page shows and does goes through the API's handler, inside the
// process, with the rights of who is logged in. So it can't do what the API
// refuses, and there is one place that checks and one that writes the audit log.
package console

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/paging"
)

// Path is where the console is.
const Path = "/console/"

// Options are what the console works on; all are needed.
type Options struct {
	API     http.Handler // of /api/v1; it takes who is logged in from the context (auth.WithHolder)
	URL     string       // at which others reach the host
	KeyFile string       // of the admin key, on the host's machine
	Log     *slog.Logger
	// Setup reports whether the code of a link, from an address, opens the setup page,
	// and whether somebody operates the host already.
	Setup   func(ctx context.Context, remote, code string) (opens, operated bool, err error)
	Version string
	Now     func() time.Time
}

type console struct {
	Options
	mux    *http.ServeMux // of its pages
	memory *paging.Budget // of what pages hold of messages
}

// The memory of all pages that show messages, and of one: its messages are there as
// the API's JSON and decoded, besides what the API holds of them meanwhile.
const (
	allMemory  = 64 << 20
	pageMemory = 8 << 20
	oneMemory  = 32 << 20        // of a page that shows one message, however large
	patience   = 5 * time.Second // that a page waits for it
)

//go:embed static
var static embed.FS

// routes is a mux that tells what it was given.
type routes struct {
	*http.ServeMux
	patterns []string
}

func (r *routes) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	r.patterns = append(r.patterns, pattern)
	r.ServeMux.HandleFunc(pattern, h)
}

// Patterns are those of all pages and of what pages ask for, as http.ServeMux has
// them, so that a test can tell which ones it looked at.
func Patterns() []string { return (&console{}).routes().patterns }

// New makes the handler of Path. Its requests carry who is logged in in their
// context; one that carries nobody is sent to the login page.
func New(o Options) http.Handler {
	c := &console{Options: o, memory: paging.NewBudget(allMemory, patience)}
	mux := c.routes()
	c.mux = mux.ServeMux
	return c.recoverer(protect(mux))
}

func (c *console) routes() *routes {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic("console: " + err.Error()) // the directory is embedded under this name
	}
	mux := &routes{ServeMux: http.NewServeMux()}
	mux.Handle("GET "+Path+"static/", http.StripPrefix(Path+"static/", cached(served(files))))
	c.overview(mux)
	c.channels(mux)
	c.adapters(mux)
	c.pluginPages(mux)
	c.agentPages(mux)
	c.talks(mux)
	c.dead(mux)
	c.frames(mux)
	mux.HandleFunc("GET "+Path+"live", c.page(c.live))
	c.login(mux)
	c.account(mux)
	c.access(mux)
	c.audit(mux)
	c.connections(mux)
	c.pictures(mux)
	mux.HandleFunc(Path, c.page(c.noPage))
	return mux
}

// noPage is every other address. One that only a form is sent to leads to the page above
// it: a browser asks for it when a page is loaded again that said what was wrong.
func (c *console) noPage(w http.ResponseWriter, r *http.Request) error {
	serves := func(method, path string) bool {
		_, pattern := c.mux.Handler(&http.Request{Method: method, Host: r.Host, URL: &url.URL{Path: path}})
		return strings.HasPrefix(pattern, method+" ")
	}
	if r.Method != http.MethodGet || !serves(http.MethodPost, r.URL.Path) {
		return &Problem{Status: http.StatusNotFound, Title: "No such page", Detail: "The page has moved, or what it showed is deleted."}
	}
	above := r.URL.Path
	for above != "" && !serves(http.MethodGet, above) {
		above = above[:strings.LastIndexByte(above, '/')]
	}
	http.Redirect(w, r, local((&url.URL{Path: above}).EscapedPath()), http.StatusSeeOther) //nolint:gosec // G710: a page of the console, see local
	return nil
}

// page makes the handler of a page from one that may fail: the error is shown
// as a page with its status. Nobody sees it who is not logged in.
func (c *console) page(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := error(nil)
		if _, ok := auth.HolderOf(r.Context()); !ok {
			err = &Problem{Status: http.StatusUnauthorized}
		} else {
			err = h(w, r)
		}
		if err != nil {
			c.fail(w, r, err)
		}
	}
}

// ofMessages makes a page of one that shows many messages: too many of them would
// take all memory.
func (c *console) ofMessages(memory int64, h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return c.page(func(w http.ResponseWriter, r *http.Request) error {
		share, err := c.hold(r, memory)
		if err != nil {
			return err
		}
		defer share.Release()
		begin, done := paging.Pacer(w)
		defer done()
		begin(pageMemory)
		return h(w, r)
	})
}

// hold waits for the memory of a page.
func (c *console) hold(r *http.Request, memory int64) (*paging.Share, error) {
	share, err := c.memory.Take(r.Context(), memory)
	if errors.Is(err, paging.ErrFull) {
		return nil, &Problem{
			Status: http.StatusServiceUnavailable, Title: "Too much is read at once", After: "2",
			Detail: "The host shows as many messages at once as its memory allows. Try again in a moment.",
		}
	}
	return share, err
}

func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		c.Log.Error("page failed", "path", r.URL.Path, "error", err)
		p = &Problem{Status: http.StatusInternalServerError, Title: "Something went wrong here", Detail: "The host's log says what."}
	}
	if p.Status == http.StatusUnauthorized {
		c.toLogin(w, r)
		return
	}
	p.retry(w)
	c.show(w, r, p.Status, view{Title: p.Heading()}, failure(p))
}

// show writes a page.
func (c *console) show(w http.ResponseWriter, r *http.Request, status int, v view, content templ.Component) {
	v.Holder, _ = auth.HolderOf(r.Context())
	v.Version = c.Version
	v.Notice = takeNotice(w, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := overt(layout(v)).Render(templ.WithChildren(r.Context(), content), w); err != nil {
		c.Log.Debug("page not written", "path", r.URL.Path, "error", err)
	}
}

// part writes a piece of a page, for htmx to put in place.
func (c *console) part(w http.ResponseWriter, r *http.Request, content templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := overt(content).Render(r.Context(), w); err != nil {
		c.Log.Debug("part not written", "path", r.URL.Path, "error", err)
	}
}

// back sends the browser to another page of the console, which says what was done.
func back(w http.ResponseWriter, r *http.Request, path, done string) error {
	giveNotice(w, r, done)
	http.Redirect(w, r, path, http.StatusSeeOther) //nolint:gosec // G710: a page of the console, see where
	return nil
}

// backRefused is back where what was asked for was not done.
func backRefused(w http.ResponseWriter, r *http.Request, path, why string) error {
	return back(w, r, path, refusedNotice+why)
}

// policy lets a page load what this host serves and nothing else. Images may be
// in the style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets what pages need beside the headers of every answer (netguard).
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}

// served are the files that pages ask for: no list of them, and not what is beside
// them for who works on them.
func served(files fs.FS) http.Handler {
	serve := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := fs.Stat(files, r.URL.Path)
		if err != nil || info.IsDir() || strings.HasSuffix(r.URL.Path, ".md") {
			http.NotFound(w, r)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

// cached lets a browser keep what changes only with the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		next.ServeHTTP(w, r)
	})
}

// recoverer makes a defect cost one page.
func (c *console) recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				c.Log.Error("page panicked", "method", r.Method, "path", r.URL.Path, "error", p)
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
