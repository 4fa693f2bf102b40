package safehttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
)

func TestHostileAddresses(t *testing.T) {
	tries, through := 0, 0
	list := Networks{Only: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("169.254.169.254/32"), netip.MustParsePrefix("fd00:1::/32")}}
	for _, c := range []struct {
		addr                string
		none, all, onlyList bool // whether it may be called
	}{
		{"1.1.1.1", true, true, true},
		{"2606:4700:4700::1111", true, true, true},
		{"::ffff:1.1.1.1", true, true, true},
		{"64:ff9b::1.1.1.1", true, true, true},
		{"2002:101:101::1", true, true, true}, // 6to4 of 1.1.1.1
		{"127.0.0.1", false, true, false},
		{"127.255.255.254", false, true, false},
		{"::1", false, true, false},
		{"::ffff:127.0.0.1", false, true, false},
		{"::ffff:10.1.2.3", false, true, true},
		{"10.1.2.3", false, true, true},
		{"10.2.0.1", false, true, false},
		{"172.16.0.1", false, true, false},
		{"172.31.255.255", false, true, false},
		{"172.32.0.1", true, true, true},
		{"192.168.1.1", false, true, false},
		{"100.64.0.1", false, true, false},
		{"100.128.0.1", true, true, true},
		{"fd00:1::5", false, true, true},
		{"fc00::1", false, true, false},
		{"0.0.0.0", false, false, false},
		{"0.1.2.3", false, false, false},
		{"::", false, false, false},
		{"::ffff:0.0.0.0", false, false, false},
		{"::127.0.0.1", false, false, false}, // IPv4-compatible
		{"169.254.169.254", false, false, true},
		{"::ffff:169.254.169.254", false, false, true},
		{"169.254.1.1", false, false, false},
		{"64:ff9b::127.0.0.1", false, false, false},
		{"64:ff9b::169.254.169.254", false, false, false},
		{"64:ff9b:1::1", false, false, false},
		{"2002:7f00:1::1", false, false, false}, // 6to4 of 127.0.0.1
		{"2002:a00:1::", false, false, false},   // 6to4 of 10.0.0.1
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", false, false, false},
		{"2001:db8::1", false, false, false},
		{"fe80::1", false, false, false},
		{"fe80::1%eth0", false, false, false},
		{"fd00:1::5%eth0", false, false, false},
		{"fec0::1", false, false, false},
		{"ff02::1", false, false, false},
		{"224.0.0.1", false, false, false},
		{"255.255.255.255", false, false, false},
		{"240.0.0.1", false, false, false},
		{"192.0.2.1", false, false, false},
		{"198.18.0.1", false, false, false},
		{"100::1", false, false, false},
		{"5f00::1", false, false, false},
	} {
		a := netip.MustParseAddr(c.addr)
		for name, want := range map[string]struct {
			Networks
			ok bool
		}{"none": {Networks{}, c.none}, "all": {Networks{All: true}, c.all}, "list": {list, c.onlyList}} {
			err := want.check(a)
			if !want.ok {
				if tries++; err == nil {
					through++
				}
			}
			var refused *Refused
			if err == nil != want.ok || err != nil && !errors.As(err, &refused) {
				t.Errorf("%s, allowed %s: %v", c.addr, name, err)
			}
		}
	}
	torture.Attack(t, "agents at addresses of this machine and its network (SSRF)", tries, through, "called; also mapped, 6to4, NAT64, Teredo")
}

