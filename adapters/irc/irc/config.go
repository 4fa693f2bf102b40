package irc

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Config is the adapter's part of the operator's configuration, as JSON. README.md explains each field.
type Config struct {
	Server   string `json:"server"`
	Password string `json:"password"`

	TLS         *bool  `json:"tls"` // nil: by the port
	TLSCA       string `json:"tls_ca"`
	TLSCert     string `json:"tls_cert"`
	TLSKey      string `json:"tls_key"`
	TLSInsecure bool   `json:"tls_insecure"`

	Nick     string `json:"nick"`
	User     string `json:"user"`
	RealName string `json:"realname"`

	SASLMechanism string `json:"sasl_mechanism"`
	SASLUser      string `json:"sasl_user"`
	SASLPassword  string `json:"sasl_password"`

	Channels []string `json:"channels"` // "#name" or "#name key"
	Trigger  string   `json:"trigger"`

	Flood    Flood `json:"flood"`
	MaxLines int   `json:"max_lines"`
}

// Flood paces what the adapter says: Burst lines at once, then one each Interval.
type Flood struct {
	Burst    int      `json:"burst"`
	Interval Duration `json:"interval"`
}

// Values of Config.Trigger.
const (
	TriggerMention = "mention"
	TriggerAll     = "all"
)

const (
	saslPlain    = "plain"
	saslExternal = "external"
)

// maxAnswer bounds max_lines × flood.interval. A host waits 60 s for the
// acknowledgement of an answer; this and confirmTimeout stay below it.
const maxAnswer = 40 * time.Second

// overhead is what an answer of max_lines may take beside them: the line that says
// how many were cut, and the ping that confirms them.
const overhead = 2

// Duration is Flood.Interval, which JSON writes as "1.5s".
type Duration time.Duration

// UnmarshalJSON accepts a string with a unit.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("flood.interval: found %s; allowed: a string with a unit, such as \"1.5s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("flood.interval: found %q; allowed: a number with a unit, such as \"1.5s\"", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes it as UnmarshalJSON reads it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// channel is one entry of Config.Channels.
type channel struct{ name, key string }

// settings is a Config that was found to be right, with its defaults filled in.
type settings struct {
	Config
	tls      *tls.Config // nil = plain text
	channels []channel
	interval time.Duration
}

// check fills in the defaults. Its error holds every fault, each with the
// field, what was found (never a secret) and what is allowed.
func (c Config) check() (*settings, error) {
	s := &settings{Config: c}
	s.Nick = orElse(s.Nick, "pontoon")
	s.User = orElse(s.User, "pontoon")
	s.RealName = orElse(s.RealName, "Pontoon bridge")
	s.Trigger = orElse(s.Trigger, TriggerMention)
	if s.SASLMechanism == "" && s.SASLUser != "" {
		s.SASLMechanism = saslPlain
	}
	if s.Flood.Burst == 0 {
		s.Flood.Burst = 5
	}
	if s.Flood.Interval == 0 {
		s.Flood.Interval = Duration(time.Second)
	}
	if s.MaxLines == 0 {
		s.MaxLines = 30
	}
	s.interval = time.Duration(s.Flood.Interval)

	var faults []error
	fault := func(field string, found any, allowed string) {
		faults = append(faults, fmt.Errorf("%s: found %v; allowed: %s", field, found, allowed))
	}
	port := s.checkServer(fault)
	if !validNick(s.Nick) {
		fault("nick", strconv.Quote(s.Nick), "an IRC nick: letters, digits and -_[]\\`^{|}, not starting with a digit or \"-\"")
	}
	if !oneWord(s.User) || strings.ContainsAny(s.User, "@!:") {
		fault("user", strconv.Quote(s.User), "one word without @ ! :")
	}
	if hasControl(s.RealName) || len(s.RealName) > 100 {
		fault("realname", strconv.Quote(s.RealName), "up to 100 bytes without control characters")
	}
	if s.Password != "" && !oneWord(s.Password) {
		fault("password", "(hidden)", "one word, not starting with \":\"")
	}
	s.checkSASL(fault)
	s.checkChannels(fault)
	if s.Trigger != TriggerMention && s.Trigger != TriggerAll {
		fault("trigger", strconv.Quote(s.Trigger), "\"mention\", \"all\"")
	}
	if s.Flood.Burst < 1 || s.Flood.Burst > 100 {
		fault("flood.burst", s.Flood.Burst, "1 to 100")
	}
	if s.interval < time.Millisecond || s.interval > 10*time.Second {
		fault("flood.interval", strconv.Quote(s.interval.String()), "1ms to 10s")
	}
	if s.MaxLines < 1 {
		fault("max_lines", s.MaxLines, "1 or more")
	} else if took := time.Duration(s.MaxLines+overhead) * s.interval; took > maxAnswer {
		fault("max_lines", fmt.Sprintf("%d, which at flood.interval %s takes %s", s.MaxLines, s.interval, took), fmt.Sprintf("what can be said within %s", maxAnswer))
	}
	s.checkTLS(port, fault)
	return s, errors.Join(faults...)
}

