package bridle

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestCheck(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := &Front{Options: Options{Secret: secret, Now: func() time.Time { return now }}}
	sign := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		t.Helper()
		s, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	bare := func(claims jwt.MapClaims) string { return sign(jwt.SigningMethodHS256, []byte(secret), claims) }
	hs := func(claims jwt.MapClaims) string {
		if claims["exp"] == nil {
			claims["exp"] = now.Add(time.Minute).Unix()
		}
		return bare(claims)
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "u1", "exp": now.Add(time.Minute).Unix()})
	critical.Header["crit"] = []string{"b64"}
	withCrit, err := critical.SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Minute).Unix()
	for name, c := range map[string]struct {
		token  string
		client string // "" = refused
	}{
		"ok":         {hs(jwt.MapClaims{"sub": "u1"}), "u1"},
		"rolesOther": {hs(jwt.MapClaims{"sub": "u1", "roles": []string{"USER", "admin"}}), "u1"},
		"rolesOdd":   {hs(jwt.MapClaims{"sub": "u1", "roles": 7}), "u1"},
		"admin":      {hs(jwt.MapClaims{"sub": "u1", "roles": []string{"USER", "ADMIN"}}), "admin"},
		"adminOne":   {hs(jwt.MapClaims{"roles": "ADMIN"}), "admin"},
		"live":       {hs(jwt.MapClaims{"sub": "u1", "exp": now.Add(time.Second).Unix(), "nbf": now.Unix()}), "u1"},
		"errEnded":   {hs(jwt.MapClaims{"sub": "u1", "exp": now.Unix()}), ""},
		"errEarly":   {hs(jwt.MapClaims{"sub": "u1", "nbf": now.Add(time.Second).Unix()}), ""},
		"errExpText": {hs(jwt.MapClaims{"sub": "u1", "exp": "never"}), ""},
		"errNoExp":   {bare(jwt.MapClaims{"sub": "u1"}), ""},
		"errExpNull": {bare(jwt.MapClaims{"sub": "u1", "exp": nil}), ""},
		"errExpNum":  {hs(jwt.MapClaims{"sub": "u1", "exp": strconv.FormatInt(until, 10)}), ""},
		"errExpCase": {bare(jwt.MapClaims{"sub": "u1", "EXP": strconv.FormatInt(until, 10)}), ""},
		"errNbfText": {hs(jwt.MapClaims{"sub": "u1", "nbf": strconv.FormatInt(now.Unix(), 10)}), ""},
		"errCrit":    {withCrit, ""},
		"errNoSub":   {hs(jwt.MapClaims{}), ""},
		"errSubType": {hs(jwt.MapClaims{"sub": 7}), ""},
		"errAdmin":   {hs(jwt.MapClaims{"sub": "admin", "roles": []string{"USER"}}), ""},
		"errHosts":   {hs(jwt.MapClaims{"sub": "pontoon:telegram/1"}), ""},
		"errSecret":  {sign(jwt.SigningMethodHS256, []byte("another"), jwt.MapClaims{"sub": "u1", "exp": until}), ""},
		"errHS384":   {sign(jwt.SigningMethodHS384, []byte(secret), jwt.MapClaims{"sub": "u1", "exp": until}), ""},
		"errNone":    {sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"sub": "u1", "exp": until}), ""},
		"errEmpty":   {"", ""},
		"errLong":    {hs(jwt.MapClaims{"sub": "u1", "x": strings.Repeat("x", maxToken)}), ""},
	} {
		u, err := f.check(c.token)
		if c.client == "" {
			if !errors.Is(err, errToken) || c.token != "" && strings.Contains(err.Error(), c.token) {
				t.Errorf("%s: %+v, %v", name, u, err)
			}
			continue
		}
		if err != nil || u.client != c.client {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	off := &Front{Options: Options{Now: time.Now}}
	if _, err := off.check(sign(jwt.SigningMethodHS256, []byte(""), jwt.MapClaims{"sub": "u1"})); err == nil {
		t.Error("without a secret an empty one is good")
	}
}

func FuzzCheck(f *testing.F) {
	front := &Front{Options: Options{Secret: secret, Now: time.Now}}
	good, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "u1", "ADMIN")
	f.Add("a.b.c", "admin", "")
	f.Add("eyJhbGciOiJub25lIn0.e30.", "pontoon:x", "x")
	f.Fuzz(func(t *testing.T, token, sub, role string) {
		if u, err := front.check(token); err == nil && token != good && u.client != "u1" {
			t.Fatalf("%q is good for %+v", token, u)
		}
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": sub, "roles": []string{role}, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		u, err := front.check(signed)
		if err == nil && u.admin() != (role == roleAdmin) {
			t.Fatalf("sub %q, role %q: %+v", sub, role, u)
		}
	})
}