func TestHostileURLs(t *testing.T) {
	tries, through := 0, 0
	for _, raw := range []string{
		"https://agent.example.org/hook", "http://agent.example.org:8080/?key=1", "https://1.1.1.1/", "https://[2606:4700:4700::1111]:444/", "https://a1.example.org./x",
		"https://0xdead.example.org/",
	} {
		if _, err := (Networks{}).CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for raw, want := range map[string]string{
		"": "found none", "agent": "found the scheme", "ftp://a.example.org/": `found the scheme "ftp"`, "file:///etc/passwd": "found the scheme",
		"gopher://a/": "found the scheme", "https:agent": "found no host", "https:///x": "found no host", "http://:80/": "found no host",
		"https://u:secret@a.example.org/": "found a user or password", "https://u@a.example.org/": "found a user or password",
		"https://a.example.org/#x": "found a fragment", "https://a.example.org:0/": "found port 0", "https://a.example.org:99999/": "found port 99999",
		"https://a.example.org/\x00secret": "found no url", "https://a b/secret": "found no url", "https://%zz/secret": "found no url", strings.Repeat("h", 3000): "found 3000 bytes",
		"http://127.0.0.1/": "loopback", "http://[::1]/": "loopback", "http://[::ffff:127.0.0.1]/": "loopback", "http://[::ffff:7f00:1]/": "loopback",
		"http://[::]/": "unspecified", "http://0.0.0.0/": "unspecified", "http://[fe80::1%25eth0]/": "link-local",
		"http://169.254.169.254/latest/meta-data/": "link-local", "http://10.0.0.1/": "private", "http://100.64.0.1": "carrier's",
		"http://2130706433/": "found the host", "http://0x7f000001/": "found the host", "http://0x7f.0.0.1/": "found the host", "http://0177.0.0.1/": "found the host",
		"http://127.1/": "found the host", "http://127.0.0.1./": "found the host", "http://a.0x7F/": "found the host", "http://0x/": "found the host",
	} {
		_, err := (Networks{}).CheckURL(raw)
		tries++
		if err == nil {
			through++
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", raw, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows it: %v", raw, err)
		}
	}
	torture.Attack(t, "urls of agents that mean this machine, in every spelling (SSRF)", tries, through, "taken")
}

func TestNetworksJSON(t *testing.T) {
	for in, want := range map[string]string{
		`true`: `true`, `false`: `false`, `null`: `false`, `[]`: `false`, `["10.1.0.0/16","fd00::/8"]`: `["10.1.0.0/16","fd00::/8"]`,
	} {
		var n Networks
		if err := json.Unmarshal([]byte(in), &n); err != nil {
			t.Errorf("%s: %v", in, err)
		} else if out, err := json.Marshal(n); err != nil || string(out) != want {
			t.Errorf("%s came back as %s, %v", in, out, err)
		}
	}
	for in, want := range map[string]string{
		`1`: "found 1", `"10.0.0.0/8"`: "expected true, false or a list", `["10.0.0.1"]`: `[0]: found "10.0.0.1"`, `["10.0.0.1/8"]`: "nothing behind its bits",
		`["` + strings.Repeat(`10.0.0.0/8","`, 70) + `10.0.0.0/8"]`: "at most 64",
	} {
		var n Networks
		if err := json.Unmarshal([]byte(in), &n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, expected %q", in, err, want)
		}
	}
}

// do calls the url and closes the answer.
func do(t *testing.T, c *Client, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return err
}

