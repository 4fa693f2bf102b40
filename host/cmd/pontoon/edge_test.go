package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/agentwire"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// answered is an answer without its body.
type answered struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// ask makes a request without the host's key and follows nothing. headers are
// pairs.
func (h *host) ask(method, path, body string, headers ...string) (answered, string) {
	h.t.Helper()
	req, err := http.NewRequest(method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		if req.Header.Add(pair[0], pair[1]); pair[0] == "Host" {
			req.Host = pair[1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		h.t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		h.t.Fatal(err)
	}
	return answered{resp.StatusCode, resp.Status, resp.Header}, string(b)
}

// register shows a token in the frame and returns the answer's error, and the
// code that the connection is closed with if there is one.
func (h *host) register(token string, headers http.Header) (refused string, code int) {
	h.t.Helper()
	p := h.dial("", headers)
	defer func() { _ = p.conn.Close() }()
	p.send(frame{"type": "register", "platform": "test", "token": token})
	ack := p.next("register_ack")
	if ack["ok"] == true {
		return "", 0
	}
	for range p.frames { //nolint:revive // until it is closed
	}
	return ack["error"].(string), p.code
}

func behalf(address string) http.Header { return http.Header{"X-Forwarded-For": {address}} }

// Whoever guesses tokens or keys is not looked at any more after some; others are,
// and what is wrong can't be told from the answer.
func TestEdgeGuessing(t *testing.T) {
	t.Parallel()
	h := startHost(t, "--trusted-proxy", "127.0.0.1")
	good := h.channel("c", "")
	for i := range 30 {
		if refused, code := h.register(fmt.Sprintf("pnt_wrong-wrong-wrong-%d", i), behalf("198.51.100.1")); refused != wire.RefusedInvalidToken || code != int(wire.CloseRefused) {
			t.Fatalf("guess %d: %q, %d", i, refused, code)
		}
	}
	for _, token := range []string{"pnt_another-wrong-wrong", good} {
		if refused, code := h.register(token, behalf("198.51.100.1")); refused != wire.RefusedInvalidToken || code != int(wire.CloseRefused) {
			t.Errorf("after them: %q, %d, expected the same answer", refused, code)
		}
	}
	if refused, _ := h.register(good, behalf("198.51.100.2")); refused != "" {
		t.Errorf("another address: %s", refused)
	}
	// An adapter whose token was revoked knocks on without taking its neighbours along.
	for range 50 {
		if refused, _ := h.register("pnt_revoked-revoked-revoked", behalf("198.51.100.3")); refused == "" {
			t.Fatal("it is let in")
		}
	}
	if refused, _ := h.register(good, behalf("198.51.100.3")); refused != "" {
		t.Errorf("beside an adapter with an old token: %s", refused)
	}

	// Keys of the API: another door, a bucket of its own.
	for i := range 30 {
		if resp, body := h.ask("GET", "/api/v1/channels", "", "Authorization", fmt.Sprintf("Bearer pnk_wrong%d", i), "X-Forwarded-For", "198.51.100.1"); resp.StatusCode != 401 {
			t.Fatalf("guess %d: %s %s", i, resp.Status, body)
		}
	}
	for _, path := range []string{"/api/v1/channels", "/api/v1/events", "/api/v1/agent/run"} {
		method := "GET"
		if strings.HasSuffix(path, "run") {
			method = "POST"
		}
		for _, key := range []string{"pnk_wrong-again", h.key} {
			resp, body := h.ask(method, path, "", "Authorization", "Bearer "+key, "X-Forwarded-For", "198.51.100.1")
			var p struct {
				Status int
				Detail string
			}
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || json.Unmarshal([]byte(body), &p) != nil || p.Status != 429 || p.Detail == "" || strings.Contains(body, key) {
				t.Errorf("%s: %s %v %s", path, resp.Status, resp.Header, body)
			}
		}
	}
	if resp, body := h.ask("GET", "/api/v1/channels", "", "Authorization", "Bearer "+h.key, "X-Forwarded-For", "198.51.100.2"); resp.StatusCode != 200 {
		t.Errorf("another address: %s %s", resp.Status, body)
	}
	if status, body := h.request("GET", "/channels", ""); status != 200 {
		t.Errorf("this machine: %d %s", status, body)
	}

	// Agents' keys.
	shows := func(key, address string) string {
		conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.url, "http")+agentwire.Path, behalf(address))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		defer func() { _ = conn.Close() }()
		if err := conn.WriteJSON(frame{"type": "hello", "key": key}); err != nil {
			t.Fatal(err)
		}
		var ack frame
		if err := conn.ReadJSON(&ack); err != nil {
			t.Fatal(err)
		}
		why, _ := ack["error"].(string)
		return why
	}
	var made struct{ Key string }
	h.json(&made, "agent", "create", "helper", "--kind", "websocket")
	for i := range 30 {
		if why := shows(fmt.Sprintf("pna_wrong%d", i), "198.51.100.1"); why != agentwire.RefusedInvalidKey {
			t.Fatalf("guess %d: %q", i, why)
		}
	}
	if why := shows(made.Key, "198.51.100.1"); why != agentwire.RefusedInvalidKey {
		t.Errorf("after them: %q, expected the same answer", why)
	}
	if why := shows(made.Key, "198.51.100.2"); why != "" {
		t.Errorf("another address: %q", why)
	}
}

