//go:build linux

package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

// canaries are planted by what they are: one of each kind that a host gets to
// know. Whoever adds a kind adds a line, uses it in exercise, rightly and wrongly,
// and is told where it shows.
var canaries = map[string]string{
	"channel token of its own":      "canary/token+of=a channel",
	"channel token that is wrong":   "canary-token-that-is-wrong",
	"agent key of its own":          "canary-key-of-an-agent-0001",
	"API key that is wrong":         "pnk_canaryKeyThatIsWrong0001",
	"webhook secret":                "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-secret-of-a-webhook-01")),
	"webhook secret that is wrong":  "canary-webhook-secret-malformed",
	"bearer of a webhook":           "canary-bearer-of-a-webhook",
	"bearer of AG-UI":               "canary-bearer-of-agui",
	"plugin secret of the store":    `canary "secret" of the store/+=`,
	"plugin secret of environment":  "canary-secret-of-the-environment",
	"plugin secret in plugins.yaml": "canary-secret-in-plugins-yaml",
	"secret that was refused":       "canary-secret-that-was-refused",
	"secret that was changed":       "canary-secret-that-was-changed",
	"Bridle JWT secret":             "canary-jwt-secret-that-is-long-enough-for-it",
	"Bridle API key":                "canary-api-key-of-bridle",
	"master key":                    strings.Repeat("ca9a47", 10) + "0001",
	"master key that is wrong":      "canary-master-key-that-is-wrong",
}

// forms are how a secret may show: as it is, and encoded, also in the middle of
// something longer.
func forms(secret string) map[string]string {
	b := []byte(secret)
	all := map[string]string{
		"as it is": secret, "in hex": hex.EncodeToString(b), "in HEX": strings.ToUpper(hex.EncodeToString(b)),
		"in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret),
	}
	if text, err := json.Marshal(secret); err == nil {
		all["in JSON"] = strings.Trim(string(text), `"`)
	}
	for offset := range 3 {
		whole := append(make([]byte, offset), b...)
		from, to := []int{0, 2, 3}[offset], len(whole)*8/6
		all[fmt.Sprintf("in base64 at %d", offset)] = base64.StdEncoding.EncodeToString(whole)[from:to]
		all[fmt.Sprintf("in base64 of urls at %d", offset)] = base64.URLEncoding.EncodeToString(whole)[from:to]
	}
	if raw, err := hex.DecodeString(secret); err == nil {
		all["decoded"] = string(raw)
	}
	return all
}

// shows says where and how a text has one of the planted.
func shows(t *testing.T, where, text string, planted map[string]string) {
	t.Helper()
	for kind, secret := range planted {
		for how, form := range forms(secret) {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows in %s, %s: %.300q", kind, where, how, text[max(0, at-150):])
				break
			}
		}
	}
}

// Every form is found, so that the test below shows something.
func TestCanaryForms(t *testing.T) {
	t.Parallel()
	const secret = "canary of a/test+"
	for _, text := range []string{
		"x" + secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), url.Values{"a": {secret}}.Encode(),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("user:" + secret + "..")), base64.RawURLEncoding.EncodeToString([]byte("x" + secret)),
	} {
		found := false
		for _, form := range forms(secret) {
			found = found || strings.Contains(text, form)
		}
		if !found {
			t.Errorf("not found in %q", text)
		}
	}
}

// No secret shows anywhere but where it must be, whatever is done with it.
func TestCanaries(t *testing.T) {
	t.Parallel()
	p := newCanaryPit(t)
	planted := p.exercise()
	for where, text := range p.outputs() {
		shows(t, where, text, planted)
	}
	p.checkProcesses(planted)
	p.stop()
	for where, text := range p.files() {
		shows(t, where, text, planted)
	}
	if log := p.errs.String(); len(lines(log)) < 20 || !strings.Contains(log, "level=DEBUG") || !strings.Contains(log, "hostile: can't log in with ***") {
		t.Errorf("the log says too little to prove anything: %s", log)
	}
	shows(t, "the end's log", p.errs.String()+p.out.String(), planted)
	p.wrongKeys(planted)
}

