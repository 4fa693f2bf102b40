package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/auth"
	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/front/agui"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// network is where the host is reached: its socket, its certificate, and who may come in.
type network struct {
	guard    *netguard.Guard
	failures *netguard.Failures
	cert     *netguard.Certificate // nil = no TLS
	listener net.Listener
	url      string // at which others reach the host
}

// openNetwork opens the socket.
func openNetwork(ctx context.Context, c config.Serve, log *slog.Logger) (*network, error) {
	proxies, err := netguard.ParseProxies(c.TrustedProxy)
	if err != nil {
		return nil, fmt.Errorf("--trusted-proxy: %w", err)
	}
	b := &network{failures: netguard.NewFailures(nil)}
	scheme := "http"
	if c.TLSCert != "" {
		if b.cert, err = netguard.LoadCertificate(c.TLSCert, c.TLSKey, log); err != nil {
			return nil, err
		}
		scheme = "https"
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, err
	}
	address := ln.Addr().String()
	if !netguard.Host(address).IsLoopback() { // a name may have come to stand for something else
		if err := c.CheckReach(address); err != nil {
			_ = ln.Close()
			return nil, err
		}
	}
	named, _, _ := net.SplitHostPort(c.Listen)
	_, port, _ := net.SplitHostPort(address)
	machine, err := os.Hostname()
	if err != nil {
		machine = "127.0.0.1"
	}
	host := strings.Trim(named, "[]")
	if a := netguard.Host(address); host == "" || a.IsUnspecified() {
		host = machine
	}
	if b.url = c.PublicURL; b.url == "" {
		b.url = scheme + "://" + net.JoinHostPort(host, port)
	}
	names := []string{host, machine}
	if u, err := neturl.Parse(b.url); err == nil {
		names = append(names, u.Hostname())
	}
	b.guard = netguard.New(netguard.Options{
		Proxies: proxies, MaxConns: c.MaxConns, MaxPerAddress: c.MaxConnsEach, Names: names, MaxBody: maxBody, Log: log,
	})
	if b.listener = b.guard.Listener(ln); b.cert != nil {
		b.listener = tls.NewListener(b.listener, b.cert.Config())
	}
	return b, nil
}

// maxBody bounds what a request brings, as far as its route does not bound it more.
func maxBody(r *http.Request) int64 {
	switch {
	case strings.HasPrefix(r.URL.Path, attach.SignPath), isUpload(r.URL.Path):
		return attach.DefaultMaxBytes + 1<<20 // and what is around the file
	case r.URL.Path == "/api/v1/agent/run":
		return agui.MaxBody
	}
	return netguard.DefaultMaxBody
}

// isUpload reports the paths that take files as forms: POST /agent/attachments and
// /channels/ID/attachments.
func isUpload(path string) bool {
	rest, ok := strings.CutPrefix(path, "/api/v1/")
	of, isForm := strings.CutSuffix(rest, "/attachments")
	return ok && isForm && (of == "agent" || strings.HasPrefix(of, "channels/"))
}

// links is account.Link for the console. Its answer tells a guesser as much as the API's
// does, so it counts as that: an address with too many guesses sees the form, whatever it
// shows.
func (b *network) links(account *auth.Account) func(ctx context.Context, remote, code string) (opens, operated bool, err error) {
	return func(ctx context.Context, remote, code string) (opens, operated bool, err error) {
		if b.failures.Allow(remote, netguard.Links) > 0 {
			_, operated, err = account.Link(ctx, "")
			return true, operated, err
		}
		if opens, operated, err = account.Link(ctx, code); err == nil && !opens && code != "" {
			b.failures.Failed(remote, netguard.Links, code)
		}
		return opens, operated, err
	}
}

// serve looks after the certificate until ctx ends.
func (b *network) serve(ctx context.Context) error {
	if b.cert == nil {
		return nil
	}
	return b.cert.Serve(ctx)
}

// reload looks at the certificate now.
func (b *network) reload() {
	if b.cert != nil {
		b.cert.Reload(true)
	}
}

// listOr is a list in the environment, separated by commas.
func listOr(name string) []string {
	var out []string
	for s := range strings.SplitSeq(os.Getenv(name), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
