package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// visitor is an operator's, without scripts.
type visitor struct {
	*http.Client
	t    *testing.T
	base string
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &visitor{&http.Client{Jar: jar, Timeout: wait, Transport: &http.Transport{}}, t, base}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

// open reads a page; form nil = GET. It returns the status, the path where it
// ended and the text.
func (b *visitor) open(path string, form url.Values) (int, string, string) {
	b.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Test visitor")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, resp.Request.URL.RequestURI(), string(text)
}

// at is open for what must end at a page with a text in it.
func (b *visitor) at(path string, form url.Values, status int, end, want string) string {
	b.t.Helper()
	got, at, text := b.open(path, form)
	if got != status || at != end || !strings.Contains(html.UnescapeString(text), want) {
		b.t.Fatalf("%s: %d at %s, expected %d at %s with %q:\n%s", path, got, at, status, end, want, text)
	}
	return text
}

// setUpPlain sets the operator up by the link that serve printed.
func (h *host) setUpPlain() *visitor {
	h.t.Helper()
	found := setupLink.FindStringSubmatch(h.out.String())
	if found == nil {
		h.t.Fatalf("no setup link in %s", h.out.String())
	}
	b := newVisitor(h.t, h.url)
	path := strings.TrimPrefix(found[1], h.url)
	text := b.at(path, nil, 200, path, "Set up")
	code := regexp.MustCompile(`name="code" value="([^"]+)"`).FindStringSubmatch(text)[1]
	b.at("/console/setup", url.Values{"code": {code}, "name": {"me"}, "password": {operatorPassword}, "again": {operatorPassword}}, 200, "/console/", "You are logged in")
	return b
}

// The first visit, and what follows: account, sessions, keys, the audit log.
func TestOperator(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	file := filepath.Join(h.data, "setup.link")
	link, err := os.ReadFile(file)
	if err != nil || !strings.Contains(h.out.String(), strings.TrimSpace(string(link))) {
		t.Fatalf("the file holds %q, %v", link, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	stranger := newVisitor(t, h.url)
	stranger.at("/console/access?x=1", nil, 200, "/console/login?next=%2Fconsole%2Faccess%3Fx%3D1", "Log in")
	stranger.at("/console/setup", url.Values{"code": {"pnl_wrong"}, "name": {"x"}, "password": {operatorPassword}, "again": {operatorPassword}}, 401, "/console/setup", "opens nothing")
	b := h.setUpPlain()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	b.at("/console/account", nil, 200, "/console/account", "Test visitor")

	other := newVisitor(t, h.url)
	for _, f := range []url.Values{
		{"name": {"me"}, "password": {"wrong"}}, {"name": {"you"}, "password": {operatorPassword}}, {"name": {strings.Repeat("n", 100)}, "password": {operatorPassword}},
	} {
		text := other.at("/console/login", f, 401, "/console/login", "Name or password is wrong.")
		if strings.Contains(text, operatorPassword) {
			t.Error("the page holds the password")
		}
	}
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/\\evil.example", "/console/..//evil.example", "/console/\t", "javascript:alert(1)", "/api/v1/channels"} {
		other.at("/console/login", url.Values{"name": {"me"}, "password": {operatorPassword}, "next": {next}}, 200, "/console/", "Overview")
		other.at("/console/logout", url.Values{}, 200, "/console/login", "Log in")
	}
	other.at("/console/login", url.Values{"name": {"me"}, "password": {operatorPassword}, "next": {"/console/access?a=b"}}, 200, "/console/access?a=b", "New key")

	h.channel("lobby", "")
	b.at("/console/access", url.Values{"name": {"Not a name"}, "scope": {"read"}, "expires": {"24h"}}, 422, "/console/access", "the first a letter")
	text := b.at("/console/access", url.Values{"name": {"viewer"}, "scope": {"read"}, "channel": {"lobby"}, "expires": {"24h"}}, 200, "/console/access", "Shown this once")
	key := regexp.MustCompile(`pnk_[0-9A-Za-z]+`).FindString(text)
	if status, _ := h.as(key, "GET", "/channels/lobby", ""); status != 200 {
		t.Errorf("the new key: %d", status)
	}
	if text := b.at("/console/access", nil, 200, "/console/access", "viewer"); strings.Contains(text, key) || !strings.Contains(text, "/console/channels/lobby") {
		t.Errorf("the list shows the key, or not its channel")
	}
	b.at("/console/access/1/revoke", url.Values{"confirm": {"no"}}, 422, "/console/access/1/revoke", "expected viewer")
	b.at("/console/access/1/revoke", url.Values{"confirm": {"viewer"}}, 200, "/console/access", "is revoked")
	if status, _ := h.as(key, "GET", "/channels/lobby", ""); status != 401 {
		t.Errorf("the revoked key: %d", status)
	}

	b.at("/console/account/password", url.Values{"present": {"wrong"}, "password": {"another horse battery"}, "again": {"another horse battery"}}, 422, "/console/account/password", "is not the present password")
	b.at("/console/account/password", url.Values{"present": {operatorPassword}, "password": {"another horse battery"}, "again": {"another horse battery"}}, 200, "/console/account", "The password is changed")
	other.at("/console/account", nil, 200, "/console/login?ended=1&next=%2Fconsole%2Faccount", "Your session has ended")
	b.at("/console/account/name", url.Values{"name": {"<b>you</b>"}}, 200, "/console/account", "Your name is <b>you</b> now")
	text = b.at("/console/audit?action=operator", nil, 200, "/console/audit?action=operator", "operator.password")
	if strings.Contains(text, "<b>you</b>") || strings.Contains(text, "<code>channel.create") {
		t.Errorf("the page is not escaped, or not filtered:\n%s", text)
	}
	b.at("/console/account/sessions", url.Values{}, 200, "/console/login", "logged out everywhere")
	b.at("/console/", nil, 200, "/console/login", "Log in")

	forgotten := strings.TrimSpace(h.cli("operator", "link"))
	code := forgotten[strings.Index(forgotten, "code=")+5:]
	b.at("/console/setup", url.Values{"code": {code}, "name": {"me"}, "password": {operatorPassword}, "again": {operatorPassword}}, 200, "/console/", "Welcome, me")
	if out := h.cli("operator", "show"); !strings.Contains(out, "me\n") {
		t.Errorf("operator show: %s", out)
	}
	if out := h.out.String() + h.errs.String(); strings.Contains(out, "horse battery") || strings.Contains(out, "pns_") {
		t.Errorf("what the host wrote holds a secret:\n%s", out)
	}
	h.stop()
	h.again()
	if strings.Contains(h.out.String(), "setup?code=") {
		t.Error("a host with an operator prints a setup link")
	}
	holds(t, h.out.String(), "The console is at "+h.url+"/console/")
	b.at("/console/account", nil, 200, "/console/account", "Test visitor") // the session outlives the host
}

// A page of another origin does nothing by the cookie.
func TestOperatorCrossOrigin(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--allow-origin", "http://friend.example")
	b := h.setUpPlain()
	for _, origin := range []string{"http://evil.example", "http://friend.example", "null"} {
		for _, c := range []struct{ method, path string }{{"DELETE", "/api/v1/sessions"}, {"POST", "/console/logout"}, {"POST", "/console/login"}, {"POST", "/api/v1/channels"}} {
			req, err := http.NewRequest(c.method, h.url+c.path, strings.NewReader(`{"name":"evil"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", origin)
			resp, err := b.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s from %s: %s", c.method, c.path, origin, resp.Status)
			}
		}
	}
	b.at("/console/account", nil, 200, "/console/account", "Where you are logged in")
	req, err := http.NewRequest("POST", h.url+"/api/v1/channels", strings.NewReader(`{"name":"friendly"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://friend.example")
	req.Header.Set("Authorization", "Bearer "+h.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("with a key: %s", resp.Status)
	}
}

// The audit log says who, by what, from where, and what became of what; all of it
// comes out in one piece.
func TestAudit(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	b := h.setUpPlain()
	key := h.newKey("gardener", `"scopes":["manage"]`)
	const canary = "canary-canary-canary"
	if status, text := h.as(key, "POST", "/channels", `{"name":"lobby","token":"`+canary+`"}`); status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := h.as(key, "PATCH", "/channels/lobby", `{"queue":true,"agent":"echo"}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"https://agent.example/","secret":"whsec_`+"Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"+`"}}`)
	h.must(nil, "PATCH", "/agents/hook", `{"config":{"url":"https://other.example/","secret":"whsec_`+"b3RoZXItb3RoZXItb3RoZXItb3RoZXIt"+`"}}`)
	b.open("/console/login", url.Values{"name": {"me"}, "password": {canary}})
	newVisitor(t, h.url).open("/console/login", url.Values{"name": {canary}, "password": {canary}})
	for i := range 600 { // more than a page of the export
		h.must(nil, "PATCH", "/channels/lobby", fmt.Sprintf(`{"retention_days":%d}`, i+1))
	}
	type line struct {
		ID                                 int64
		Actor, Via, Remote, Action, Target string
		Detail, Before, After              json.RawMessage
	}
	out := filepath.Join(t.TempDir(), "audit.ndjson")
	h.cli("audit", "--export", out)
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(raw); strings.Contains(s, canary) || strings.Contains(s, "whsec_") || strings.Contains(s, "Y2FuYXJ5") || strings.Contains(s, operatorPassword) {
		t.Error("the audit log holds a secret")
	}
	var all []line
	for s := bufio.NewScanner(strings.NewReader(string(raw))); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		if all = append(all, l); l.ID != int64(len(all)) {
			t.Fatalf("line %d has id %d", len(all), l.ID)
		}
	}
	one := func(action, actor string) line {
		t.Helper()
		for _, l := range all {
			if l.Action == action && l.Actor == actor {
				return l
			}
		}
		t.Fatalf("no %s of %s", action, actor)
		return line{}
	}
	for _, want := range []struct{ action, actor, via, target, before, after, detail string }{
		{"operator.setup", "me", "link", "operator", "null", "null", `{"name":"me"}`},
		{"session.open", "me", "session:1", "1", "null", "null", `{}`},
		{"key.create", "admin", "admin.key", "gardener", "null", "null", ""},
		{"channel.create", "gardener", "key:1", "lobby", "null", "null", ""},
		{"channel.update", "gardener", "key:1", "lobby", `{"queue":false}`, `{"queue":true}`, "{}"},
		{"agent.update", "admin", "admin.key", "hook", "", "", `{"secrets_changed":["secret"]}`},
		{"session.refused", "nobody", "", "operator", "null", "null", "{}"},
	} {
		l := one(want.action, want.actor)
		if l.Via != want.via || l.Target != want.target || l.Remote != "127.0.0.1" || want.before != "" && string(l.Before) != want.before ||
			want.after != "" && string(l.After) != want.after || want.detail != "" && string(l.Detail) != want.detail {
			t.Errorf("%s of %s: %+v (%s, %s, %s)", want.action, want.actor, l, l.Before, l.After, l.Detail)
		}
	}
	if piped := h.cli("audit", "--export", "-", "--actor", "gardener"); strings.Count(piped, "\n") != 2 {
		t.Errorf("to stdout:\n%s", piped)
	}
	if list := h.cli("audit", "--action", "agent", "--since", "1h"); strings.Count(list, "\n") != 3 || !strings.Contains(list, "secrets_changed") {
		t.Errorf("list:\n%s", list)
	}
	if status, _, text := b.open("/api/v1/audit?format=ndjson&action=agent", nil); status != 200 || strings.Count(text, "\n") != 2 {
		t.Errorf("in the browser: %d %s", status, text)
	}
	if r := runCommand(t, h.env(), "", "audit", "--since", "yesterday"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}
