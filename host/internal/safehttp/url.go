package safehttp

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURL bounds a url.
const maxURL = 2048

// CheckURL reads a url that may be called. What its name resolves to is seen
// only when it is called. The error never shows the query, where secrets are.
func (n Networks) CheckURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("found none, expected an http or https url")
	}
	if len(raw) > maxURL {
		return nil, fmt.Errorf("found %d bytes, expected at most %d", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the url
		}
		return nil, fmt.Errorf("found no url: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("found the scheme %.20q, expected http or https", u.Scheme)
	case u.User != nil:
		return nil, errors.New("found a user or password, expected none: put credentials into headers")
	case u.Hostname() == "":
		return nil, errors.New("found no host, expected one")
	case u.Fragment != "":
		return nil, errors.New("found a fragment (#), expected none")
	}
	if p := u.Port(); p != "" {
		if port, err := strconv.ParseUint(p, 10, 16); err != nil || port == 0 {
			return nil, fmt.Errorf("found port %.10s, expected one from 1 to 65535", p)
		}
	}
	return u, n.checkHost(u.Hostname())
}

// checkHost refuses an address that may not be called, and numbers that some
// resolvers take for one, such as 2130706433 or 0x7f.1.
func (n Networks) checkHost(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return n.check(a)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := strings.ToLower(labels[len(labels)-1])
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return fmt.Errorf("found the host %.60q, expected a name or an address such as 192.0.2.1", host)
	}
	return nil
}
