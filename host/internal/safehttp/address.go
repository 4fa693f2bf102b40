package safehttp

import (
	"fmt"
	"net/netip"
)

// Refused is the error of an address that may not be called.
type Refused struct {
	Addr netip.Addr
	Kind string // such as "loopback"
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("%s is a %s address, expected a public one (allow_private decides)", r.Addr, r.Kind)
}

// network is a block of addresses that are not on the public internet.
type network struct {
	kind   string
	prefix netip.Prefix
}

// local are the networks that an operator may mean by "private".
var local = []network{
	{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
	{"loopback", netip.MustParsePrefix("::1/128")},
	{"private", netip.MustParsePrefix("10.0.0.0/8")},
	{"private", netip.MustParsePrefix("172.16.0.0/12")},
	{"private", netip.MustParsePrefix("192.168.0.0/16")},
	{"private", netip.MustParsePrefix("fc00::/7")},
	{"carrier's", netip.MustParsePrefix("100.64.0.0/10")},
}

// special are the other networks of the IANA registries of special-purpose
// addresses. Among them are those of the metadata services of clouds, which
// only a prefix in the list of an operator allows.
var special = []network{
	{"unspecified", netip.MustParsePrefix("0.0.0.0/8")},
	{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
	{"reserved", netip.MustParsePrefix("192.0.0.0/24")},
	{"documentation", netip.MustParsePrefix("192.0.2.0/24")},
	{"relay", netip.MustParsePrefix("192.88.99.0/24")},
	{"benchmark", netip.MustParsePrefix("198.18.0.0/15")},
	{"documentation", netip.MustParsePrefix("198.51.100.0/24")},
	{"documentation", netip.MustParsePrefix("203.0.113.0/24")},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
	{"reserved", netip.MustParsePrefix("240.0.0.0/4")},
	{"unspecified", netip.MustParsePrefix("::/128")},
	{"reserved", netip.MustParsePrefix("2001::/23")}, // Teredo among them
	{"documentation", netip.MustParsePrefix("2001:db8::/32")},
	{"documentation", netip.MustParsePrefix("3fff::/20")},
	{"link-local", netip.MustParsePrefix("fe80::/10")},
	{"site-local", netip.MustParsePrefix("fec0::/10")},
	{"multicast", netip.MustParsePrefix("ff00::/8")},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// kind is what the address is if it is not public, else "". ofNeighbours
// reports one that an operator may mean by "private".
func kind(a netip.Addr) (name string, ofNeighbours bool) {
	if a.Zone() != "" {
		return "link-local", false
	}
	a = a.Unmap()
	for _, n := range local {
		if n.prefix.Contains(a) {
			return n.kind, true
		}
	}
	for _, n := range special {
		if n.prefix.Contains(a) {
			return n.kind, false
		}
	}
	if a.Is4() {
		return "", false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return within(b[12:16])
	case sixToFour.Contains(a):
		return within(b[2:6])
	case !globalUnicast.Contains(a):
		return "reserved", false
	}
	return "", false
}

// within is kind of an IPv4 address inside of another one, by way of which
// nobody gets to a network that is not public.
func within(b []byte) (string, bool) {
	inner, _ := netip.AddrFromSlice(b)
	name, _ := kind(inner)
	return name, false
}

// check refuses an address that is not public and not allowed.
func (n Networks) check(a netip.Addr) error {
	name, neighbour := kind(a)
	if name == "" || neighbour && n.All {
		return nil
	}
	if a.Zone() == "" {
		for _, p := range n.Only {
			if p.Contains(a.Unmap()) {
				return nil
			}
		}
	}
	return &Refused{a, name}
}
