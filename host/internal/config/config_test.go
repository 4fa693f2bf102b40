package config

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		Serve
		want string // "" = valid
	}{
		"default":         {Serve{Listen: DefaultListen}, ""},
		"any port":        {Serve{Listen: "127.0.0.1:0"}, ""},
		"ipv6":            {Serve{Listen: "[::1]:80"}, ""},
		"localhost":       {Serve{Listen: "localhost:80"}, ""},
		"no port":         {Serve{Listen: "127.0.0.1"}, "--listen"},
		"bad port":        {Serve{Listen: "127.0.0.1:99999"}, "0 to 65535"},
		"public":          {Serve{Listen: "0.0.0.0:8080"}, "reachable from other machines"},
		"public by name":  {Serve{Listen: ":8080"}, "reachable from other machines"},
		"unspecified":     {Serve{Listen: "[::]:8080"}, "reachable from other machines"},
		"no host":         {Serve{Listen: "[]:8080"}, "reachable from other machines"},
		"one address":     {Serve{Listen: "192.0.2.1:8080"}, "reachable from other machines"},
		"mapped":          {Serve{Listen: "[::ffff:192.0.2.1]:8080"}, "reachable from other machines"},
		"mapped none":     {Serve{Listen: "[::ffff:0.0.0.0]:8080"}, "reachable from other machines"},
		"mapped loopback": {Serve{Listen: "[::ffff:127.0.0.1]:8080"}, ""},
		"in 127/8":        {Serve{Listen: "127.8.9.10:8080"}, ""},
		"short loopback":  {Serve{Listen: "0:8080"}, "reachable from other machines"},
		"link local":      {Serve{Listen: "[fe80::1%lo]:8080"}, "reachable from other machines"},
		"unknown name":    {Serve{Listen: "name.invalid:8080"}, "reachable from other machines"},
		"LOCALHOST":       {Serve{Listen: "LOCALHOST:80"}, ""},
		"proxy":           {Serve{Listen: DefaultListen, TrustedProxy: []string{"127.0.0.1", "10.0.0.0/8"}}, ""},
		"bad proxy":       {Serve{Listen: DefaultListen, TrustedProxy: []string{"127.0.0.1", "proxy"}}, "--trusted-proxy: found \"proxy\""},
		"proxy anybody":   {Serve{Listen: DefaultListen, TrustedProxy: []string{"0.0.0.0/0"}}, "everybody"},
		"connections":     {Serve{Listen: DefaultListen, MaxConns: -1}, "--max-connections"},
		"public, told so": {Serve{Listen: ":8080", AllowPlainPublic: true}, ""},
		"half a pair":     {Serve{Listen: DefaultListen, TLSCert: "x"}, "expected both"},
		"no such cert":    {Serve{Listen: DefaultListen, TLSCert: "/nowhere/c", TLSKey: "/nowhere/k"}, "no such file"},
		"bad url":         {Serve{Listen: DefaultListen, PublicURL: "example.org"}, "--public-url"},
		"some storage":    {Serve{Listen: DefaultListen, MaxStorage: "10GiB"}, ""},
		"any storage":     {Serve{Listen: DefaultListen, MaxStorage: "0"}, ""},
		"little storage":  {Serve{Listen: DefaultListen, MaxStorage: "1MiB"}, "--max-storage: found \"1MiB\", expected 0 or a size from 16MiB"},
		"bad storage":     {Serve{Listen: DefaultListen, MaxStorage: "much"}, "--max-storage"},
		"bad origin":      {Serve{Listen: DefaultListen, AllowOrigin: []string{"*"}}, "--allow-origin"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
