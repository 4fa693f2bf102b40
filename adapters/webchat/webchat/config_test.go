package webchat

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		fault  string // "" = none
	}{
		"empty":          {Config{}, ""},
		"ipv6":           {Config{Listen: "[::1]:0"}, ""},
		"localhost":      {Config{Listen: "localhost:8081"}, ""},
		"loopbackRange":  {Config{Listen: "127.8.8.8:1"}, ""},
		"mappedLoopback": {Config{Listen: "[::ffff:127.0.0.1]:1"}, ""},
		"everywhere":     {Config{Listen: "0.0.0.0:8081"}, `listen: found "0.0.0.0:8081", which other machines can reach, expected a loopback address`},
		"noAddress":      {Config{Listen: ":8081"}, "which other machines can reach"},
		"ipv6Everywhere": {Config{Listen: "[::]:8081"}, "which other machines can reach"},
		"allowed":        {Config{Listen: "0.0.0.0:8081", AllowPublic: true}, ""},
		"name":           {Config{Listen: "example.org:80", AllowPublic: true}, `listen: found "example.org:80", expected "IP:PORT"`},
		"noPort":         {Config{Listen: "127.0.0.1"}, "listen: found"},
		"bigPort":        {Config{Listen: "127.0.0.1:65536"}, "listen: found"},
		"longTitle":      {Config{Title: strings.Repeat("ü", 61)}, "title: found 61 characters, expected at most 60"},
		"control":        {Config{Title: "a\nb"}, "none of them a control character"},
		"hosts":          {Config{Hosts: []string{"chat.example.org", "x:8443", "[::1]:5", "10.0.0.1"}}, ""},
		"badHost":        {Config{Hosts: []string{"ok", "https://x/"}}, `hosts[1]: found "https://x/", expected a name`},
		"emptyHost":      {Config{Hosts: []string{""}}, `hosts[0]: found ""`},
		"manyHosts":      {Config{Hosts: strings.Fields(strings.Repeat("a ", 17))}, "hosts: found 17 names, expected at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.check()
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("found %v, expected %q", err, c.fault)
			}
			if err == nil && (c.config.Listen == "" || c.config.Title == "") {
				t.Error("a default is missing")
			}
		})
	}
}

// A wrong configuration ends the adapter with what is wrong; a taken port is
// tried again, until it is free.
func TestStart(t *testing.T) {
	h := startHost(t)
	var made struct{ Token string }
	h.must(&made, "POST", "/channels", map[string]any{"name": "web"})
	o := sdk.Options{URL: h.url, Token: made.Token, Log: slog.New(slog.DiscardHandler)}
	for config, fault := range map[string]string{
		`{"listen":"0.0.0.0:0"}`: "which other machines can reach", `{"lisen":"x"}`: `unknown key "lisen"`, `{"title":7}`: `key "title": found number, expected a string`,
	} {
		o.Config = []byte(config)
		if err := sdk.Run(t.Context(), "webchat", New(), o); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: found %v, expected %q", config, err, fault)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := &buffer{}
	o.Config, o.Log = []byte(`{"listen":"`+ln.Addr().String()+`"}`), slog.New(slog.NewTextHandler(log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sdk.Run(ctx, "webchat", New(), o) }()
	eventually(t, "it says who has the port", func() bool { return strings.Contains(log.String(), "another program has this port") })
	platform := func(state string) func() bool { // as the host knows it
		return func() bool {
			var ch struct {
				Health struct{ Platform struct{ State string } }
			}
			h.must(&ch, "GET", "/channels/web", nil)
			return ch.Health.Platform.State == state
		}
	}
	eventually(t, "the host is told that the page is not open", platform("reconnecting"))
	_ = ln.Close()
	eventually(t, "it takes the port", func() bool {
		return strings.Contains(log.String(), "webchat is open at http://"+ln.Addr().String()+"/")
	})
	eventually(t, "the host is told that it is", platform("connected"))
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
