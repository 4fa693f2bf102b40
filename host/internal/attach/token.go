package attach

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// maxToken is over any token that seal makes.
const maxToken = 4096

// algorithm is the only one that is spoken; a token can't choose another.
const algorithm = "HS256"

// header of a token.
type header struct {
	Alg string `json:"alg"`
	Typ string `json:"typ"`
	Kid string `json:"kid"`
}

// claims is what a token allows: one method on one path until a time.
type claims struct {
	Method  string `json:"m"`   // GET (also HEAD) or PUT
	URL     string `json:"url"` // BUCKET/PATH, decoded
	Expires int64  `json:"exp"` // Unix seconds
	Issued  int64  `json:"iat"`
}

// Strict: else several texts would be one token.
var base64url = base64.RawURLEncoding.Strict()

// seal makes a token: a JWT (RFC 7519) of the newest key.
func (k *keyring) seal(c claims) string {
	key := k.newest()
	h, _ := json.Marshal(header{algorithm, "JWT", key.ID}) // strings and numbers: never fails
	b, _ := json.Marshal(c)
	text := base64url.EncodeToString(h) + "." + base64url.EncodeToString(b)
	return text + "." + base64url.EncodeToString(mac(key.Secret, text))
}

// unseal returns what a token of ours says, or ErrForged. It looks at no clock.
func (k *keyring) unseal(token string) (claims, error) {
	if len(token) > maxToken {
		return claims{}, fmt.Errorf("%w: found a token of %d bytes, expected at most %d", ErrForged, len(token), maxToken)
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") { // which base64 skips, strict or not
		return claims{}, fmt.Errorf("%w: found a token of %d parts, expected 3 in one line", ErrForged, len(parts))
	}
	var h header
	if !decodeJSON(parts[0], &h) || h.Alg != algorithm {
		return claims{}, fmt.Errorf("%w: found a token of another kind, expected %s", ErrForged, algorithm)
	}
	key, ok := k.byID(h.Kid)
	if !ok {
		return claims{}, fmt.Errorf("%w: found the token of an unknown key, expected one in use", ErrForged)
	}
	sum, err := base64url.DecodeString(parts[2])
	if err != nil || !hmac.Equal(sum, mac(key.Secret, parts[0]+"."+parts[1])) {
		return claims{}, fmt.Errorf("%w: found a signature that does not match, expected that of its key", ErrForged)
	}
	var c claims
	if !decodeJSON(parts[1], &c) {
		return claims{}, fmt.Errorf("%w: found claims that can't be read, expected m, url, exp", ErrForged)
	}
	return c, nil
}

func mac(secret []byte, text string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum(nil)
}

func decodeJSON(part string, v any) bool {
	b, err := base64url.DecodeString(part)
	return err == nil && json.Unmarshal(b, v) == nil
}
