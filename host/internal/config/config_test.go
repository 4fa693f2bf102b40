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
