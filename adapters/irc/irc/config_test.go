package irc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // with server given unless the text has one
		`{"server":"irc.example.net"}`:           `server: found "irc.example.net"`,
		`{"server":"h:0"}`:                       `server: found "h:0"`,
		`{"server":":6667"}`:                     `server:`,
		`{"nick":"1robo"}`:                       `nick: found "1robo"`,
		`{"nick":"ro bo"}`:                       `nick:`,
		`{"nick":"#robo"}`:                       `nick:`,
		`{"user":"a b"}`:                         `user:`,
		`{"realname":"a\r\nQUIT"}`:               `realname: found "a\r\nQUIT"`,
		`{"password":"top secret"}`:              `password: found (hidden)`,
		`{"sasl_user":"a"}`:                      `sasl_password:`,
		`{"sasl_password":"top"}`:                `sasl_user:`,
		`{"sasl_mechanism":"scram"}`:             `allowed: "plain", "external"`,
		`{"sasl_mechanism":"external"}`:          `tls_cert:`,
		`{"channels":["#a","#A"]}`:               `channels[1]: found "#A"; allowed: each channel once`,
		`{"channels":["a"]}`:                     `channels[0]: found "a"`,
		`{"channels":["#a,#b"]}`:                 `channels[0]:`,
		`{"channels":["#a top,secret"]}`:         `channels[0]: found a key (hidden)`,
		`{"trigger":"some"}`:                     `trigger: found "some"; allowed: "mention", "all"`,
		`{"flood":{"burst":-1}}`:                 `flood.burst: found -1; allowed: 1 to 100`,
		`{"flood":{"interval":"1h"}}`:            `flood.interval: found "1h0m0s"`,
		`{"flood":{"interval":2}}`:               `flood.interval: found 2; allowed: a string`,
		`{"flood":{"interval":"soon"}}`:          `flood.interval: found "soon"`,
		`{"max_lines":-1}`:                       `max_lines: found -1`,
		`{"max_lines":100}`:                      `max_lines: found 100, which at flood.interval 1s takes 1m42s`,
		`{"tls_ca":"/x"}`:                        `tls_ca: found "/x"; allowed: nothing, while tls is off`,
		`{"tls":true,"tls_ca":"/nonexistent"}`:   `tls_ca: found "/nonexistent"`,
		`{"tls":true,"tls_cert":"/nonexistent"}`: `tls_cert, tls_key:`,
		`{"trigger":"x","nick":"#"}`:             `trigger:`,
	} {
		cfg := Config{Server: "irc.example.net:6667"}
		err := json.Unmarshal([]byte(text), &cfg)
		if err == nil {
			_, err = cfg.check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: shows a secret: %v", text, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	s, err := Config{Server: "irc.example.net:6697", Channels: []string{"#a", "#b  key"}}.check()
	if err != nil {
		t.Fatal(err)
	}
	if s.tls == nil || s.tls.ServerName != "irc.example.net" || s.tls.InsecureSkipVerify || s.Nick != "pontoon" || s.Trigger != TriggerMention ||
		s.interval != time.Second || s.MaxLines != 30 || s.channels[1] != (channel{"#b", "key"}) {
		t.Errorf("got %+v", s)
	}
	if s, _ := (Config{Server: "h:6667"}).check(); s.tls != nil {
		t.Error("TLS on port 6667")
	}
	var again Config // as a host gives back what was marshalled
	if text, err := json.Marshal(s.Config); err != nil || json.Unmarshal(text, &again) != nil || again.Flood != s.Flood {
		t.Errorf("%s does not come back: %v", text, err)
	}
	off := false
	if s, _ := (Config{Server: "h:6697", TLS: &off}).check(); s.tls != nil {
		t.Error("TLS though it is off")
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names casemap
		want  string
	}{{"", "a{|}~é"}, {"rfc1459", "a{|}~é"}, {"strict-rfc1459", "a{|}^é"}, {"ascii", `a[\]^é`}, {"rfc8265", `a[\]^é`}} {
		in := `A[\]^é`
		if got := c.names.fold(in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.names, got, c.want)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\x033red\x03 \x0312,5both\x03,5 \x03123": "red both,5 3",
		"\x04ff0000red\x04 \x0400ff00,ff00ffx":    "red x",
		"a\tb\x00\x7f\x1b[31m":                    "a\tb[31m",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