type faultFunc func(field string, found any, allowed string)

func (s *settings) checkServer(fault faultFunc) (port string) {
	host, port, err := net.SplitHostPort(s.Server)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || n == 0 || host == "" || hasControl(s.Server) {
		fault("server", strconv.Quote(s.Server), "\"host:port\", such as \"irc.example.net:6697\"")
	}
	return port
}

func (s *settings) checkSASL(fault faultFunc) {
	switch s.SASLMechanism {
	case "":
		if s.SASLPassword != "" {
			fault("sasl_user", "\"\" beside a sasl_password", "the account's name")
		}
	case saslPlain:
		if s.SASLUser == "" || strings.ContainsRune(s.SASLUser, 0) {
			fault("sasl_user", strconv.Quote(s.SASLUser), "the account's name")
		}
		if s.SASLPassword == "" || strings.ContainsRune(s.SASLPassword, 0) {
			fault("sasl_password", "(hidden, or empty)", "the account's password")
		}
	case saslExternal:
		if s.TLSCert == "" {
			fault("tls_cert", "\"\"", "the client certificate that sasl_mechanism \"external\" shows")
		}
	default:
		fault("sasl_mechanism", strconv.Quote(s.SASLMechanism), "\"plain\", \"external\"")
	}
}

func (s *settings) checkChannels(fault faultFunc) {
	for i, entry := range s.Channels {
		field := fmt.Sprintf("channels[%d]", i)
		name, key, _ := strings.Cut(entry, " ")
		key = strings.TrimSpace(key)
		switch {
		case !validChannel(name, defaultChannelTypes+"+!"):
			fault(field, strconv.Quote(name), "\"#name\" or \"#name key\"")
		case key != "" && (!oneWord(key) || strings.Contains(key, ",")):
			fault(field, "a key (hidden)", "a key without spaces and commas")
		case slices.ContainsFunc(s.channels, func(c channel) bool { return casemap("").equal(c.name, name) }):
			fault(field, strconv.Quote(name), "each channel once")
		}
		s.channels = append(s.channels, channel{name, key})
	}
}

func (s *settings) checkTLS(port string, fault faultFunc) {
	on := port == "6697"
	if s.TLS != nil {
		on = *s.TLS
	}
	if !on {
		for field, value := range map[string]string{"tls_ca": s.TLSCA, "tls_cert": s.TLSCert, "tls_key": s.TLSKey} {
			if value != "" {
				fault(field, strconv.Quote(value), "nothing, while tls is off")
			}
		}
		return
	}
	host, _, _ := net.SplitHostPort(s.Server)                                                              // checkServer has reported it
	s.tls = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.TLSInsecure} //nolint:gosec // G402: the operator says so, of one server
	if s.TLSCA != "" {
		s.tls.RootCAs = x509.NewCertPool()
		pem, err := os.ReadFile(s.TLSCA)
		if err != nil || !s.tls.RootCAs.AppendCertsFromPEM(pem) {
			fault("tls_ca", fmt.Sprintf("%q (%v)", s.TLSCA, err), "a readable PEM file with certificates")
		}
	}
	if s.TLSCert != "" || s.TLSKey != "" {
		cert, err := tls.LoadX509KeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			fault("tls_cert, tls_key", fmt.Sprintf("%q, %q (%v)", s.TLSCert, s.TLSKey, err), "readable PEM files of one certificate and its key")
		}
		s.tls.Certificates = []tls.Certificate{cert}
	}
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func hasControl(s string) bool { return strings.IndexFunc(s, unicode.IsControl) >= 0 }

// oneWord says whether s can be a parameter in the middle of a command.
func oneWord(s string) bool {
	return s != "" && s[0] != ':' && !hasControl(s) && !strings.Contains(s, " ")
}