// Who a client is counts in what operators see, and only if a proxy that is
// trusted says so.
func TestEdgeProxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    string
		args   []string
		remote string
		https  bool
	}{
		"trusted":        {args: []string{"--trusted-proxy", "192.0.2.0/24", "--trusted-proxy", "127.0.0.1"}, remote: "198.51.100.1", https: true},
		"by environment": {env: "PONTOON_TRUSTED_PROXY=192.0.2.1, 127.0.0.0/8", remote: "198.51.100.1", https: true},
		"not trusted":    {remote: "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{t: t, data: t.TempDir() + "/data", args: c.args}
			if c.env != "" {
				h.wrap = []string{"env", c.env}
			}
			h.start("127.0.0.1:0")
			p := h.dial("", http.Header{"X-Bridge-Token": {h.channel("c", "")}, "X-Forwarded-For": {"203.0.113.5, 198.51.100.1"}, "X-Forwarded-Proto": {"https"}})
			p.send(frame{"type": "register"})
			p.next("register_ack")
			var list struct{ Adapters []struct{ Remote string } }
			h.must(&list, "GET", "/adapters", "")
			if len(list.Adapters) != 1 || strings.Split(list.Adapters[0].Remote, ":")[0] != c.remote {
				t.Errorf("adapters %+v, expected %s", list.Adapters, c.remote)
			}
			resp, _ := h.ask("GET", "/healthz", "", "X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https", "Host", "bridge.example.org")
			if hsts := resp.Header.Get("Strict-Transport-Security"); (hsts != "") != c.https {
				t.Errorf("HSTS %q", hsts)
			}
			resp, body := h.ask("POST", "/api/v1/operator/setup", `{"code":"`+h.setupCode()+`","name":"op","password":"a long enough password"}`, "X-Forwarded-For", "198.51.100.1")
			if resp.StatusCode != 201 {
				t.Fatal(resp.Status, body)
			}
			if _, sessions := h.request("GET", "/sessions", ""); !strings.Contains(sessions, `"`+c.remote+`"`) {
				t.Errorf("sessions %s, expected %s", sessions, c.remote)
			}
			if told := strings.Contains(h.errs.String(), "--trusted-proxy"); told != !c.https {
				t.Errorf("the log says of a proxy: %v", told)
			}
		})
	}
}

var setupCode = regexp.MustCompile(`setup\?code=(\S+)`)

// setupCode is that of the link which the host printed.
func (h *host) setupCode() string {
	h.t.Helper()
	found := setupCode.FindStringSubmatch(h.out.String())
	if found == nil {
		h.t.Fatalf("no link in %s", h.out.String())
	}
	return found[1]
}

