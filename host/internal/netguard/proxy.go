package netguard

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are whose word counts for who a client is.
type Proxies []netip.Prefix

// maxHops bounds what is read of a list of proxies, from its end.
const maxHops = 32

// ParseProxies reads addresses and networks (CIDR). The error names the first
// that is neither.
func ParseProxies(all []string) (Proxies, error) {
	var out Proxies
	for _, s := range all {
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			a = a.Unmap()
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("found %.64q, expected an address such as 192.0.2.1 or a network such as 10.0.0.0/8", s)
		}
		if p.Addr().Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("found %.64q, expected the network of IPv4 addresses as IPv4, such as 10.0.0.0/8", s)
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("found %.64q, which is everybody, expected the addresses of the proxies", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// Trusts reports whether a is one of the proxies.
func (p Proxies) Trusts(a netip.Addr) bool {
	for _, n := range p {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// client is who makes a request.
type client struct {
	remote    string // as RemoteAddr; of who came by a proxy without a port
	secure    bool   // it speaks TLS, with us or with a trusted proxy
	local     bool   // it is on this machine, and came by itself
	forwarded bool   // a trusted proxy speaks for it
	ignored   bool   // somebody speaks for it who is not trusted
}

// client finds out who makes a request: the peer, or if that is a trusted proxy
// whom it names. A proxy that names nobody, or whose headers contradict each
// other, speaks for itself: what a client sent itself must not count because the
// proxy let it pass.
func (p Proxies) client(r *http.Request) client {
	peer := Host(r.RemoteAddr)
	c := client{remote: r.RemoteAddr, secure: r.TLS != nil, local: peer.IsLoopback()}
	for _, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded", "X-Real-Ip", "Via"} {
		if _, there := r.Header[name]; there {
			c.local, c.ignored = false, true
		}
	}
	if !peer.IsValid() || !p.Trusts(peer) {
		return c
	}
	c.ignored = false
	var found []netip.Addr
	var secure []bool
	if lines := r.Header["X-Forwarded-For"]; len(lines) > 0 {
		found = append(found, p.nearest(peer, hops(lines)))
	}
	if lines := r.Header["X-Forwarded-Proto"]; len(lines) > 0 {
		all := hops(lines)
		secure = append(secure, strings.EqualFold(all[len(all)-1], "https"))
	}
	if lines := r.Header["Forwarded"]; len(lines) > 0 {
		nodes, proto, ok := parseForwarded(strings.Join(lines, ","))
		if !ok {
			nodes = []string{"unknown"}
		}
		found = append(found, p.nearest(peer, nodes))
		if proto != "" || !ok {
			secure = append(secure, strings.EqualFold(proto, "https"))
		}
	}
	if n := len(found); n > 0 && found[0] == found[n-1] && found[0] != peer {
		c.remote, c.forwarded = found[0].String(), true
	}
	if n := len(secure); n > 0 {
		c.secure = secure[0] && secure[n-1]
	}
	return c
}

// hops splits a list that may be in several lines.
func hops(lines []string) []string {
	all := strings.Split(strings.Join(lines, ","), ",")
	all = all[max(0, len(all)-maxHops):]
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// nearest is the last of the addresses that is no trusted proxy: what is before it
// anybody may have written. What is no address ends the search at who named it.
func (p Proxies) nearest(peer netip.Addr, addresses []string) netip.Addr {
	for i := len(addresses) - 1; i >= 0; i-- {
		a := Host(addresses[i])
		if !a.IsValid() {
			return peer
		}
		if peer = a; !p.Trusts(a) {
			return a
		}
	}
	return peer
}

// parseForwarded reads what Forwarded says (RFC 7239): the nodes that requests
// came from, nearest last, and the protocol that the last one spoke. false: it is
// malformed.
func parseForwarded(s string) (nodes []string, proto string, ok bool) {
	for {
		node := ""
		proto = ""
		for {
			s = strings.TrimLeft(s, " \t")
			if s == "" || s[0] == ',' || s[0] == ';' { // an empty pair, or the end
				if s != "" && s[0] == ';' {
					s = s[1:]
					continue
				}
				break
			}
			name, value, rest, ok := parsePair(s)
			if !ok {
				return nil, "", false
			}
			s = rest
			switch {
			case strings.EqualFold(name, "for") && node == "":
				node = value
			case strings.EqualFold(name, "proto") && proto == "":
				proto = value
			case strings.EqualFold(name, "for"), strings.EqualFold(name, "proto"):
				return nil, "", false // twice in one element
			}
			s = strings.TrimLeft(s, " \t")
			if s != "" && s[0] != ';' && s[0] != ',' {
				return nil, "", false
			}
		}
		nodes = append(nodes, node)
		if len(nodes) > maxHops {
			nodes = nodes[1:]
		}
		if s == "" {
			return nodes, proto, true
		}
		s = s[1:] // the comma
	}
}

// parsePair reads TOKEN=VALUE at the beginning of s.
func parsePair(s string) (name, value, rest string, ok bool) {
	n := tokenLen(s)
	if n == 0 || n == len(s) || s[n] != '=' {
		return "", "", "", false
	}
	name, s = s[:n], s[n+1:]
	if s == "" || s[0] != '"' {
		n := tokenLen(s)
		return name, s[:n], s[n:], n > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return name, b.String(), s[i+1:], true
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c < ' ' && c != '\t' || c == 0x7f:
			return "", "", "", false
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "", false
}

// tokenLen is how long the token (RFC 9110) is that s begins with.
func tokenLen(s string) int {
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return i
	}
	return len(s)
}

type clientKey struct{}

func withClient(r *http.Request, c client) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), clientKey{}, c))
	r.RemoteAddr = c.remote
	return r
}

// Secure reports whether the client of a request speaks TLS: with the host, or
// with a proxy that is trusted.
func Secure(r *http.Request) bool {
	if c, ok := r.Context().Value(clientKey{}).(client); ok {
		return c.secure
	}
	return r.TLS != nil
}

// Local reports whether the client of a request is a program on this machine
// itself, and not somebody for whom one speaks.
func Local(r *http.Request) bool {
	if c, ok := r.Context().Value(clientKey{}).(client); ok {
		return c.local
	}
	return Proxies(nil).client(r).local
}