// canaryPit is a host that gets to know every canary.
type canaryPit struct {
	*pit
	told map[string]string // what commands and the API said, by what was asked
}

func newCanaryPit(t *testing.T) *canaryPit {
	t.Helper()
	program, err := hostileBinary()
	if err != nil {
		t.Fatal(err)
	}
	p := &pit{t: t, dir: t.TempDir(), mark: "canary-pit-" + strconv.Itoa(os.Getpid()), program: program}
	p.file = filepath.Join(p.dir, "plugins.yaml")
	t.Cleanup(func() { p.none(wait) })
	p.write()
	p.host = &host{t: t, data: filepath.Join(t.TempDir(), "data"), args: []string{"--verbose", "--plugins", p.file}, wrap: []string{
		"env", "PONTOON_BRIDLE_JWT_SECRET=" + canaries["Bridle JWT secret"], "PONTOON_BRIDLE_API_KEY=" + canaries["Bridle API key"],
		secrets.EnvKey + "=" + canaries["master key"], "PLUGIN_SECRET_ENV=" + canaries["plugin secret of environment"],
	}}
	p.start("127.0.0.1:0")
	return &canaryPit{p, map[string]string{}}
}

// call notes what the API answers, unless the answer is meant to show a secret.
func (p *canaryPit) call(method, path, body string) {
	p.t.Helper()
	status, text := p.request(method, path, body)
	p.told[fmt.Sprintf("%s %s (%d), %d", method, path, status, len(p.told))] = text
}

// command notes what a command says.
func (p *canaryPit) command(stdin string, args ...string) {
	p.t.Helper()
	r := runCommand(p.t, p.env(), stdin, args...)
	p.told[fmt.Sprintf("pontoon %.40s (%d), %d", strings.Join(args, " "), r.code, len(p.told))] = r.out + r.err
}

// get asks without the operator's key.
func (p *canaryPit) get(path, bearer string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // what it redirects to is asked for by itself
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.told[fmt.Sprintf("GET %.20s with a bearer of %d (%d), %d", path, len(bearer), resp.StatusCode, len(p.told))] = string(b)
}

// exercise uses every secret, rightly and wrongly, and returns them with those
// that the host made.
func (p *canaryPit) exercise() map[string]string {
	planted := map[string]string{"admin key": p.key}
	for kind, secret := range canaries {
		planted[kind] = secret
	}
	p.tokens(planted)
	p.keys(planted)
	p.agents()
	p.stored()
	p.plugged()
	p.broken(planted)
	return planted
}

func (p *canaryPit) tokens(planted map[string]string) {
	own, wrong := canaries["channel token of its own"], canaries["channel token that is wrong"]
	text, err := json.Marshal(own)
	if err != nil {
		p.t.Fatal(err)
	}
	p.channel("own", `,"token":`+string(text))
	made := p.channel("made", "")
	var rotated struct{ Token string }
	p.must(&rotated, "POST", "/channels/made/tokens", `{"overlap":"1h"}`)
	planted["channel token that was made"], planted["channel token that was rotated"] = made, rotated.Token
	for i, token := range []string{own, made, rotated.Token, wrong} {
		for _, inQuery := range []bool{true, false} {
			query, frameToken := "", token
			if inQuery {
				query, frameToken = "?token="+url.QueryEscape(token), ""
			}
			peer := p.dial(query, nil)
			peer.send(frame{"type": "register", "token": frameToken, "platform": "canary"})
			if ack := peer.next("register_ack"); ack["ok"] != (i < 3) {
				p.t.Fatalf("token %d: %v", i, ack)
			}
		}
		p.get("/api/v1/channels/bridge/ws?token="+url.QueryEscape(token), "")
		p.get("/api/v1/channels/bridge/ws", token)
		p.get("/api/v1/nowhere?token="+url.QueryEscape(token), token)
		p.get("/api/v1/channels", token)
	}
	p.attach(made).ask("room", "hello", "echo: hello")
	p.call("POST", "/channels", `{"name":"other","token":`+string(text)+`}`)
	p.call("POST", "/channels", `{"name":"BAD NAME","token":"`+wrong+`"}`)
	p.call("POST", "/channels", `{"name":"other","token":["`+wrong+`"]}`)
	p.call("POST", "/channels", `{"name":"other","tokn":"`+wrong+`"}`)
	p.call("POST", "/channels", `{"name":"other","token":"`+wrong)
	p.call("POST", "/channels", `{"name":"other","token":" `+wrong+`"}`)
}

