package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

func (c *console) pluginPages(mux *routes) {
	at := Path + "plugins"
	mux.HandleFunc("GET "+at, c.page(c.listPlugins))
	mux.HandleFunc("POST "+at+"/reload", c.page(c.reloadPlugins))
	mux.HandleFunc("GET "+at+"/{name}", c.page(c.showPlugin))
	mux.HandleFunc("GET "+at+"/{name}/lines", c.page(c.pluginLines))
	for verb, done := range map[string]string{
		"restart": "was asked to stop and start again. How that goes stands below.",
		"enable":  "is enabled and starts, now and with the host.",
		"disable": "is disabled: it is stopped and stays off, also when the host starts again.",
	} {
		mux.HandleFunc("POST "+at+"/{name}/"+verb, c.page(c.operatePlugin(verb, done)))
	}
	mux.HandleFunc("POST "+at+"/{name}/verify", c.page(c.verifyPlugin))
}

func pluginCondition(p api.Plugin) condition {
	switch p.State {
	case "running":
		if !p.Health.Attached && p.Health.LastAttachedAt != nil {
			return condition{warning, "running", "It runs, and is not attached any more."}
		}
		if !p.Health.Attached {
			return condition{about, "running", "It runs, and has not attached yet."}
		}
		if platform := p.Health.Platform; platform != nil && platform.State != "connected" {
			return platformCondition(*platform)
		}
		return condition{good, "running", "It runs and is attached."}
	case "starting", "stopping":
		return condition{about, p.State, p.Reason}
	case "backoff":
		return condition{warning, "restarting", or(p.Reason, "It ended and is started again after a pause.")}
	case "quarantined":
		return condition{fault, "quarantined", or(p.Reason, "It failed too often.")}
	}
	return condition{idle, p.State, p.Reason}
}

// sandboxed says how tight a plugin's sandbox is.
func sandboxed(p api.Plugin) condition {
	open := ""
	if len(p.SandboxOpen) > 0 {
		open = " Open are " + strings.Join(p.SandboxOpen, ", ") + "."
	}
	by := "Landlock " + strconv.Itoa(p.Landlock)
	switch p.Sandbox {
	case "full":
		return condition{good, "full", "By " + by + "." + open}
	case "partial":
		return condition{warning, "partial", by + " of this kernel is too old for some of it." + open}
	case "none":
		return condition{fault, "none", "This kernel has no Landlock." + open}
	case "off":
		return condition{warning, "off", "plugins.yaml says so." + open}
	}
	return condition{idle, "not known", "It never ran."}
}

func (c *console) listPlugins(w http.ResponseWriter, r *http.Request) error {
	return c.pluginsPage(w, r, http.StatusOK, nil)
}

func (c *console) pluginsPage(w http.ResponseWriter, r *http.Request, status int, p *Problem) error {
	list, err := get[pluginList](c, r, "plugins"+page(r))
	if asProblem(err, &p) && p.Status == http.StatusNotFound {
		return &Problem{Status: http.StatusNotFound, Title: "No plugins", Detail: "This host runs no plugins."}
	}
	if err != nil {
		return err
	}
	c.show(w, r, status, view{
		Title: "Plugins", Nav: navPlugins, Lead: "Adapters that this host runs as processes of its own, as plugins.yaml says.",
		Actions: act(Path+"plugins/reload", "Reload plugins.yaml", "plain"),
	}, pluginsPage(list.Plugins, p, r.URL, list.Next))
	return nil
}

func (c *console) reloadPlugins(w http.ResponseWriter, r *http.Request) error {
	var out api.Reloaded
	err := c.call(r, http.MethodPost, "/plugins/_reload", nil, &out)
	if p := (*Problem)(nil); asProblem(err, &p) && p.Status == http.StatusUnprocessableEntity {
		return c.pluginsPage(w, r, p.Status, p)
	}
	if err != nil {
		return err
	}
	said := "plugins.yaml is read again: nothing changed."
	if n := len(out.Added) + len(out.Removed) + len(out.Changed); n > 0 {
		said = "plugins.yaml is read again." + names(" New: ", out.Added) + names(" Changed: ", out.Changed) + names(" Gone: ", out.Removed)
	}
	return back(w, r, Path+"plugins", said)
}

func names(before string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	if len(list) > 8 {
		return before + strconv.Itoa(len(list)) + "."
	}
	for i, n := range list {
		if i > 0 {
			before += ", "
		}
		before += n
	}
	return before + "."
}

// logLines are a plugin's lines, oldest first.
type logLines struct {
	Lines []api.PluginLine `json:"lines"`
}

// pluginView is the page of one plugin.
type pluginView struct {
	api.Plugin
	Is       condition
	Lines    []api.PluginLine
	Last     int64 // seq of the last one
	Verified *api.Verified
	Problem  *Problem
}

// mostLines is how many lines the page shows, also when more come.
const mostLines = 300

