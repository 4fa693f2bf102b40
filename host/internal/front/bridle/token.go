package bridle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	agents "github.com/pontoon-bridge/pontoon/host/internal/agent/bridle"
	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

const (
	minSecret = 32 // bytes, as RFC 7518 has it for HS256
	maxToken  = 8 << 10
	maxClient = 256 // bytes of a clientId
	maxName   = 128

	roleAdmin   = "ADMIN"
	clientAdmin = "admin" // the clientId of all who have the role
)

// user is whom a token is for.
type user struct {
	client string // the clientId
	sub    string
	name   string
	until  time.Time // the token's end
}

// admin reports who speaks for all admins.
func (u *user) admin() bool { return u.client == clientAdmin }

// claims are those of a token that count.
type claims struct {
	jwt.RegisteredClaims
	Name  string          `json:"name"`
	Roles json.RawMessage `json:"roles"` // an array, or one
}

// UnmarshalJSON implements json.Unmarshaler: times are numbers (RFC 7519, 2), which the
// library takes as texts too.
func (c *claims) UnmarshalJSON(b []byte) error {
	type plain claims
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return err
	}
	var times map[string]json.RawMessage
	if err := json.Unmarshal(b, &times); err != nil {
		return err
	}
	for name, raw := range times {
		switch strings.ToLower(name) { // encoding/json takes them in any case
		case "exp", "nbf", "iat":
			if raw[0] == '"' {
				return fmt.Errorf("%s: found a string, expected a number", name)
			}
		}
	}
	return nil
}

var errToken = errors.New("the token is not valid here")

// check reads a browser's token: HS256 with the host's secret, not before its
// time nor after its end, which it must have. The error says nothing of the token.
func (f *Front) check(token string) (user, error) {
	if f.Secret == "" || len(token) > maxToken {
		return user{}, errToken
	}
	var c claims
	p := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithTimeFunc(f.Now), jwt.WithExpirationRequired())
	parsed, err := p.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return []byte(f.Secret), nil })
	if err != nil {
		return user{}, errToken
	}
	if _, critical := parsed.Header["crit"]; critical { // RFC 7515, 4.1.11: we know no extension
		return user{}, errToken
	}
	u := user{client: c.Subject, sub: c.Subject, name: c.Name}
	u.until = c.ExpiresAt.Time
	if len(u.name) > maxName || strings.ContainsFunc(u.name, unicode.IsControl) {
		u.name = ""
	}
	if c.has(roleAdmin) {
		u.client = clientAdmin
		return u, nil
	}
	return u, checkClient(u.client)
}

// checkFrom is check for a token that somebody shows: one who showed too many wrong
// ones must wait, and it is not looked at.
func (f *Front) checkFrom(remote, token string) (u user, wait time.Duration, err error) {
	if wait := f.Failures.Allow(remote, netguard.Browsers); wait > 0 {
		return user{}, wait, nil
	}
	if u, err = f.check(token); errors.Is(err, errToken) {
		f.Failures.Failed(remote, netguard.Browsers, token)
	}
	return u, 0, err
}

// has reports a role.
func (c *claims) has(role string) bool {
	var many []json.RawMessage
	if json.Unmarshal(c.Roles, &many) != nil {
		many = []json.RawMessage{c.Roles}
	}
	return slices.ContainsFunc(many, func(raw json.RawMessage) bool {
		var s string
		return json.Unmarshal(raw, &s) == nil && s == role
	})
}

// checkClient refuses a subject that could not be a clientId, or that of others.
func checkClient(id string) error {
	switch {
	case id == "", len(id) > maxClient:
		return fmt.Errorf("%w: its sub has %d bytes, expected 1 to %d", errToken, len(id), maxClient)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w: its sub has a control character", errToken)
	case id == clientAdmin:
		return fmt.Errorf("%w: its sub is %q, which the role %s alone gives", errToken, id, roleAdmin)
	case strings.HasPrefix(id, agents.ForeignClient):
		return fmt.Errorf("%w: its sub begins with %q, which is the host's", errToken, agents.ForeignClient)
	}
	return nil
}
