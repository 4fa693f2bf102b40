package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

func (c *console) account(mux *routes) {
	mux.HandleFunc("GET "+Path+"account", c.page(c.showAccount))
	mux.HandleFunc("POST "+Path+"account/name", c.form(c.doRename))
	mux.HandleFunc("POST "+Path+"account/password", c.form(c.doPassword))
	mux.HandleFunc("POST "+Path+"account/sessions", c.form(c.doSessions))
}

// form is page for one that takes a form.
func (c *console) form(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return c.open(func(w http.ResponseWriter, r *http.Request) error {
		c.page(h)(w, r)
		return nil
	})
}

// accountPage is what the account page shows.
type accountPage struct {
	Operator api.Operator
	Sessions []api.Session
	Name     string   // as it was typed
	Problem  *Problem // why what was asked for was refused
}

func (c *console) showAccount(w http.ResponseWriter, r *http.Request) error {
	return c.showAccountWith(w, r, http.StatusOK, accountPage{})
}

func (c *console) showAccountWith(w http.ResponseWriter, r *http.Request, status int, p accountPage) error {
	var err error
	if p.Operator, err = get[api.Operator](c, r, "operator"); err != nil {
		return err
	}
	list, err := get[struct {
		Sessions []api.Session `json:"sessions"`
	}](c, r, "sessions")
	if err != nil {
		return err
	}
	p.Sessions = list.Sessions
	if p.Problem == nil {
		p.Name = p.Operator.Name
	}
	c.show(w, r, status, view{Title: "Account"}, account(p))
	return nil
}

// again shows the account page with what was refused; other errors are the caller's.
func (c *console) again(w http.ResponseWriter, r *http.Request, err error, name string) error {
	p := accountPage{Name: name}
	if !errors.As(err, &p.Problem) || p.Problem.Status != http.StatusUnprocessableEntity && p.Problem.Status != http.StatusTooManyRequests {
		return err
	}
	if name == "" {
		p.Name = r.PostForm.Get("operator")
	}
	p.Problem.retry(w)
	if p.Problem.Status == http.StatusTooManyRequests {
		p.Problem.Detail = "Too many tries. Try again in " + p.Problem.wait() + "."
	}
	return c.showAccountWith(w, r, p.Problem.Status, p)
}

func (c *console) doRename(w http.ResponseWriter, r *http.Request) error {
	name := r.PostForm.Get("name")
	if err := c.call(r, http.MethodPatch, "/operator", map[string]string{"name": name}, nil); err != nil {
		return c.again(w, r, err, name)
	}
	return back(w, r, Path+"account", "Your name is "+name+" now.")
}

func (c *console) doPassword(w http.ResponseWriter, r *http.Request) error {
	password := r.PostForm.Get("password")
	if password != r.PostForm.Get("again") {
		return c.again(w, r, &Problem{Status: http.StatusUnprocessableEntity, Errors: []Fault{{"body.again", "differs from the new password"}}}, "")
	}
	if err := c.call(r, http.MethodPut, "/operator/password", map[string]string{"present": r.PostForm.Get("present"), "password": password}, nil); err != nil {
		return c.again(w, r, err, "")
	}
	return back(w, r, Path+"account", "The password is changed. Everywhere else you are logged out.")
}

// browserOf names browser and system, as far as a user agent tells them.
func browserOf(agent string) string {
	known := func(names ...[2]string) string {
		at := slices.IndexFunc(names, func(n [2]string) bool { return strings.Contains(agent, n[0]) })
		return names[max(at, 0)][1]
	}
	name := known([2]string{"\x00"}, [2]string{"Edg/", "Edge"}, [2]string{"OPR/", "Opera"}, [2]string{"Firefox/", "Firefox"}, [2]string{"Chrome/", "Chrome"}, [2]string{"Safari/", "Safari"})
	on := known([2]string{"\x00"}, [2]string{"Android", "Android"}, [2]string{"iPhone", "iPhone"}, [2]string{"iPad", "iPad"}, [2]string{"Windows", "Windows"}, [2]string{"Mac OS X", "macOS"}, [2]string{"Linux", "Linux"})
	return or(joined(" on ", name, on), or(clip(agent, 60), "unknown"))
}

// doSessions ends one session, or all.
func (c *console) doSessions(w http.ResponseWriter, r *http.Request) error {
	id := r.PostForm.Get("id")
	if id == "" {
		if err := c.call(r, http.MethodDelete, "/sessions", nil, nil); err != nil {
			return err
		}
		netguard.ClearSession(w, r)
		return back(w, r, Path+"login", "You are logged out everywhere.")
	}
	if err := c.call(r, http.MethodDelete, join([]string{"sessions", id}), nil, nil); err != nil {
		return err
	}
	return back(w, r, Path+"account", "That session is over.")
}
