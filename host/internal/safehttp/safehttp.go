// Package safehttp calls urls that somebody else wrote, such as those of agents. It
// reaches public addresses alone unless an operator says otherwise, whatever a
// name resolves to at that moment, and follows nobody anywhere.
package safehttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

const (
	connectTimeout = 10 * time.Second
	maxHeaders     = 64 << 10 // of an answer
)

// Options of a client.
type Options struct {
	Allow  Networks
	Header time.Duration // from the end of the request to the answer's headers; 0 = no bound but the context

	Idle int // most connections that are kept for the next request; 0 = 64

	Resolver *net.Resolver // nil = the system's
	TLS      *tls.Config   // what is trusted; nil = what the system trusts
}

// Client calls urls. Close must be called.
type Client struct {
	allow Networks
	http  http.Client
}

// New makes a client. It uses no proxy, since that would choose the address.
func New(o Options) *Client {
	config := o.TLS.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	dialer := net.Dialer{Timeout: connectTimeout, Resolver: o.Resolver, ControlContext: o.Allow.control}
	return &Client{o.Allow, http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: o.Header, MaxResponseHeaderBytes: maxHeaders, DisableCompression: true,
			MaxIdleConnsPerHost: cmp.Or(o.Idle, 64), IdleConnTimeout: time.Minute,
		},
	}}
}

// control sees the very address that is about to be connected to: nothing can
// change it between this look and the connection.
func (n Networks) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("found the address %q, expected an IP address and a port", address)
	}
	return n.check(to.Addr())
}

// Redirected is the error of an answer that sends the caller elsewhere.
type Redirected struct {
	Status string
	To     string // without its query; "" = nowhere
}

// Error implements error.
func (r *Redirected) Error() string {
	return fmt.Sprintf("answered %s to %.200q: redirects are not followed", r.Status, r.To)
}

// Do calls the request's url. The caller closes the body, and bounds what it
// reads of it. An error never names the url, which may hold a secret.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if _, err := c.allow.CheckURL(r.URL.String()); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		out := &Redirected{Status: resp.Status}
		if to, err := resp.Location(); err == nil {
			out.To = to.Scheme + "://" + to.Host + to.EscapedPath()
		}
		return nil, out
	}
	return resp, nil
}

// Close ends the connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }
