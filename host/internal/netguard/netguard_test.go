package netguard

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/transport"
)

// runs serves a handler behind an edge on a real socket.
func runs(t *testing.T, e *Guard, cert *Certificate, h http.HandlerFunc) (address string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := e.Listener(tcp)
	if cert != nil {
		ln = tls.NewListener(ln, cert.Config())
	}
	srv := e.Server(h)
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ln) })
	t.Cleanup(func() {
		_ = srv.Close()
		wg.Wait()
	})
	return tcp.Addr().String()
}

// from opens a connection from an address of this machine.
func from(t *testing.T, local, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}, Timeout: await.Limit}
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(await.Deadline())
	return c
}

// says writes a request and reads the answer's status and body.
func says(c net.Conn, request string) (int, http.Header, string, error) {
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		return 0, nil, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err
}

const hello = "GET /healthz HTTP/1.1\nHost: localhost\n\n"

func okay(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) }

// Everybody but this machine has a bound: connections in all are too few for it,
// one of another address are too many.
func TestConnectionsOfAnAddress(t *testing.T) {
	c := newCrowd(200, 10)
	one, other, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::1")
	for i := range 10 {
		if v := c.enter(one, true); v != welcome {
			t.Fatalf("%d: %d", i, v)
		}
	}
	for i := range beyond {
		if v := c.enter(one, true); v != tooMany {
			t.Fatalf("%d beyond: %d", i, v)
		}
	}
	if v := c.enter(one, true); v != cut {
		t.Errorf("far beyond: %d", v)
	}
	if v := c.enter(other, true); v != welcome {
		t.Errorf("another: %d", v)
	}
	for i := range 10 {
		a := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))
		if v := c.enter(a, true); v != welcome {
			t.Errorf("%s: %d", a, v)
		}
	}
	if v := c.enter(six, true); v != tooMany {
		t.Errorf("a /64: %d", v)
	}
	for c.enter(netip.MustParseAddr("10.0.0.1"), false) == welcome { //nolint:revive // a proxy without a bound fills it
	}
	if v := c.enter(netip.MustParseAddr("192.0.2.3"), true); v != full {
		t.Errorf("full: %d", v)
	}
	if v := c.enter(netip.MustParseAddr("127.0.0.1"), false); v != welcome {
		t.Errorf("this machine when it is full: %d", v)
	}
	for range 10 + beyond {
		c.leave(one)
	}
	c.mu.Lock()
	_, there := c.of[one]
	c.mu.Unlock()
	if there {
		t.Error("who has left is remembered")
	}
}

// Whom a proxy speaks for has a bound too, for requests and for sockets; a socket
// counts until it is closed.
func TestConnectionsBehindProxy(t *testing.T) {
	proxies, err := ParseProxies([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{Proxies: proxies, MaxPerAddress: 3})
	// Each socket that a client got is counted by that client: a handler that counted itself
	// could begin to while the test's end waits already.
	var hosts sync.WaitGroup
	t.Cleanup(hosts.Wait) // after all connections are closed
	address := runs(t, e, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" {
			okay(w, r)
			return
		}
		c, err := transport.Upgrade(w, r)
		if err != nil {
			return
		}
		defer hosts.Done()
		for {
			if _, err := c.Read(); err != nil {
				return
			}
		}
	})
	upgrade := func(client string) (net.Conn, int) {
		c := from(t, "127.0.0.1", address)
		_, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: "+client+
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusSwitchingProtocols {
			hosts.Add(1)
		}
		return c, resp.StatusCode
	}
	var open []net.Conn
	for range 3 {
		c, status := upgrade("198.51.100.1")
		if status != http.StatusSwitchingProtocols {
			t.Fatal(status)
		}
		open = append(open, c)
	}
	if _, status := upgrade("198.51.100.1"); status != http.StatusTooManyRequests {
		t.Errorf("a fourth socket: %d", status)
	}
	if status, h, body, err := says(from(t, "127.0.0.1", address), "GET / HTTP/1.1\nHost: localhost\nX-Forwarded-For: 198.51.100.1\n\n"); status != 429 || h.Get("Retry-After") == "" || !strings.Contains(body, "too many connections") {
		t.Errorf("a request beside them: %d %v %s %v", status, h, body, err)
	}
	if status, _, body, _ := says(from(t, "127.0.0.1", address), "GET / HTTP/1.1\nHost: localhost\nX-Forwarded-For: 198.51.100.2\n\n"); status != 200 || body != "198.51.100.2" {
		t.Errorf("another client: %d %s", status, body)
	}
	_ = open[0].Close()
	eventually(t, "its place is free", func() bool { _, status := upgrade("198.51.100.1"); return status == http.StatusSwitchingProtocols })
	for _, c := range open {
		_ = c.Close()
	}
}

