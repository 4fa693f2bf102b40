package netguard

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestParseProxies(t *testing.T) {
	p, err := ParseProxies([]string{"127.0.0.1", "::1", "10.1.2.3/8", "2001:db8::/32", "::ffff:192.0.2.0/120"})
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.2": false, "::1": true, "10.255.0.1": true, "11.0.0.1": false, "2001:db8:1::1": true, "2001:db9::1": false,
		"192.0.2.77": true, "192.0.3.1": false,
	} {
		if got := p.Trusts(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: %v, expected %v", a, got, want)
		}
	}
	for _, bad := range []string{"", "proxy", "10.0.0.0/33", "127.0.0.1:80", "fe80::1%eth0", "0.0.0.0/0", "::/0", "::ffff:0:0/90", "*"} {
		if _, err := ParseProxies([]string{"127.0.0.1", bad}); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestClient(t *testing.T) {
	proxies, err := ParseProxies([]string{"127.0.0.1", "10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		peer    string
		headers string // lines
		remote  string
		secure  bool
		local   bool
	}{
		"alone":                {"192.0.2.1:5", "", "192.0.2.1:5", false, false},
		"forged":               {"192.0.2.1:5", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https\nForwarded: for=198.51.100.1;proto=https", "192.0.2.1:5", false, false},
		"this machine":         {"127.0.0.1:5", "", "127.0.0.1:5", false, true},
		"forged loopback":      {"192.0.2.1:5", "X-Forwarded-For: 127.0.0.1", "192.0.2.1:5", false, false},
		"untrusted, near":      {"127.0.0.2:5", "X-Forwarded-For: 198.51.100.1", "127.0.0.2:5", false, false},
		"untrusted, by via":    {"127.0.0.2:5", "Via: 1.1 proxy", "127.0.0.2:5", false, false},
		"by a proxy":           {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1", "198.51.100.1", false, false},
		"by TLS":               {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https", "198.51.100.1", true, false},
		"by TLS, any case":     {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: HTTPS", "198.51.100.1", true, false},
		"proto of the last":    {"127.0.0.1:5", "X-Forwarded-Proto: https, http", "127.0.0.1:5", false, false},
		"what it sent itself":  {"127.0.0.1:5", "X-Forwarded-For: 203.0.113.9, 198.51.100.1", "198.51.100.1", false, false},
		"over two":             {"127.0.0.1:5", "X-Forwarded-For: 203.0.113.9, 198.51.100.1, 10.0.0.7", "198.51.100.1", false, false},
		"in lines":             {"127.0.0.1:5", "X-Forwarded-For: 203.0.113.9\nX-Forwarded-For: 198.51.100.1 ,10.0.0.7", "198.51.100.1", false, false},
		"proxies alone":        {"127.0.0.1:5", "X-Forwarded-For: 10.0.0.8, 10.0.0.7", "10.0.0.8", false, false},
		"claims to be local":   {"127.0.0.1:5", "X-Forwarded-For: 127.0.0.1", "127.0.0.1:5", false, false},
		"with a port":          {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1:4711", "198.51.100.1", false, false},
		"IPv6":                 {"127.0.0.1:5", "X-Forwarded-For: 2001:db8::1", "2001:db8::1", false, false},
		"IPv6 with a port":     {"127.0.0.1:5", "X-Forwarded-For: [2001:db8::1]:4711", "2001:db8::1", false, false},
		"mapped":               {"[::ffff:127.0.0.1]:5", "X-Forwarded-For: ::ffff:198.51.100.1", "198.51.100.1", false, false},
		"no address":           {"127.0.0.1:5", "X-Forwarded-For: <script>", "127.0.0.1:5", false, false},
		"no address before":    {"127.0.0.1:5", "X-Forwarded-For: unknown, 10.0.0.7", "10.0.0.7", false, false},
		"empty":                {"127.0.0.1:5", "X-Forwarded-For: ", "127.0.0.1:5", false, false},
		"forwarded":            {"127.0.0.1:5", `Forwarded: for=203.0.113.9, for="198.51.100.1:80";proto=https;by=10.0.0.7`, "198.51.100.1", true, false},
		"forwarded, IPv6":      {"127.0.0.1:5", `Forwarded: For="[2001:db8::1]:4711"`, "2001:db8::1", false, false},
		"forwarded, over two":  {"127.0.0.1:5", "Forwarded: for=198.51.100.1;proto=http\nForwarded: for=10.0.0.7;proto=https", "198.51.100.1", true, false},
		"forwarded, hidden":    {"127.0.0.1:5", "Forwarded: for=_secret", "127.0.0.1:5", false, false},
		"forwarded, malformed": {"127.0.0.1:5", `Forwarded: for="198.51.100.1`, "127.0.0.1:5", false, false},
		"both, alike":          {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: https\nForwarded: for=198.51.100.1;proto=https", "198.51.100.1", true, false},
		"one of them forged":   {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1\nForwarded: for=203.0.113.9;proto=https", "127.0.0.1:5", true, false},
		"proto forged":         {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-Proto: http\nForwarded: proto=https;for=198.51.100.1", "198.51.100.1", false, false},
		"many":                 {"127.0.0.1:5", "X-Forwarded-For: 198.51.100.1" + strings.Repeat(", 10.0.0.7", 100), "10.0.0.7", false, false},
	} {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.RemoteAddr = c.peer
		for line := range strings.SplitSeq(c.headers, "\n") {
			if k, v, ok := strings.Cut(line, ": "); ok {
				r.Header.Add(k, v)
			}
		}
		var got client
		var secure, local bool
		New(Options{Proxies: proxies}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got, secure, local = client{remote: r.RemoteAddr}, Secure(r), Local(r)
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got.remote != c.remote || secure != c.secure || local != c.local {
			t.Errorf("%s: %q secure %v local %v, expected %q %v %v", name, got.remote, secure, local, c.remote, c.secure, c.local)
		}
	}
	r := httptest.NewRequest("GET", "https://h/", nil)
	r.RemoteAddr = "127.0.0.1:5"
	if !Secure(r) || !Local(r) {
		t.Error("a request that came by no edge is not looked at")
	}
}

// FuzzClient: whatever headers say, who is found is the peer or an address that
// was in them, and without a trusted proxy the peer.
func FuzzClient(f *testing.F) {
	for _, s := range []string{
		"198.51.100.1", "203.0.113.9, 198.51.100.1:80", `for=1.2.3.4;proto=https`, `for="[2001:db8::1]:80", for=unknown;by="\"x\\"`, `;;,=`, `for=a;for=b`, "for=\"", ",",
	} {
		f.Add(s, s, "https", true)
	}
	f.Fuzz(func(t *testing.T, xff, forwarded, proto string, trusted bool) {
		peer := "192.0.2.1:5"
		if trusted {
			peer = "127.0.0.1:5"
		}
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {xff}, "Forwarded": {forwarded}, "X-Forwarded-Proto": {proto}}}
		c := Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}.client(r)
		if c.local {
			t.Error("somebody's client is local")
		}
		if c.remote == peer {
			return
		}
		if !trusted {
			t.Fatalf("an untrusted peer is %q", c.remote)
		}
		if nearest := strings.TrimSpace(proto[strings.LastIndexByte(proto, ',')+1:]); c.secure && !strings.EqualFold(nearest, "https") {
			t.Errorf("secure by %q", proto)
		}
		a, err := netip.ParseAddr(c.remote)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			t.Fatalf("%q is no plain address", c.remote)
		}
		nodes, _, ok := parseForwarded(forwarded)
		if !ok || len(nodes) == 0 {
			t.Fatalf("found %q although Forwarded is malformed", c.remote)
		}
	})
}
