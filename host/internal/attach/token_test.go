package attach

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"hash"
	"os"
	"strings"
	"testing"
)

// forge makes a token by hand.
func forge(head, body string, h func() hash.Hash, secret []byte) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(body))
	m := hmac.New(h, secret)
	_, _ = m.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func testKeyring(t testing.TB) *keyring {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestToken(t *testing.T) {
	k := testKeyring(t)
	want := claims{Method: "GET", URL: "agent-files/a/b", Expires: 1 << 40, Issued: 7}
	token := k.seal(want)
	if c, err := k.unseal(token); err != nil || c != want {
		t.Errorf("found %+v, %v, expected %+v", c, err, want)
	}
	// What others read of it: RFC 7519.
	head, body, _ := strings.Cut(token, ".")
	var h map[string]string
	if b, err := base64.RawURLEncoding.DecodeString(head); err != nil || json.Unmarshal(b, &h) != nil || h["alg"] != "HS256" || h["typ"] != "JWT" || h["kid"] != k.newest().ID {
		t.Errorf("header: found %v, %v", h, err)
	}
	body, _, _ = strings.Cut(body, ".")
	if b, err := base64.RawURLEncoding.DecodeString(body); err != nil || string(b) != `{"m":"GET","url":"agent-files/a/b","exp":1099511627776,"iat":7}` {
		t.Errorf("claims: found %s, %v", b, err)
	}
}

func TestTokenRefused(t *testing.T) {
	k := testKeyring(t)
	key := k.newest()
	head, body := `{"alg":"HS256","typ":"JWT","kid":"`+key.ID+`"}`, `{"m":"GET","url":"agent-files/x","exp":9999999999}`
	good := forge(head, body, sha256.New, key.Secret)
	if _, err := k.unseal(good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	other := strings.Split(forge(head, `{"m":"PUT"}`, sha256.New, key.Secret), ".")
	none := forge(`{"alg":"none"}`, body, sha256.New, key.Secret)
	for name, token := range map[string]string{
		"empty":             "",
		"one part":          parts[0],
		"two parts":         parts[0] + "." + parts[1],
		"four parts":        good + ".",
		"no signature":      parts[0] + "." + parts[1] + ".",
		"other claims":      parts[0] + "." + other[1] + "." + parts[2],
		"cut signature":     good[:len(good)-4],
		"long signature":    good + "AAAA",
		"padded":            good + "=",
		"line break":        good + "\n",
		"loose last bits":   good[:len(good)-1] + string(next(good[len(good)-1])),
		"other secret":      forge(head, body, sha256.New, make([]byte, 32)),
		"no secret":         forge(head, body, sha256.New, nil),
		"none":              none,
		"none, unsigned":    none[:strings.LastIndex(none, ".")+1],
		"None":              forge(strings.Replace(head, "HS256", "None", 1), body, sha256.New, key.Secret),
		"hs256":             forge(strings.Replace(head, "HS256", "hs256", 1), body, sha256.New, key.Secret),
		"HS512":             forge(strings.Replace(head, "HS256", "HS512", 1), body, sha512.New, key.Secret),
		"HS256 with SHA512": forge(head, body, sha512.New, key.Secret),
		"RS256":             forge(strings.Replace(head, "HS256", "RS256", 1), body, sha256.New, key.Secret),
		"no alg":            forge(`{"kid":"`+key.ID+`"}`, body, sha256.New, key.Secret),
		"no kid":            forge(`{"alg":"HS256"}`, body, sha256.New, key.Secret),
		"unknown kid":       forge(`{"alg":"HS256","kid":"../x"}`, body, sha256.New, key.Secret),
		"kid no string":     forge(`{"alg":"HS256","kid":1}`, body, sha256.New, key.Secret),
		"header null":       forge(`null`, body, sha256.New, key.Secret),
		"claims no JSON":    forge(head, `{`, sha256.New, key.Secret),
		"exp no number":     forge(head, `{"exp":"soon"}`, sha256.New, key.Secret),
		"exp too large":     forge(head, `{"exp":1e30}`, sha256.New, key.Secret),
		"too long":          good + strings.Repeat("A", maxToken),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := k.unseal(token)
			refused(t, err, ErrForged, "expected", "token="+token)
		})
	}
}

// next is the digit of base64 whose last bit differs: in the last place of a
// signature that bit stands for nothing.
func next(c byte) byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return digits[strings.IndexByte(digits, c)^1]
}

func FuzzToken(f *testing.F) {
	k := testKeyring(f)
	want := claims{Method: "GET", URL: "agent-files/x", Expires: 1}
	good := k.seal(want)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Add(forge(`{"alg":"none"}`, `{}`, sha256.New, nil))
	f.Add(forge(`{"alg":"HS256","kid":"`+k.newest().ID+`"}`, `{}`, sha256.New, nil))
	f.Fuzz(func(t *testing.T, token string) {
		c, err := k.unseal(token)
		if err == nil && (token != good || c != want) {
			t.Errorf("%q was taken", token)
		}
		if err != nil {
			refused(t, err, ErrForged, "expected", "token="+token)
		}
	})
}
