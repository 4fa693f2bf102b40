package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// maxOpen bounds the body of a form that nobody needs to be logged in for.
const maxOpen = 16 << 10

func (c *console) login(mux *routes) {
	mux.HandleFunc("GET "+Path+"login", c.open(c.showLogin))
	mux.HandleFunc("POST "+Path+"login", c.openTo(maxKept+maxOpen, c.doLogin))
	mux.HandleFunc("GET "+Path+"session", c.session)
	mux.HandleFunc("POST "+Path+"logout", c.open(c.doLogout))
	mux.HandleFunc("GET "+Path+"setup", c.open(c.showSetup))
	mux.HandleFunc("POST "+Path+"setup", c.open(c.doSetup))
}

// open makes the handler of a page that needs nobody to be logged in.
func (c *console) open(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return c.openTo(maxOpen, h)
}

// openTo is open for a form of at most so many bytes.
func (c *console) openTo(most int64, h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, most)
		err := r.ParseForm()
		if err != nil {
			err = &Problem{Status: http.StatusBadRequest, Title: "Not understood", Detail: "The form is too large or broken."}
		} else {
			err = h(w, r)
		}
		if err != nil {
			c.fail(w, r, err)
		}
	}
}

// local is where a page goes on: a page of the console, or the overview.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, Path) || !strings.HasPrefix(next, Path) ||
		strings.Contains(u.Path, "//") || strings.Contains(u.Path, "..") || strings.ContainsRune(u.Path, '\\') || strings.ContainsFunc(next, unicode.IsControl) {
		return Path
	}
	return next
}

// loginForm is what the login page shows.
type loginForm struct {
	Name, Next string
	Wrong      string // why nobody was let in
	Why        string // why the page is shown; "" = it was asked for
	Kept       *kept  // what was typed before; nil = nothing
}

func (c *console) showLogin(w http.ResponseWriter, r *http.Request) error {
	next := local(r.Form.Get("next"))
	if _, ok := auth.HolderOf(r.Context()); ok {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // G710: next is a path of this host, see local
		return nil
	}
	f := loginForm{Next: next}
	if r.Form.Has("ended") {
		f.Why = "Your session has ended: you were logged out elsewhere, or were away for long."
	}
	c.show(w, r, http.StatusOK, view{Title: "Log in", Bare: true}, loginPage(f))
	return nil
}

func (c *console) doLogin(w http.ResponseWriter, r *http.Request) error {
	f := loginForm{Name: r.PostForm.Get("name"), Next: local(r.PostForm.Get("next")), Kept: keptFrom(r.PostForm)}
	var made api.OpenedSession
	err := c.call(r, http.MethodPost, "/sessions", map[string]string{"name": f.Name, "password": r.PostForm.Get("password")}, &made)
	var p *Problem
	switch {
	case err == nil:
		netguard.SetSession(w, r, made.Secret, made.ExpiresAt.Time)
		if f.Kept != nil {
			c.show(w, r, http.StatusOK, view{Title: "Not sent yet", Bare: true}, keptPage(f.Kept, f.Next))
			return nil
		}
		http.Redirect(w, r, f.Next, http.StatusSeeOther)
		return nil
	case !errors.As(err, &p):
		return err
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusUnprocessableEntity:
		p.Status, f.Wrong = http.StatusUnauthorized, "Name or password is wrong."
	case p.Status == http.StatusTooManyRequests:
		f.Wrong = "Too many tries. Try again in " + p.wait() + "."
	default:
		return err
	}
	p.retry(w)
	c.show(w, r, p.Status, view{Title: "Log in", Bare: true}, loginPage(f))
	return nil
}

func (c *console) doLogout(w http.ResponseWriter, r *http.Request) error {
	if h, ok := auth.HolderOf(r.Context()); ok && h.Session != 0 {
		var p *Problem
		err := c.call(r, http.MethodDelete, "/sessions/current", nil, nil)
		if gone := errors.As(err, &p) && p.Status == http.StatusNotFound; err != nil && !gone {
			return err
		}
	}
	netguard.ClearSession(w, r)
	w.Header().Set("Clear-Site-Data", `"cache"`)
	http.Redirect(w, r, Path+"login", http.StatusSeeOther)
	return nil
}

// setupForm is what the setup page shows.
type setupForm struct {
	Code, Name string
	Anew       bool // for who forgot them: there is an operator
	Problem    *Problem
}

func (f setupForm) title() string {
	if f.Anew {
		return "New name and password"
	}
	return "Set up"
}

func (c *console) showSetup(w http.ResponseWriter, r *http.Request) error {
	f := setupForm{Code: r.Form.Get("code")}
	opens, operated, err := c.Setup(r.Context(), r.RemoteAddr, f.Code)
	if err != nil {
		return err
	}
	if !opens {
		title := "This link opens nothing"
		if operated {
			title = "Set up already"
		}
		c.show(w, r, http.StatusGone, view{Title: title, Bare: true}, opensNothing(operated))
		return nil
	}
	f.Anew = operated
	c.show(w, r, http.StatusOK, view{Title: f.title(), Bare: true}, setupPage(f))
	return nil
}

func (c *console) doSetup(w http.ResponseWriter, r *http.Request) error {
	f := setupForm{Code: r.PostForm.Get("code"), Name: r.PostForm.Get("name")}
	password := r.PostForm.Get("password")
	err := error(nil)
	var made api.OpenedSession
	if password != r.PostForm.Get("again") {
		err = &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"body.again", "differs from the password above"}}}
	} else {
		err = c.call(r, http.MethodPost, "/operator/setup", map[string]string{"code": f.Code, "name": f.Name, "password": password}, &made)
	}
	if err == nil {
		netguard.SetSession(w, r, made.Secret, made.ExpiresAt.Time)
		return back(w, r, Path, "Welcome, "+f.Name+". You are logged in.")
	}
	if !errors.As(err, &f.Problem) || f.Problem.Status >= 500 {
		return err
	}
	if _, f.Anew, err = c.Setup(r.Context(), r.RemoteAddr, f.Code); err != nil {
		return err
	}
	f.Problem.retry(w)
	c.show(w, r, f.Problem.Status, view{Title: f.title(), Bare: true}, setupPage(f))
	return nil
}
