package webchat

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Config is the adapter's part of the operator's configuration, as JSON. README.md explains each field.
type Config struct {
	Listen      string   `json:"listen"`
	Title       string   `json:"title"`
	AllowPublic bool     `json:"allow_public"`
	Hosts       []string `json:"hosts"`
}

const (
	defaultListen = "127.0.0.1:8081"
	defaultTitle  = "Pontoon"
	maxTitle      = 60 // characters: what a phone's header shows in two lines
	maxHosts      = 16
)

// check fills in the defaults. Its error holds every fault, each with the
// field, what was found and what is expected.
func (c *Config) check() error {
	var faults []error
	fault := func(field, found, expected string) {
		faults = append(faults, fmt.Errorf("%s: found %s, expected %s", field, found, expected))
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.Title == "" {
		c.Title = defaultTitle
	}
	if public, ok := reach(c.Listen); !ok {
		fault("listen", strconv.Quote(c.Listen), `"IP:PORT" such as "127.0.0.1:8081"`)
	} else if public && !c.AllowPublic {
		fault("listen", strconv.Quote(c.Listen)+", which other machines can reach",
			`a loopback address such as "127.0.0.1:8081", or "allow_public": true beside it`)
	}
	if n := utf8.RuneCountInString(c.Title); n > maxTitle || strings.ContainsFunc(c.Title, unicode.IsControl) {
		fault("title", fmt.Sprintf("%d characters", n), fmt.Sprintf("at most %d, none of them a control character", maxTitle))
	}
	if len(c.Hosts) > maxHosts {
		fault("hosts", strconv.Itoa(len(c.Hosts))+" names", fmt.Sprintf("at most %d", maxHosts))
	}
	for i, name := range c.Hosts {
		if !validHost(name) {
			fault(fmt.Sprintf("hosts[%d]", i), strconv.Quote(name), `a name as browsers show it, such as "chat.example.org" or "chat.example.org:8443"`)
		}
	}
	return errors.Join(faults...)
}

// reach says whether other machines can reach the address; ok = it is one.
func reach(address string) (public, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return false, false
	}
	switch host {
	case "localhost":
		return false, true
	case "":
		return true, true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !ip.Unmap().IsLoopback(), err == nil
}

// validHost accepts what may stand in a Host header, without scheme and path.
func validHost(name string) bool {
	host, port := splitHost(name)
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && len(host) <= 253 && !strings.ContainsFunc(host, func(r rune) bool {
		return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// splitHost takes a Host header apart; port is "" if it has none.
func splitHost(header string) (host, port string) {
	if h, p, err := net.SplitHostPort(header); err == nil && p != "" {
		return h, p
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]"), ""
}