// A page of another origin gets nothing by the operator's cookie, over sockets
// neither, and nothing at all under a name that is not the host's.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	cookie := h.session()
	if resp, body := h.ask("GET", "/api/v1/channels", "", "Cookie", cookie); resp.StatusCode != 200 {
		t.Fatalf("the session itself: %s %s", resp.Status, body)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.url, "http://"))
	evil := "http://evil.example:" + port
	for _, c := range []struct{ method, path, host, origin, site string }{
		{"POST", "/api/v1/channels", "", evil, "cross-site"},
		{"POST", "/api/v1/channels", "", evil, ""},
		{"POST", "/api/v1/channels", "", "null", ""},
		{"POST", "/api/v1/channels", "", "http://127.0.0.1:1", "same-site"},
		{"GET", "/api/v1/channels", "", "", "cross-site"},
		{"GET", "/api/v1/events", "", evil, "cross-site"},
		{"POST", "/console/login", "", evil, "cross-site"},
		{"POST", "/api/v1/channels", "evil.example:" + port, evil, "same-origin"}, // rebinding
		{"GET", "/api/v1/channels", "evil.example:" + port, "", "same-origin"},
		{"GET", "/console/", "evil.example:" + port, "", ""},
		{"GET", "/", "evil.example:" + port, "", ""},
		{"GET", "/socket.io/?EIO=4&transport=polling", "evil.example:" + port, evil, ""},
		{"GET", "/socket.io/?EIO=4&transport=polling", "", evil, ""},
	} {
		headers := []string{"Cookie", cookie}
		for name, v := range map[string]string{"Host": c.host, "Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if v != "" {
				headers = append(headers, name, v)
			}
		}
		resp, body := h.ask(c.method, c.path, `{"name":"forged"}`, headers...)
		if resp.StatusCode != 401 && resp.StatusCode != 403 && resp.StatusCode != 421 {
			t.Errorf("%+v: %s %s", c, resp.Status, body)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%+v: %v", c, resp.Header)
		}
	}
	// A socket takes no cookie for a credential.
	ws := "ws" + strings.TrimPrefix(h.url, "http")
	for _, origin := range []string{evil, h.url} {
		header := http.Header{"Cookie": {cookie}, "Origin": {origin}}
		p := h.dial("", header)
		p.send(frame{"type": "register"})
		if ack := p.next("register_ack"); ack["error"] != wire.RefusedMissingToken {
			t.Errorf("adapter of %s: %v", origin, ack)
		}
		conn, resp, err := websocket.DefaultDialer.Dial(ws+agentwire.Path, header)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		var ack frame
		if err := conn.WriteJSON(frame{"type": "hello"}); err != nil {
			t.Fatal(err)
		}
		if err := conn.ReadJSON(&ack); err != nil || ack["error"] != agentwire.RefusedMissingKey {
			t.Errorf("agent of %s: %v %v", origin, ack, err)
		}
		_ = conn.Close()
		conn, resp, err = websocket.DefaultDialer.Dial(ws+"/socket.io/?EIO=4&transport=websocket", header)
		if (err == nil) != (origin == h.url) {
			t.Errorf("socket.io of %s: %v", origin, err)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	through := 0
	if _, list := h.request("GET", "/channels", ""); strings.Contains(list, "forged") || t.Failed() {
		through++
		t.Error("a page of another origin got through")
	}
	torture.Attack(t, "pages of other origins: requests, sockets (CSWSH), rebinding", 19, through, "an answer, or a change")
}

// Every surface tells browsers to run, frame and pass on nothing.
func TestEdgeHeaders(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.channel("c", "")
	for _, c := range []struct{ method, path string }{
		{"GET", "/"}, {"GET", "/console/"}, {"GET", "/console/login"}, {"GET", "/console/nowhere"}, {"GET", "/console/static/console.css"}, {"GET", "/healthz"}, {"GET", "/readyz"},
		{"GET", "/metrics"}, {"GET", "/nowhere"}, {"GET", "//evil.example/%2e%2e"}, {"POST", "/healthz"}, {"TRACE", "/"}, {"GET", "/assets/"}, {"GET", "/assets/nothing.svg"},
		{"GET", "/api/v1/openapi.json"}, {"GET", "/api/v1/channels"}, {"GET", "/api/v1/channels/none"}, {"POST", "/api/v1/channels"}, {"GET", "/api/v1/events"},
		{"GET", "/api/v1/schema/message"}, {"GET", "/api/v1/channels/bridge/ws"}, {"GET", agentwire.Path}, {"POST", "/api/v1/agent/run"},
		{"GET", "/storage/v1/object/sign/agent-files/x"}, {"PUT", "/storage/v1/object/sign/agent-files/x?token=x"}, {"GET", "/socket.io/"}, {"GET", "/socket.io/?EIO=4&transport=websocket"},
		{"GET", "/api/agent/health"}, {"GET", "/api/agent/x/transcript"}, {"OPTIONS", "/api/v1/channels"},
	} {
		for _, key := range []string{"", h.key} {
			if key != "" && c.path == "/api/v1/events" {
				continue // does not end
			}
			var headers []string
			if key != "" {
				headers = []string{"Authorization", "Bearer " + key}
			}
			resp, _ := h.ask(c.method, c.path, "", headers...)
			name := c.method + " " + c.path + " " + resp.Status
			policy := resp.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: policy %q", name, policy)
			}
			for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"} {
				if got := resp.Header.Values(header); len(got) != 1 || got[0] != want {
					t.Errorf("%s: %s is %q, expected %q", name, header, got, want)
				}
			}
			if resp.Header.Get("Server") != "" || resp.Header.Get("X-Powered-By") != "" {
				t.Errorf("%s: says what it is: %v", name, resp.Header)
			}
		}
	}
}

