// Package config turns flags and environment into what the host runs with, and
// refuses what would be unsafe or could not work.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

// DefaultListen is loopback: nobody else reaches a host that was not told so.
const DefaultListen = "127.0.0.1:8080"

// DefaultPlugins is read if it is there.
const DefaultPlugins = "plugins.yaml"

// Serve is what `pontoon serve` runs with.
type Serve struct {
	Listen           string
	Data             string
	PublicURL        string   // where others reach the host; "" = where it listens
	AllowOrigin      []string // that browsers may call from
	TLSCert, TLSKey  string
	AllowPlainPublic bool     // a public address without TLS
	TrustedProxy     []string // addresses and networks of proxies whose word on who a client is counts
	MaxConns         int      // connections in all; 0 = netguard.DefaultMaxConns
	MaxConnsEach     int      // of one address; 0 = netguard.DefaultMaxPerAddress
	NoQueryToken     bool     // adapters may not bring their token in the url
	NoFrames         bool     // the last frames of adapters are not kept in memory
	Verbose          bool
	Plugins          string         // file of the adapters that the host runs
	PluginsNamed     bool           // somebody said so: then it must be there
	RequireChecksums bool           // every plugin must be pinned
	NoShim           bool           // run plugins as on systems other than Linux
	BridleSecret     string         // that tokens of Bridle's browsers are signed with; "" = none is let in
	BridleAPIKey     string         // that opens any agent of kind bridle; "" = none does
	MasterKey        secrets.Source // of the key that secrets are sealed with
	MetricsListen    string         // loopback address where metrics are shown without a key; "" = none
	Files            []string       // directories whose files may be sent by their paths; none = no file may
	MaxStorage       string         // size of database and attachments from which on the oldest messages go; 0 or "" = any
}

// MaxRetentionDays bounds how long a channel's messages are kept, other than for
// ever: a hundred years.
const MaxRetentionDays = 36_500

// MinStorage is the smallest limit that leaves room for anything.
const MinStorage = 16 << 20

// StorageLimit is MaxStorage in bytes; 0 = any.
func (c *Serve) StorageLimit() (int64, error) {
	if c.MaxStorage == "" || c.MaxStorage == "0" {
		return 0, nil
	}
	if n, ok := parseSize(c.MaxStorage); ok && n >= MinStorage {
		return n, nil
	}
	return 0, fmt.Errorf("--max-storage: found %.40q, expected 0 or a size from 16MiB to 1024GiB: bytes, or a whole number with KiB, MiB, GiB, KB, MB or GB", c.MaxStorage)
}

// Validate names the first setting that is wrong, what was found and what is
// expected.
func (c *Serve) Validate() error {
	host, err := checkAddress("--listen", c.Listen, DefaultListen)
	if err != nil {
		return err
	}
	if c.MetricsListen != "" {
		shown, err := checkAddress("--metrics-listen", c.MetricsListen, "127.0.0.1:9464")
		if err != nil {
			return err
		}
		if !isLoopback(shown) {
			return fmt.Errorf("--metrics-listen %s is reachable from other machines, and asks for no key: take a loopback address, or let them read /metrics with a key", c.MetricsListen)
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key: found one, expected both or none")
	}
	for flag, file := range map[string]string{"--tls-cert": c.TLSCert, "--tls-key": c.TLSKey} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	if !isLoopback(host) {
		if err := c.CheckReach(c.Listen); err != nil {
			return err
		}
	}
	if err := checkURL("--public-url", c.PublicURL); err != nil {
		return err
	}
	for _, o := range c.AllowOrigin {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			return fmt.Errorf("--allow-origin: found %q, expected SCHEME://HOST[:PORT]", o)
		}
	}
	if _, err := netguard.ParseProxies(c.TrustedProxy); err != nil {
		return fmt.Errorf("--trusted-proxy: %w", err)
	}
	for flag, n := range map[string]int{"--max-connections": c.MaxConns, "--max-connections-per-address": c.MaxConnsEach} {
		if n < 0 || n > maxConns {
			return fmt.Errorf("%s: found %d, expected 1 to %d", flag, n, maxConns)
		}
	}
	if _, err := c.StorageLimit(); err != nil {
		return err
	}
	for _, dir := range c.Files {
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("--files: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--files: found %q, which is no directory, expected one", dir)
		}
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	return nil
}

// maxConns is more than one machine serves.
const maxConns = 1_000_000

// CheckReach says why the host may not listen on an address that is not this
// machine's alone.
func (c *Serve) CheckReach(address string) error {
	if c.TLSCert != "" || c.AllowPlainPublic {
		return nil
	}
	return fmt.Errorf("--listen %s is reachable from other machines: give --tls-cert and --tls-key, or --allow-plain-public if something in front of it does TLS", address)
}

// checkAddress returns the host of an address to listen on.
func checkAddress(flag, address, such string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%s: found %q, expected HOST:PORT such as %s", flag, address, such)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || port == "" || n == 0 && port != "0" {
		return "", fmt.Errorf("%s: found port %q, expected a number from 0 to 65535", flag, port)
	}
	return host, nil
}

func checkURL(flag, s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s: found %q, expected http(s)://HOST[:PORT][/PATH]", flag, s)
	}
	return nil
}

// isLoopback reports what reaches this machine alone. A name must stand for
// nothing else; what it stands for when the host listens is checked again.
func isLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	if host == "" {
		return false
	}
	found, err := net.LookupIP(host)
	return err == nil && len(found) > 0 && !slices.ContainsFunc(found, func(ip net.IP) bool { return !ip.IsLoopback() })
}