func (c *console) loadPlugin(r *http.Request) (pluginView, error) {
	name := r.PathValue("name")
	p, err := get[api.Plugin](c, r, "plugins", name)
	if err != nil {
		return pluginView{}, err
	}
	logs, err := get[logLines](c, r, "plugins", name, "logs?limit="+strconv.Itoa(mostLines))
	if err != nil {
		return pluginView{}, err
	}
	v := pluginView{Plugin: p, Is: pluginCondition(p), Lines: logs.Lines}
	if n := len(logs.Lines); n > 0 {
		v.Last = logs.Lines[n-1].Seq
	}
	return v, nil
}

func (c *console) showPlugin(w http.ResponseWriter, r *http.Request) error {
	v, err := c.loadPlugin(r)
	if gone(err) {
		return c.noPlugin(w, r, err)
	}
	if err != nil {
		return err
	}
	c.pluginPage(w, r, http.StatusOK, v)
	return nil
}

// noPlugin leads to what there is of a plugin that plugins.yaml does not name.
func (c *console) noPlugin(w http.ResponseWriter, r *http.Request, why error) error {
	name := r.PathValue("name")
	if name == "reload" { // the page that said what is wrong with the file, loaded again
		http.Redirect(w, r, Path+"plugins", http.StatusSeeOther)
		return nil
	}
	ch, err := get[api.Channel](c, r, "channels", name)
	if err != nil || ch.Kind != "plugin" {
		return why
	}
	return back(w, r, where("channels", ch.Name), "plugins.yaml does not name "+ch.Name+" any more. This is its channel, with all that was said.")
}

func (c *console) pluginPage(w http.ResponseWriter, r *http.Request, status int, v pluginView) {
	c.show(w, r, status, view{
		Title: v.Name, Nav: navPlugins, Above: [2]string{"Plugins", Path + "plugins"}, Actions: pluginActions(v),
	}, pluginPage(v))
}

func (c *console) operatePlugin(verb, done string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("name")
		said := done
		if verb == "restart" {
			before, err := get[api.Plugin](c, r, "plugins", name)
			if err != nil {
				return err
			}
			if before.State == "quarantined" {
				said = "was let out of quarantine and asked to start. How that goes stands below."
			}
		}
		err := c.call(r, http.MethodPost, join([]string{"plugins", name, verb}), nil, nil)
		if p := (*Problem)(nil); asProblem(err, &p) && p.Status == http.StatusConflict {
			v, err := c.loadPlugin(r)
			if err != nil {
				return err
			}
			v.Problem = p
			c.pluginPage(w, r, p.Status, v)
			return nil
		}
		if err != nil {
			return err
		}
		return back(w, r, where("plugins", name), "Plugin "+name+" "+said)
	}
}

func (c *console) verifyPlugin(w http.ResponseWriter, r *http.Request) error {
	var out api.Verified
	if err := c.call(r, http.MethodPost, join([]string{"plugins", r.PathValue("name"), "verify"}), nil, &out); err != nil {
		return err
	}
	v, err := c.loadPlugin(r)
	if err != nil {
		return err
	}
	v.Verified = &out
	c.pluginPage(w, r, http.StatusOK, v)
	return nil
}

// pluginLines is the stream of a plugin's lines as pieces of its page. It goes
// on behind the last line that the page has.
func (c *console) pluginLines(w http.ResponseWriter, r *http.Request) error {
	out := newSender(w)
	header := http.Header{}
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = r.URL.Query().Get("after")
	}
	if n, err := strconv.ParseInt(last, 10, 64); err == nil && n > 0 {
		header.Set("Last-Event-ID", last)
	}
	path := "/plugins/" + url.PathEscape(r.PathValue("name")) + "/logs?limit=" + strconv.Itoa(mostLines)
	err := c.stream(r, path, header, func(e event) error {
		if e.Data == "" {
			return out.send(event{})
		}
		var line api.PluginLine
		if err := json.Unmarshal([]byte(e.Data), &line); err != nil {
			return err
		}
		var b bytes.Buffer
		if err := overt(logLine(line)).Render(r.Context(), &b); err != nil {
			return err
		}
		return out.send(event{ID: e.ID, Name: "line", Data: b.String()})
	})
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	return nil // the browser has gone, or the host stops
}

// checksum says what is known of the bytes that run.
func checksum(v pluginView) condition {
	switch {
	case v.Verified != nil && !v.Verified.OK && v.Pinned:
		return condition{fault, "mismatch", v.Verified.Reason}
	case v.Verified != nil && !v.Verified.OK:
		return condition{fault, "may not run", v.Verified.Reason}
	case v.Verified != nil && v.Pinned:
		return condition{good, "verified", "The program on the disk has the sha256 of plugins.yaml."}
	case v.Pinned && v.SHA256 != "" && slices.Contains([]string{"running", "starting"}, v.State):
		return condition{good, "pinned", "What runs was checked against plugins.yaml as it started."}
	case v.Pinned:
		return condition{about, "pinned", "It is checked at each start."}
	}
	return condition{warning, "not pinned", "plugins.yaml has no sha256: whatever lies at its path is run. pontoon plugin hash prints it."}
}