func (p *canaryPit) keys(planted map[string]string) {
	key := p.runKey("canary")
	planted["API key"] = key
	for _, bearer := range []string{p.key, key, canaries["API key that is wrong"], canaries["Bridle API key"], canaries["Bridle JWT secret"]} {
		for _, path := range []string{"/api/v1/keys", "/api/v1/events?key=" + url.QueryEscape(bearer), "/api/v1/nowhere", "/api/v1/agents/ws?key=" + url.QueryEscape(bearer)} {
			if bearer == p.key && strings.Contains(path, "events") {
				continue // it would not end
			}
			p.get(path, bearer)
		}
	}
	p.command("", "--key", canaries["API key that is wrong"], "channel", "list")
	own := canaries["agent key of its own"]
	p.must(nil, "POST", "/agents", `{"name":"socket","kind":"websocket","key":"`+own+`"}`)
	p.call("POST", "/agents", `{"name":"socket2","kind":"websocket","key":"`+own+`"}`)
	p.call("POST", "/agents", `{"name":"socket2","kind":"echo","key":"`+own+`"}`)
	p.get("/api/v1/agents/ws", own)
	p.get("/socket.io/?EIO=4&transport=polling&token="+url.QueryEscape(canaries["Bridle JWT secret"]), "")
}

// agents are called where they answer with what they were shown.
func (p *canaryPit) agents() {
	hook, agui := canaries["bearer of a webhook"], canaries["bearer of AG-UI"]
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "can't %v", r.Header)
	}))
	p.t.Cleanup(mirror.Close)
	secret, malformed := canaries["webhook secret"], canaries["webhook secret that is wrong"]
	p.must(nil, "POST", "/agents", fmt.Sprintf(`{"name":"hook","kind":"webhook","config":{"url":%q,"allow_private":true,"secret":%q,"headers":{"Authorization":"Bearer %s"}}}`, mirror.URL, secret, hook))
	p.must(nil, "POST", "/agents", fmt.Sprintf(`{"name":"model","kind":"agui","config":{"url":%q,"allow_private":true,"headers":{"Authorization":"Bearer %s"}}}`, mirror.URL, agui))
	for _, config := range []string{
		`{"url":"https://a.example.org","secret":"` + malformed + `"}`, `{"secret":["` + malformed + `"]}`, `{"url":"https://a.example.org","Secret":"` + malformed + `"}`,
		`{"url":"https://a.example.org","secret":"` + secret + `","headers":{"A B":"` + hook + `"}}`, `"` + malformed + `"`, `{"headers":"` + hook + `"}`,
		`{"url":"https://a.example.org","secret":"` + secret + `","headers":{"A":{"B":"` + hook + `"}}}`,
	} {
		for _, kind := range []string{"webhook", "agui", "none"} {
			p.call("POST", "/agents", `{"name":"bad","kind":"`+kind+`","config":`+config+`}`)
		}
		p.call("PATCH", "/agents/hook", `{"config":`+config+`}`)
	}
	for _, name := range []string{"hook", "model"} {
		peer := p.attach(p.channel("to-"+name, `,"agent":"`+name+`"`))
		peer.say("room", "hello")
		peer.next("send") // that it failed
		var rows struct{ Messages []struct{ ID string } }
		p.must(&rows, "GET", "/channels/to-"+name+"/messages", "")
		for _, m := range rows.Messages {
			p.command("", "why", m.ID)
			p.call("GET", "/channels/to-"+name+"/messages/"+m.ID, "")
		}
	}
	p.call("PATCH", "/agents/hook", `{"enabled":false}`)
}

