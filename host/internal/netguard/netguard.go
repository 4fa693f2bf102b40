// Package netguard is what stands between the network and the host's surfaces: TLS,
// who a client is behind proxies, limits on connections, on slow clients and on
// failed authentications, and the headers of every answer. It knows nothing of
// what the surfaces do.
package netguard

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Options of a guard. Zero values are the defaults.
type Options struct {
	Proxies       Proxies
	MaxConns      int                         // connections in all …
	MaxPerAddress int                         // … and of one address that is neither this machine's nor a trusted proxy's, or of one that such a proxy names
	Names         []string                    // of the host, as browsers may call it, beside localhost and addresses
	HostAlways    bool                        // the Host header counts whoever asks: for what is shown without a key
	MaxBody       func(r *http.Request) int64 // bytes; nil = DefaultMaxBody
	Log           *slog.Logger
}

// DefaultMaxBody bounds the body of a request unless Options say otherwise.
const DefaultMaxBody = 1 << 20

// Guard is what stands there: Listener and Server belong together.
type Guard struct {
	Options
	conns   *crowd // connections
	clients *crowd // requests and sockets of whom proxies speak for

	patience time.Duration // patience, but in tests

	mu      sync.Mutex // guards what follows
	toldAt  time.Time  // that connections are refused
	ignored bool       // it was told that a proxy is not trusted
}

// New makes a guard.
func New(o Options) *Guard {
	o.MaxConns, o.MaxPerAddress = cmp.Or(o.MaxConns, DefaultMaxConns), cmp.Or(o.MaxPerAddress, DefaultMaxPerAddress)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody == nil {
		o.MaxBody = func(*http.Request) int64 { return DefaultMaxBody }
	}
	return &Guard{Options: o, conns: newCrowd(o.MaxConns, o.MaxPerAddress), clients: newCrowd(o.MaxConns, o.MaxPerAddress), patience: patience}
}

// Listener bounds the connections of a TCP listener. TLS goes on top of it.
func (g *Guard) Listener(ln net.Listener) net.Listener { return &listener{ln, g} }

type connKey struct{}

// Server makes the server of what Listener accepts.
func (g *Guard) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           g.Handler(h),
		ReadHeaderTimeout: 10 * time.Second, // and for the TLS handshake
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(g.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, connOf(c))
		},
		ConnState: func(c net.Conn, s http.ConnState) {
			if own := connOf(c); own != nil && s == http.StateHijacked {
				own.hijacked.Store(true)
			}
		},
	}
}

// Handler puts the guard before a handler: whoever is not refused here reaches it
// with the client's address as RemoteAddr.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, _ := r.Context().Value(connKey{}).(*conn)
		v := welcome
		if own != nil {
			own.again()
			v = own.verdict
		}
		c := g.Proxies.client(r)
		if c.ignored {
			g.tellIgnored(r)
		}
		r = withClient(r, c)
		headers(w.Header(), r)
		if v == welcome && c.forwarded {
			a := Host(c.remote)
			if v = g.clients.enter(a, true); v != cut {
				defer g.leave(own, a)
			}
		}
		switch {
		case v != welcome:
			g.refuseCrowd(w, v)
		case !g.hostFits(r):
			refuse(w, http.StatusMisdirectedRequest, "Host: found a name that is not this host's, expected localhost, an address, or the name in --public-url: a page of a foreign name may not reach it")
		case !g.bound(w, r): // it has answered
		default:
			next.ServeHTTP(w, r)
			g.done(w, r)
		}
	})
}

// leave counts a client's request as over, or once its socket is closed.
func (g *Guard) leave(own *conn, a netip.Addr) {
	if own != nil && own.hijacked.Load() {
		own.atClose(func() { g.clients.leave(a) })
		return
	}
	g.clients.leave(a)
}

func (g *Guard) refuseCrowd(w http.ResponseWriter, v verdict) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "5")
	if v == full {
		refuse(w, http.StatusServiceUnavailable, "too many connections: try again later")
		return
	}
	refuse(w, http.StatusTooManyRequests, "too many connections from one address: close some, or try again later")
}

// tellEvery is how often the log says that connections are refused.
const tellEvery = time.Minute

func (g *Guard) tellFull(a netip.Addr) {
	g.mu.Lock()
	now := time.Now()
	tell := now.Sub(g.toldAt) >= tellEvery
	if tell {
		g.toldAt = now
	}
	g.mu.Unlock()
	if tell {
		g.Log.Warn("connections cut off: there are too many (told once a minute)", "remote", a.String(), "connections", g.conns.len(),
			"limit", g.MaxConns, "limit_of_an_address", g.MaxPerAddress)
	}
}

// tellIgnored says once that a proxy nearby is not trusted: then all that it
// brings look like one client.
func (g *Guard) tellIgnored(r *http.Request) {
	a := Host(r.RemoteAddr)
	if !a.IsLoopback() && !a.IsPrivate() || r.Header["X-Forwarded-For"] == nil && r.Header["Forwarded"] == nil {
		return
	}
	g.mu.Lock()
	told := g.ignored
	g.ignored = true
	g.mu.Unlock()
	if !told {
		g.Log.Warn("a proxy is not trusted: its clients count as one, and its headers are ignored (if it is yours: --trusted-proxy)", "proxy", a.String())
	}
}

// hostFits reports whether the request calls the host by a name of its own,
// where that matters: a page of another name could be made to resolve to the host
// (DNS rebinding), and would then be of its origin. It matters where a browser asks,
// or might where no key is needed, and TLS has not proved the name. Addresses can't be made to resolve to
// anything else.
func (g *Guard) hostFits(r *http.Request) bool {
	_, origin := r.Header["Origin"]
	_, cookie := r.Header["Cookie"]
	_, fetch := r.Header["Sec-Fetch-Site"]
	if !g.HostAlways && !origin && !cookie && !fetch && !strings.HasPrefix(r.URL.Path, "/console") && r.URL.Path != "/" || Secure(r) {
		return true
	}
	name := nameOf(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	for _, n := range g.Names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// nameOf is a Host header without its port.
func nameOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// Host is the address in what RemoteAddr says, which has a port or none, without
// a zone. The zero address: there is none.
func Host(remote string) netip.Addr {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	a, err := netip.ParseAddr(strings.Trim(remote, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// party is whom an address is counted for: who has an IPv6 address has the whole
// /64 of it.
func party(a netip.Addr) netip.Addr {
	if !a.Is6() || a.IsLoopback() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
