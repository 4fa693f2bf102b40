package console

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// toLogin answers who is not logged in, or not any more. A page that is asked for is
// the login page, which leads on to it. What a page's own script asked for leaves the
// page as it is, and so what was typed there, and says so in it. A form sent without
// scripts gets the login page with what was typed, see kept.
func (c *console) toLogin(w http.ResponseWriter, r *http.Request) {
	htmx, boosted := r.Header.Get("HX-Request") != "", r.Header.Get("HX-Boosted") != ""
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case r.Header.Get("Accept") == "text/event-stream":
		http.Error(w, "not logged in", http.StatusUnauthorized) // EventSource gives up on what is no event stream
	case htmx && (!boosted || !read):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusUnauthorized)
		if err := loggedOut(!read).Render(r.Context(), w); err != nil {
			c.Log.Debug("part not written", "path", r.URL.Path, "error", err)
		}
	case htmx: // the page is to change, not a part of it
		w.Header().Set("HX-Redirect", loginAt(r))
		w.WriteHeader(http.StatusNoContent)
	case read:
		http.Redirect(w, r, loginAt(r), http.StatusSeeOther)
	default:
		k := c.keptOf(w, r)
		f := loginForm{Next: c.pageOf(r.URL), Why: "You were logged out, so nothing was done. Log in, then do it once more.", Kept: k}
		if k != nil {
			f.Why = "You were logged out, so what you typed was not sent. It is kept below."
		}
		c.show(w, r, http.StatusUnauthorized, view{Title: "Log in", Bare: true}, loginPage(f))
	}
}

// loginAt is the login page from which a GET goes on.
func loginAt(r *http.Request) string {
	q := url.Values{}
	if r.URL.Path != Path {
		q.Set("next", local(r.URL.RequestURI()))
	}
	if netguard.HasSession(r) {
		q.Set("ended", "1")
	}
	if len(q) == 0 {
		return Path + "login"
	}
	return Path + "login?" + q.Encode()
}

// pageOf is the page that a form was on: the nearest one at its address or above.
func (c *console) pageOf(u *url.URL) string {
	shown := func(p string) bool {
		_, pattern := c.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: p}})
		return strings.HasPrefix(pattern, "GET ")
	}
	if shown(u.Path) {
		return local(u.RequestURI())
	}
	for p := path.Dir(u.Path); strings.HasPrefix(p, Path); p = path.Dir(p) {
		if shown(p) {
			return local(p)
		}
	}
	return Path
}

// kept is a form that came without a session. It goes through the login in hidden
// fields, so that it is in no address and is stored nowhere, and is sent when the
// operator says so: a page of another origin can't bring one (netguard.Sessions).
type kept struct {
	Action string
	Values url.Values
	Less   bool // something of it may not be kept: it can be read, but not sent from here
}

// maxKept bounds what is kept, as the login form brings it.
const maxKept = 128 << 10

// names of hidden fields
const (
	keptAction = "kept_action"
	keptLess   = "kept_less"
	keptField  = "kept."
)

// untold are fields that are secret, or are there so that something is not done by
// accident: part of a field's name.
var untold = []string{"password", "again", "present", "token", "secret", "key", "code", "confirm", "authorization", "header"}

// keptOf is what was typed into the form that r sends; nil = nothing was, or it is too much.
func (c *console) keptOf(w http.ResponseWriter, r *http.Request) *kept {
	r.Body = http.MaxBytesReader(w, r.Body, maxKept/2) // escaped once more it is larger
	if r.ParseForm() != nil {
		return nil
	}
	k := &kept{Action: local(r.URL.RequestURI()), Values: url.Values{}}
	for name, values := range r.PostForm {
		if slices.ContainsFunc(untold, func(part string) bool { return strings.Contains(strings.ToLower(name), part) }) {
			k.Less = k.Less || strings.Join(values, "") != ""
			continue
		}
		k.Values[name] = values
	}
	if len(k.typed()) == 0 {
		return nil
	}
	return k
}

// keptFrom reads what keptOf made out of the login form; nil = there is none.
func keptFrom(form url.Values) *kept {
	k := &kept{Action: form.Get(keptAction), Values: url.Values{}, Less: form.Get(keptLess) != ""}
	if k.Action == "" || local(k.Action) != k.Action {
		return nil
	}
	for name, values := range form {
		if field, ok := strings.CutPrefix(name, keptField); ok {
			k.Values[field] = values
		}
	}
	if len(k.Values) == 0 {
		return nil
	}
	return k
}

// typed are the fields that somebody sees, by name.
func (k *kept) typed() []pair {
	var out []pair
	for _, name := range sortedKeys(k.Values) {
		if text := strings.Join(k.Values[name], "\n"); name != "once" && text != "" {
			out = append(out, pair{name, text})
		}
	}
	return out
}

// session says whether somebody is logged in, for pages that lost their connection.
func (c *console) session(w http.ResponseWriter, r *http.Request) {
	status := http.StatusNoContent
	if _, ok := auth.HolderOf(r.Context()); !ok {
		status = http.StatusUnauthorized
	}
	w.WriteHeader(status)
}