// stored are what the secret store takes and refuses.
func (p *canaryPit) stored() {
	changed, refused := canaries["secret that was changed"], canaries["secret that was refused"]
	p.command(changed, "secret", "set", "STORED")
	p.command(canaries["plugin secret of the store"]+"\n", "secret", "set", "STORED")
	p.command(refused, "secret", "set", "BAD NAME")
	p.command(strings.Repeat(refused, 10_000), "secret", "set", "LARGE")
	for _, body := range []string{`{"value":["` + refused + `"]}`, `{"valeu":"` + refused + `"}`, `{"value":"` + refused, `"` + refused + `"`, `{"value":1,"more":"` + refused + `"}`} {
		p.call("PUT", "/planted/REFUSED", body)
	}
}

// plugged is a plugin that tells what it was given, in all the ways it has, and
// files that are refused behind a secret.
func (p *canaryPit) plugged() {
	inline := canaries["plugin secret in plugins.yaml"]
	told := 0
	for _, value := range []string{"${STORED}", "${PLUGIN_SECRET_ENV}", inline} {
		entry := plugin{name: "blab", mode: "ok"}
		file := strings.Replace(p.yaml(entry), "config: {", `config: {password: "`+value+`", `, 1)
		writeFile(p.t, p.file, file)
		p.command("", "plugin", "reload")
		p.until(p.t, wait, "blab", "running", func(r pluginRow) bool { return r.State == "running" })
		eventually(p.t, "the plugin blabs", func() bool { // the port may still be that of its predecessor
			_, _ = ask(p.path("port", "blab"), "blab", "never") // its end is the answer
			return strings.Count(p.log("blab"), "hostile: can't log in") > told
		})
		told = strings.Count(p.log("blab"), "hostile: can't log in")
		p.call("GET", "/plugins", "")
		p.told["plugin logs after "+value] = p.log("blab")
		p.command("", "plugin", "restart", p.full("blab"))
		p.until(p.t, wait, "blab", "running", func(r pluginRow) bool { return r.State == "running" })
		for _, more := range []string{"    bogus: 1\n", "    env: [\"" + inline + "=1\"]\n", "    agent: [" + inline + "]\n"} {
			writeFile(p.t, p.file, file+more)
			p.command("", "plugin", "reload")
			p.command("", "plugin", "verify", "--plugins", p.file)
			p.command("", "doctor", "--plugins", p.file)
		}
		writeFile(p.t, p.file, file)
	}
	p.command("", "plugin", "reload")
	p.running(p.t, "blab")
}

// broken are requests in which a secret is out of place.
func (p *canaryPit) broken(planted map[string]string) {
	for _, secret := range planted {
		text, err := json.Marshal(map[string]any{"token": secret, "key": 1})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, path := range []string{"/channels/own", "/channels/own/messages", "/keys", "/agents/hook", "/render", "/plugins/_reload"} {
			p.call("POST", path, string(text))
		}
	}
}

// outputs are what the running host and its commands say.
func (p *canaryPit) outputs() map[string]string {
	for _, path := range []string{
		"/openapi.json", "/audit?limit=500", "/channels", "/channels/own/tokens", "/adapters", "/plugins", "/agents", "/agents/socket/keys", "/agents/_kinds", "/planted", "/keys", "/dead-letters",
	} {
		p.call("GET", path, "")
	}
	p.get("/metrics", "")
	p.get("/readyz", "")
	p.get("/console", "")
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"secret", "list"}, {"agent", "list", "--json"}, {"agent", "show", "hook"}, {"plugin", "list"}, {"channel", "list", "--json"}, {"key", "list"}, {"adapters"}} {
		p.command("", args...)
	}
	saved := filepath.Join(p.dir, "backup")
	p.command("", "backup", saved)
	p.told["a backup"] = p.unpacked(saved)
	p.told["the log"] = p.errs.String() + p.out.String()
	if strings.Contains(p.told["the log"], "request panicked") {
		p.t.Errorf("a request panicked: %s", p.told["the log"])
	}
	return p.told
}

