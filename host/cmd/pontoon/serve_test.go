package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	_ "modernc.org/sqlite" // the driver

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestServeFirstStart(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	for name, mode := range map[string]os.FileMode{
		"": 0o700 | os.ModeDir, "pontoon.db": 0o600, "pontoon.db-wal": 0o600, "pontoon.db-shm": 0o600, "admin.key": 0o600, "pontoon.lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(h.data, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode() != mode {
			t.Errorf("%q: mode %v, expected %v", name, info.Mode(), mode)
		}
	}
	if out := h.out.String(); !strings.Contains(out, filepath.Join(h.data, "admin.key")) || strings.Contains(out, h.key) {
		t.Errorf("found %q, expected where the key is, but not the key", out)
	}
	if _, port, err := net.SplitHostPort(strings.TrimPrefix(h.url, "http://")); err != nil || port == "0" {
		t.Errorf("url %s, expected the port taken", h.url)
	}
	key := h.key
	h.stop()
	h.again()
	if h.key != key {
		t.Error("the second start made another key")
	}
}

func TestServeTerm(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	token := h.channel("c", "")
	p := h.attach(token)
	p.ask("room", "one", "echo: one")

	// An event stream is open too: it must not hold up the end.
	req, err := http.NewRequest("GET", h.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	events, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = events.Body.Close() }()

	h.stop()
	if log := h.errs.String(); strings.Contains(log, "requests cut off") {
		t.Errorf("the event stream held up the end:\n%s", log)
	}
	p.closed(int(wire.CloseDraining))
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("event stream: %v, expected its end", err)
	}

	h.again()
	p = h.attach(token)
	p.ask("room", "two", "echo: two")
	var texts []string
	for _, m := range h.history("c") {
		texts = append(texts, m.Text)
	}
	if got, want := strings.Join(texts, "|"), "echo: two|two|echo: one|one"; got != want {
		t.Errorf("history %s, expected %s", got, want)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	running := startHost(t)
	port := strings.TrimPrefix(running.url, "http://")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("this is no database, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	// dir makes a data directory in which name holds text.
	dir := func(name, text string) string {
		d := t.TempDir()
		if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return d
	}
	newer := startHost(t)
	newer.stop()
	database, err := sql.Open("sqlite", filepath.Join(newer.data, "pontoon.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	short := startHost(t)
	short.stop()
	writeFile(t, filepath.Join(short.data, "admin.key"), "short\n")
	fresh := func() string { return filepath.Join(t.TempDir(), "data") }

	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"errSecondHost":   {[]string{"--data", running.data}, 1, "in use by another host"},
		"errPortTaken":    {[]string{"--data", fresh(), "--listen", port}, 1, "address already in use"},
		"errDataIsFile":   {[]string{"--data", file}, 1, file},
		"errDataNoParent": {[]string{"--data", file + "/below"}, 1, "make data directory"},
		"errDataReadOnly": {[]string{"--data", "/proc/pontoon"}, 1, "make data directory"},
		"errNewerSchema":  {[]string{"--data", newer.data}, 1, "schema 9999"},
		"errCorrupt":      {[]string{"--data", dir("pontoon.db", strings.Repeat("this is no database ", 1000))}, 1, "not a database"},
		"errKeyFile":      {[]string{"--data", short.data}, 1, "admin.key"},
		"errNoDatabase":   {[]string{"--data", dir("admin.key", "short\n")}, 66, "admin.key"},
		"errPublic":       {[]string{"--data", fresh(), "--listen", "0.0.0.0:0"}, 2, "--tls-cert"},
		"errAllAddresses": {[]string{"--data", fresh(), "--listen", ":0"}, 2, "--tls-cert"},
		"errListen":       {[]string{"--data", fresh(), "--listen", "8080"}, 2, "expected HOST:PORT"},
		"errPort":         {[]string{"--data", fresh(), "--listen", "127.0.0.1:70000"}, 2, "--listen"},
		"errHalfTLS":      {[]string{"--data", fresh(), "--tls-cert", file}, 2, "expected both"},
		"errNoCert":       {[]string{"--data", fresh(), "--tls-cert", file + ".no", "--tls-key", file}, 2, "--tls-cert"},
		"errBadCert":      {[]string{"--data", fresh(), "--listen", "127.0.0.1:0", "--tls-cert", file, "--tls-key", file}, 1, "load TLS certificate"},
		"errPublicURL":    {[]string{"--data", fresh(), "--public-url", "bridge.example.org"}, 2, "--public-url"},
		"errOrigin":       {[]string{"--data", fresh(), "--allow-origin", "*"}, 2, "--allow-origin"},
		"errFlag":         {[]string{"--data", fresh(), "--lisen", "x"}, 2, "--lisen"},
		"errArgument":     {[]string{"--data", fresh(), "now"}, 2, "now"},
		"errEscapes":      {[]string{"--data", fresh(), "--\x1b[31mred\nforged"}, 2, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"serve"}, c.args...)
			if !slices.Contains(args, "--listen") { // what listens at the default is nobody's business
				args = append(args, "--listen", "127.0.0.1:0")
			}
			r := runCommand(t, nil, "", args...)
			if r.code != c.code || r.out != "" {
				t.Errorf("exit status %d, expected %d; stdout %q", r.code, c.code, r.out)
			}
			oneLine(t, r.err, c.want)
			if strings.ContainsRune(r.err, '\x1b') {
				t.Errorf("an escape reaches the terminal: %q", r.err)
			}
			if strings.Contains(r.err, "goroutine ") {
				t.Errorf("found a stack: %s", r.err)
			}
		})
	}
}

