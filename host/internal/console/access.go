package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

func (c *console) access(mux *routes) {
	mux.HandleFunc("GET "+Path+"access", c.page(c.showAccess))
	mux.HandleFunc("POST "+Path+"access", c.form(c.makeKey))
	mux.HandleFunc("GET "+Path+"access/{key}", c.page(c.showKey))
	mux.HandleFunc("POST "+Path+"access/{key}/revoke", c.form(c.revokeKey))
}

// scopeHelp says what each scope opens.
var scopeHelp = []struct {
	Scope auth.Scope
	Help  string
}{
	{auth.ScopeRead, "see what you see here, but no keys, tokens and sessions"},
	{auth.ScopeSend, "send, test, react, replay dead letters"},
	{auth.ScopeManage, "channels, tokens, plugins, agents"},
	{auth.ScopeAdmin, "everything, also keys and the audit log"},
	{auth.ScopeAgentRun, "run an agent from a program or web page, by AG-UI"},
}

// keyLives are how long a new key may live.
var keyLives = []struct{ Value, Label string }{
	{"24h", "a day"}, {"168h", "a week"}, {"720h", "30 days"}, {"2160h", "90 days"}, {"8760h", "a year"}, {"", "until it is revoked"},
}

// accessView is what the Access page shows.
type accessView struct {
	Keys     []api.Key
	Here     *url.URL
	Next     string // of the list of keys; "" = there are no more
	Channels []api.Channel
	Typed    bool // there are more channels than can be ticked: their names are typed
	Form     keyForm
	Problem  *Problem // why no key was made
}

// keyForm is a key that is to be made.
type keyForm struct {
	Name     string
	Scopes   []string
	Channels []string // ids, or names
	Expires  string
}

func (c *console) showAccess(w http.ResponseWriter, r *http.Request) error {
	return c.showAccessWith(w, r, http.StatusOK, accessView{Form: keyForm{Expires: "720h"}})
}

func (c *console) showAccessWith(w http.ResponseWriter, r *http.Request, status int, v accessView) error {
	keys, err := get[struct {
		Keys []api.Key `json:"keys"`
		Next string    `json:"next_cursor"`
	}](c, r, "keys"+listQuery(r, "500"))
	if err != nil {
		return err
	}
	channels, err := get[channelList](c, r, "channels?limit="+strconv.Itoa(mostOptions))
	if err != nil {
		return err
	}
	slices.Reverse(keys.Keys) // newest first, and what opens nothing any more last
	slices.SortStableFunc(keys.Keys, func(a, b api.Key) int { return ended(a) - ended(b) })
	v.Keys, v.Here, v.Next, v.Channels, v.Typed = keys.Keys, r.URL, keys.Next, channels.Channels, channels.Next != ""
	c.show(w, r, status, view{Title: "Access", Nav: navAccess}, accessPage(v))
	return nil
}

// createdKey is a key that was just made.
type createdKey struct {
	api.Key
	Secret string `json:"key"`
}

func (c *console) makeKey(w http.ResponseWriter, r *http.Request) error {
	f := keyForm{r.PostForm.Get("name"), r.PostForm["scope"], append(r.PostForm["channel"], lines(r.PostForm.Get("channels"))...), r.PostForm.Get("expires")}
	in := map[string]any{"name": f.Name, "scopes": append([]string{}, f.Scopes...)}
	if len(f.Channels) > 0 {
		in["channels"] = f.Channels
	}
	if f.Expires != "" {
		in["expires"] = f.Expires
	}
	var made createdKey
	if err := c.call(r, http.MethodPost, "/keys", in, &made); err != nil {
		v := accessView{Form: f}
		if !errors.As(err, &v.Problem) || v.Problem.Status != http.StatusUnprocessableEntity && v.Problem.Status != http.StatusConflict {
			return err
		}
		return c.showAccessWith(w, r, v.Problem.Status, v)
	}
	c.show(w, r, http.StatusOK, view{Title: "Key " + made.Name, Nav: navAccess}, keyMade(made))
	return nil
}

// keyView is what the page of one key shows.
type keyView struct {
	api.Key
	Wrong string // why it was not revoked
}

func (c *console) showKey(w http.ResponseWriter, r *http.Request) error {
	return c.showKeyWith(w, r, http.StatusOK, "")
}

func (c *console) showKeyWith(w http.ResponseWriter, r *http.Request, status int, wrong string) error {
	k, err := get[api.Key](c, r, "keys", r.PathValue("key"))
	if err != nil {
		return err
	}
	c.show(w, r, status, view{Title: "Key " + k.Name, Nav: navAccess}, keyPage(keyView{k, wrong}))
	return nil
}

func (c *console) revokeKey(w http.ResponseWriter, r *http.Request) error {
	k, err := get[api.Key](c, r, "keys", r.PathValue("key"))
	if err != nil {
		return err
	}
	if r.PostForm.Get("confirm") != k.Name {
		return c.showKeyWith(w, r, http.StatusUnprocessableEntity, "expected "+k.Name)
	}
	if err := c.call(r, http.MethodDelete, join([]string{"keys", k.ID}), nil, nil); err != nil {
		return err
	}
	return back(w, r, Path+"access", "The key "+k.Name+" is revoked, and what it had under way is over.")
}

func ended(k api.Key) int {
	if k.Live {
		return 0
	}
	return 1
}

// keyPath is where the page of a key is.
func keyPath(k api.Key) string { return Path + "access/" + url.PathEscape(k.ID) }