func (p *canaryPit) unpacked(file string) string {
	p.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		p.t.Fatal(err)
	}
	var all strings.Builder
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if strings.Contains(h.Name, ".key") {
			p.t.Errorf("the backup holds %s", h.Name)
		}
		all.WriteString(h.Name)
		if _, err := io.Copy(&all, r); err != nil {
			p.t.Fatal(err)
		}
	}
}

// files are those of the data directory that are no key.
func (p *canaryPit) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.data, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || e.Name() == "admin.key" {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(all[filepath.Join(p.data, "pontoon.db")]) < 4096 {
		p.t.Errorf("found no database among %d files", len(all))
	}
	return all
}

// checkProcesses looks at what everybody, or the same user, can see of the host's
// processes: no argument has a secret, and a child's environment none at all.
func (p *canaryPit) checkProcesses(planted map[string]string) {
	p.t.Helper()
	children := 0
	for pid := range p.processes() {
		dir := "/proc/" + strconv.Itoa(pid)
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			p.t.Errorf("a process is gone: %v", err)
			continue
		}
		shows(p.t, "the arguments of "+strings.ReplaceAll(string(args), "\x00", " "), string(args), planted)
		if pid == p.cmd.Process.Pid {
			continue
		}
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || len(env) == 0 {
			p.t.Errorf("the environment of %s: %d bytes, %v", args, len(env), err)
		}
		children++
		shows(p.t, "the environment of "+strings.ReplaceAll(string(args), "\x00", " "), string(env), planted)
	}
	args, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/cmdline")
	if err != nil || children == 0 {
		p.t.Fatalf("found %d children, %v", children, err)
	}
	shows(p.t, "the host's arguments", string(args), planted)
}

// wrongKeys start the host with keys that are none.
func (p *canaryPit) wrongKeys(planted map[string]string) {
	p.t.Helper()
	cert, key := certificate(p.t)
	pem, err := os.ReadFile(key)
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[string]string{}
	for kind, secret := range planted {
		all[kind] = secret
	}
	all["TLS key"] = lines(string(pem))[1]
	other := strings.Repeat("0ddba1", 10) + "0002"
	all["another master key"] = other
	for _, c := range []struct{ env, args []string }{
		{[]string{secrets.EnvKey + "=" + canaries["master key that is wrong"]}, nil},
		{[]string{secrets.EnvKey + "=" + other}, nil},
		{nil, nil},
		{nil, []string{"--master-key-file", key}},
		{[]string{secrets.EnvKey + "=" + canaries["master key"]}, []string{"--tls-cert", key, "--tls-key", key}},
		{[]string{secrets.EnvKey + "=" + canaries["master key"]}, []string{"--tls-cert", cert, "--tls-key", cert}},
	} {
		r := runCommand(p.t, c.env, "", append([]string{"serve", "--data", p.data, "--listen", "127.0.0.1:0"}, c.args...)...)
		if r.code == 0 {
			p.t.Errorf("%v: started", c.args)
		}
		shows(p.t, "what a refused start says", r.out+r.err, all)
	}
	env := []string{"PONTOON_DATA=" + p.data, secrets.EnvKey + "=" + canaries["master key"]}
	for _, c := range [][]string{{secrets.EnvNewKey + "=" + canaries["master key that is wrong"]}, {secrets.EnvNewKey + "=" + other}} {
		r := runCommand(p.t, append(env, c...), "", "secret", "rotate-key")
		shows(p.t, "rotate-key", r.out+r.err, all)
	}
	for where, text := range p.files() {
		shows(p.t, where, text, all)
	}
	h := startHost(p.t, "--verbose", "--tls-cert", cert, "--tls-key", key)
	made, err := os.ReadFile(filepath.Join(h.data, "master.key"))
	if err != nil {
		p.t.Fatal(err)
	}
	all["master key that was made"] = strings.TrimSpace(string(made))
	h.stop()
	shows(p.t, "the log of a host with TLS", h.errs.String()+h.out.String(), all)
}