// What refused one start must not have changed what is there.
func TestServeRefusalKeepsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Repeat("this is no database ", 1000)
	if err := os.WriteFile(filepath.Join(dir, "pontoon.db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runCommand(t, nil, "", "serve", "--data", dir, "--listen", "127.0.0.1:0"); r.code != 1 {
		t.Fatalf("exit status %d, expected 1: %s", r.code, r.err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "pontoon.db")); err != nil || string(b) != text {
		t.Errorf("the file was changed (%v)", err)
	}
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	h := startHost(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(h.url, "https://127.0.0.1:") {
		t.Fatalf("url %s, expected https", h.url)
	}
	pool := x509.NewCertPool()
	b, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatal("no certificate: ", err)
	}
	trust := &tls.Config{RootCAs: pool}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	resp, err := client.Get(h.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", resp.Status)
	}

	env := append(h.env(), "SSL_CERT_FILE="+cert)
	r := runCommand(t, env, "", "channel", "create", "c", "--json")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(r.out), &made); err != nil || r.code != 0 {
		t.Fatalf("channel create: %v %+v", err, r)
	}
	dialer := websocket.Dialer{TLSClientConfig: trust}
	conn, up, err := dialer.Dial("wss"+strings.TrimPrefix(h.url, "https")+wire.Path, http.Header{"X-Bridge-Token": {made.Token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = up.Body.Close()
	defer func() { _ = conn.Close() }()
	var ack frame
	if err := conn.WriteJSON(frame{"type": "register"}); err != nil {
		t.Fatal(err)
	}
	if err := conn.ReadJSON(&ack); err != nil || ack["ok"] != true {
		t.Fatalf("register_ack: %v %v", ack, err)
	}
	// Who does not know the certificate is told so, in one line.
	r = runCommand(t, h.env(), "", "channel", "list")
	if r.code != 1 || r.out != "" {
		t.Errorf("unknown certificate: %+v", r)
	}
	oneLine(t, r.err, "certificate")
}

// certificate makes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pontoon test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestServeOpenPaths(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	for _, c := range []struct {
		method, path, key string
		status            int
		kind              string
	}{
		{"GET", "/healthz", "", 200, "text/plain; charset=utf-8"},
		{"GET", "/readyz", "", 200, "text/plain; charset=utf-8"},
		{"GET", "/api/v1/openapi.json", "", 200, "application/openapi+json"},
		{"GET", "/nowhere", "", 404, "application/problem+json"},
		{"GET", "/api/v1/nowhere", h.key, 404, "application/problem+json"},
		{"GET", "/", "", 303, ""},
		{"GET", "/assets/", "", 404, ""},
		{"GET", "/assets/../admin.key", "", 404, ""},
		{"GET", "/api/v1/channels", "", 401, "application/problem+json"},
		{"GET", "/api/v1/channels", "pnk_wrongwrongwrongwrong", 401, "application/problem+json"},
		{"POST", "/api/v1/channels", "", 401, "application/problem+json"},
		{"GET", "/api/v1/channels/none", "", 401, "application/problem+json"},
		{"GET", "/api/v1/events", "", 401, "application/problem+json"},
		{"GET", "/api/v1/events?key=" + h.key, "", 401, "application/problem+json"},
		{"GET", "/api/v1/channels?key=" + h.key, "", 401, "application/problem+json"},
		{"GET", "/api/v1/channels", h.key, 200, "application/json"},
		{"GET", "/api/v1/channels/_kinds", h.key, 200, "application/json"},
	} {
		req, err := http.NewRequest(c.method, h.url+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			req.Header.Set("Authorization", "Bearer "+c.key)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		name := c.method + " " + c.path
		if resp.StatusCode != c.status && (c.status != 404 || resp.StatusCode != 307) {
			t.Errorf("%s: %s, expected %d: %s", name, resp.Status, c.status, b)
		}
		if got := resp.Header.Get("Content-Type"); c.kind != "" && got != c.kind {
			t.Errorf("%s: content type %q, expected %q", name, got, c.kind)
		}
		if c.kind == "application/problem+json" {
			var p struct {
				Status int
				Title  string
				Detail string
			}
			if err := json.Unmarshal(b, &p); err != nil || p.Status != c.status || p.Title == "" || p.Detail == "" {
				t.Errorf("%s: %s is no problem (%v)", name, b, err)
			}
		}
		if strings.Contains(string(b), h.key) {
			t.Errorf("%s shows the key", name)
		}
	}
}

// shownCertificate is what the host shows, DER.
func shownCertificate(t *testing.T, h *host) []byte {
	t.Helper()
	c, err := tls.Dial("tcp", strings.TrimPrefix(h.url, "https://"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is what is looked at
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	return c.ConnectionState().PeerCertificates[0].Raw
}