func client(t *testing.T, o Options) *Client {
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

// server counts the requests that reach it.
func server(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, &calls
}

func TestLoopbackOnlyIfAllowed(t *testing.T) {
	s, calls := server(t, nil)
	var refused *Refused
	if err := do(t, client(t, Options{}), s.URL); !errors.As(err, &refused) || calls.Load() != 0 {
		t.Errorf("%v, %d calls", err, calls.Load())
	}
	if err := do(t, client(t, Options{Allow: Networks{All: true}}), s.URL); err != nil {
		t.Error(err)
	}
	only := Networks{Only: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if err := do(t, client(t, Options{Allow: only}), s.URL); err != nil || calls.Load() != 2 {
		t.Errorf("%v, %d calls", err, calls.Load())
	}
}

// The name is public when it is checked, and the host's own machine when it is
// called: the address that is called is what counts.
func TestHostileRebinding(t *testing.T) {
	s, calls := server(t, nil)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resolver, asked := nameserver(t, "127.0.0.1", "::ffff:127.0.0.1", "::1", "64:ff9b::7f00:1", "0.0.0.0", "169.254.169.254")
	c := client(t, Options{Resolver: resolver})
	for range 6 {
		var refused *Refused
		if err := do(t, c, "http://agent.test:"+u.Port()); !errors.As(err, &refused) {
			t.Errorf("%v, expected that the address is refused", err)
		}
	}
	if calls.Load() != 0 || asked.Load() < 6 {
		t.Errorf("%d calls reached the machine, %d questions the resolver", calls.Load(), asked.Load())
	}
	torture.Attack(t, "a name that resolves to this machine once it was checked (rebinding)", int(asked.Load()), int(calls.Load()), "called")
	if err := do(t, client(t, Options{Resolver: resolver, Allow: Networks{All: true}}), "http://agent.test:"+u.Port()); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

// nameserver is a resolver whose answers change: question for question the next
// address, from the first on again.
func nameserver(t *testing.T, addresses ...string) (*net.Resolver, *atomic.Int32) {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	over := make(chan struct{})
	go func() {
		defer close(over)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if out := answerTo(buf[:n], addresses, &asked); out != nil {
				_, _ = pc.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-over })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}, &asked
}

// answerTo answers a question for the address that is due, if that is of the
// family that is asked for.
func answerTo(question []byte, addresses []string, asked *atomic.Int32) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	n := int(asked.Load()) / 2 // each name is asked for twice, for A and AAAA
	asked.Add(1)
	a := netip.MustParseAddr(addresses[n%len(addresses)])
	switch {
	case q.Type == dnsmessage.TypeA && a.Is4():
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: a.As4()}}}
	case q.Type == dnsmessage.TypeAAAA && a.Is6():
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	inner, innerCalls := server(t, nil)
	for _, status := range []int{301, 302, 303, 307, 308} {
		s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, inner.URL+"/inside?token=secret", status)
		})
		err := do(t, client(t, Options{Allow: Networks{All: true}}), s.URL)
		var to *Redirected
		if !errors.As(err, &to) || !strings.Contains(err.Error(), inner.URL+"/inside") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if innerCalls.Load() != 0 {
		t.Errorf("%d redirects were followed", innerCalls.Load())
	}
}

func TestBounds(t *testing.T) {
	all := Options{Allow: Networks{All: true}, Header: 50 * time.Millisecond}
	over := make(chan struct{})
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/late":
			<-over
		case "/headers":
			for range 100 {
				w.Header().Add("X", strings.Repeat("x", 1000))
			}
		}
	})
	defer close(over)
	c := client(t, all)
	for _, path := range []string{"/late?key=secret", "/headers?key=secret"} {
		if err := do(t, c, s.URL+path); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// net/http reads the environment once in a process, so this looks at the setting.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	if client(t, Options{}).http.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy may be used, which would choose the address")
	}
}

func TestTLSOfAStrangerIsRefused(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	if err := do(t, client(t, Options{Allow: Networks{All: true}}), s.URL); err == nil {
		t.Error("an unknown certificate was taken")
	}
	trusted := s.Client().Transport.(*http.Transport).TLSClientConfig
	if err := do(t, client(t, Options{Allow: Networks{All: true}, TLS: trusted}), s.URL); err != nil {
		t.Error(err)
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://a.example.org/", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://u:p@h/#x", "http://127.0.0.1:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := (Networks{}).CheckURL(raw)
		if err != nil {
			return
		}
		if a, aerr := netip.ParseAddr(u.Hostname()); aerr == nil {
			if name, _ := kind(a); name != "" {
				t.Errorf("%q was taken: %s", raw, name)
			}
		}
		if u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Errorf("%q was taken", raw)
		}
	})
}