// More connections than there may be: the next are told why, those beyond are cut
// off, and when some go there is room again.
func TestConnectionsInAll(t *testing.T) {
	e := New(Options{MaxConns: 4})
	address := runs(t, e, nil, okay)
	var held []net.Conn
	for range 4 {
		c := from(t, "127.0.0.1", address)
		if status, _, _, err := says(c, hello); status != 200 {
			t.Fatal(status, err)
		}
		held = append(held, c)
	}
	next := from(t, "127.0.0.1", address)
	if status, h, body, err := says(next, hello); status != 503 || h.Get("Retry-After") == "" || !strings.Contains(body, `"status":503`) {
		t.Errorf("%d %v %s %v", status, h, body, err)
	}
	if _, err := next.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
	eventually(t, "it has gone", func() bool { return e.conns.len() == 4 })
	for range beyond {
		from(t, "127.0.0.1", address)
	}
	eventually(t, "they are there", func() bool { return e.conns.len() == 4+beyond })
	if last, err := net.Dial("tcp", address); err == nil { // it may be reset before it is made
		defer func() { _ = last.Close() }()
		_ = last.SetDeadline(await.Deadline())
		if _, _, _, err := says(last, hello); err == nil {
			t.Error("one far beyond is answered")
		}
	}
	for _, c := range held {
		_ = c.Close()
	}
}

// A connection that has used up its time is not written to, and the next request
// on another begins anew; files come whole.
func TestFilesComeWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	want := bytes.Repeat([]byte("0123456789abcdef"), (3*chunk+12345)/16)
	put(t, name, want)
	cert, key := filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "k")
	c, k := pemPair(t, "localhost")
	put(t, cert, c)
	put(t, key, k)
	pair, err := LoadCertificate(cert, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, name) }
	for scheme, address := range map[string]string{"http": runs(t, New(Options{}), nil, serve), "https": runs(t, New(Options{}), pair, serve)} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is the file that is looked at
		for _, span := range []string{"", "bytes=100-100000", "bytes=0-65535", "bytes=0-65536", "bytes=-5"} {
			req, err := http.NewRequest("GET", scheme+"://"+address+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if span != "" {
				req.Header.Set("Range", span)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			part := want
			switch span {
			case "bytes=100-100000":
				part = want[100:100001]
			case "bytes=0-65535":
				part = want[:65536]
			case "bytes=0-65536":
				part = want[:65537]
			case "bytes=-5":
				part = want[len(want)-5:]
			}
			if err != nil || !bytes.Equal(got, part) {
				t.Errorf("%s %s: %d bytes, %v, expected %d", scheme, span, len(got), err, len(part))
			}
			if hsts := resp.Header.Get("Strict-Transport-Security"); (hsts != "") != (scheme == "https") {
				t.Errorf("%s: HSTS %q", scheme, hsts)
			}
		}
		tr.CloseIdleConnections()
	}
}

// Without a name of its own a browser's request does not reach the host.
func TestRebinding(t *testing.T) {
	address := runs(t, New(Options{Names: []string{"bridge.example.org", "Machine"}}), nil, okay)
	for _, c := range []struct {
		host, path, headers string
		status              int
	}{
		{"localhost:8080", "/console/", "", 200},
		{"127.0.0.1:8080", "/console/", "", 200},
		{"[::1]:8080", "/console/", "", 200},
		{"10.1.2.3", "/", "", 200},
		{"bridge.example.org", "/console/", "", 200},
		{"BRIDGE.example.org.:8443", "/console/login", "", 200},
		{"machine:8080", "/", "", 200},
		{"evil.example", "/console/", "", 421},
		{"evil.example", "/console", "", 421},
		{"evil.example", "/", "", 421},
		{"localhost.evil.example", "/console/", "", 421},
		{"127.0.0.1.evil.example", "/console/", "", 421},
		{"bridge.example.org.evil.example", "/console/", "", 421},
		{"", "/console/", "", 421},
		{"evil.example:8080", "/api/v1/events", "Cookie: pontoon=x\n", 421},
		{"evil.example:8080", "/api/v1/channels", "Origin: http://evil.example:8080\n", 421},
		{"evil.example:8080", "/socket.io/?EIO=4&transport=websocket", "Origin: http://evil.example:8080\n", 421},
		{"evil.example:8080", "/api/v1/openapi.json", "Sec-Fetch-Site: same-origin\n", 421},
		{"pontoon:8080", "/healthz", "", 200}, // how another container calls it
		{"pontoon:8080", "/api/v1/channels", "Authorization: Bearer x\n", 200},
		{"pontoon:8080", "/api/v1/channels/bridge/ws", "", 200},
	} {
		status, h, body, err := says(from(t, "127.0.0.1", address), "GET "+c.path+" HTTP/1.1\nHost: "+c.host+"\n"+c.headers+"\n")
		if status != c.status || err != nil {
			t.Errorf("%s %s %q: %d %s %v, expected %d", c.host, c.path, c.headers, status, body, err, c.status)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY", "Strict-Transport-Security": "",
		} {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q, expected %q", c.host, c.path, name, h.Get(name), want)
			}
		}
	}
}