// A token in a url reaches no log, also at debug level, and no answer.
func TestEdgeQueryTokens(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-a-token-0123456789"
	for name, args := range map[string][]string{"taken": nil, "refused": {"--no-query-token"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHost(t, append(args, "--verbose")...)
			h.channel("c", `,"token":"`+canary+`"`)
			p := h.dial("?token="+canary, nil)
			p.send(frame{"type": "register", "platform": "test"})
			if ack := p.next("register_ack"); (ack["ok"] == true) != (name == "taken") {
				t.Errorf("register_ack: %v", ack)
			}
			var answers strings.Builder
			wrong := canary + "-wrong"
			for _, path := range []string{
				wire.Path, agentwire.Path, "/api/v1/events", "/api/v1/channels", "/api/v1/channels/none/messages", "/nowhere", "/console/", "/console/login", "//x", "/assets/x", "/metrics",
				"/socket.io/?EIO=4&transport=polling&sid=x", "/socket.io/?EIO=4&transport=websocket", "/api/agent/x/transcript", "/api/v1/channels/%zz",
			} {
				sep := "?"
				if strings.Contains(path, "?") {
					sep = "&"
				}
				query := sep + "token=" + wrong + "&apiKey=" + wrong + "&key=" + wrong
				c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(wait))
				fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path, query)
				b, _ := io.ReadAll(c) // also of what it cuts off
				_ = c.Close()
				if !bytes.Contains(b, []byte("Location:")) { // a redirect tells the client its own url
					answers.Write(b)
				}
			}
			q := h.dial("?token="+wrong, nil)
			q.send(frame{"type": "register"})
			fmt.Fprint(&answers, q.next("register_ack"))
			_, audit := h.request("GET", "/audit", "")
			_, adapters := h.request("GET", "/adapters", "")
			h.stop()
			for where, text := range map[string]string{"log": h.errs.String(), "output": h.out.String(), "answers": answers.String(), "audit": audit, "adapters": adapters} {
				if at := strings.Index(text, "canary"); at >= 0 {
					t.Errorf("%s: %q", where, text[max(0, at-100):min(len(text), at+60)])
				}
			}
		})
	}
}

// Nothing is inflated: a small body can't become a large one.
func TestHostileCompression(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	through := 0
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/channels", "/api/v1/agent/run", "/api/v1/agent/attachments", "/api/agent/x/message", "/socket.io/?EIO=4&transport=polling", "/console/login"} {
		if resp, body := h.ask("POST", path, bomb.String(), "Authorization", "Bearer "+h.key, "Content-Encoding", "gzip", "Content-Type", "application/json"); resp.StatusCode != 415 {
			through++
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	for _, path := range []string{wire.Path, agentwire.Path, "/socket.io/?EIO=4&transport=websocket"} {
		d := websocket.Dialer{EnableCompression: true}
		conn, resp, err := d.Dial("ws"+strings.TrimPrefix(h.url, "http")+path, http.Header{"X-Bridge-Token": {token}})
		if err != nil {
			t.Fatal(path, err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Sec-Websocket-Extensions"); got != "" {
			through++
			t.Errorf("%s: %s", path, got)
		}
		_ = conn.Close()
	}
	torture.Attack(t, "compressed bodies and sockets (bombs)", 9, through, "inflated")
}

// The certificate is replaced while the host runs, and SIGHUP does it at once.
func TestEdgeCertificate(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	h := startHost(t, "--tls-cert", cert, "--tls-key", key)
	before := shownCertificate(t, h)
	otherCert, otherKey := certificate(t)
	for from, to := range map[string]string{otherCert: cert, otherKey: key} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.signal(syscall.SIGHUP)
	eventually(t, "the other certificate", func() bool { return !bytes.Equal(shownCertificate(t, h), before) })
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.signal(syscall.SIGHUP)
	eventually(t, "the log says so", func() bool { return strings.Contains(h.errs.String(), "TLS certificate not replaced") })
	if bytes.Equal(shownCertificate(t, h), before) {
		t.Error("the first certificate is back")
	}
}
