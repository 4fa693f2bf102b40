package attach

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// SignPath is where ServeHTTP is to be mounted: all paths under it.
const SignPath = "/storage/v1/object/sign/"

// How long a signed url lives.
const (
	DefaultTTL = time.Hour
	MaxTTL     = 7 * 24 * time.Hour
)

// Sign makes a url that lets whoever has it do method (GET, which is also
// HEAD, or PUT) with one attachment for ttl: DefaultTTL if that is not
// positive, MaxTTL if it is longer. It does not look whether there is one. As
// long as the host's public url is not known, the url has no origin.
func (s *Store) Sign(ref Ref, method string, ttl time.Duration) string {
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	now := s.now()
	return s.sign(ref, method, now, now.Add(min(ttl, MaxTTL)))
}

func (s *Store) sign(ref Ref, method string, now, expires time.Time) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	segments := strings.Split(ref.String(), "/")
	for i, seg := range segments {
		segments[i] = url.PathEscape(seg)
	}
	token := s.keys.seal(claims{Method: method, URL: ref.String(), Expires: expires.Unix(), Issued: now.Unix()})
	return strings.TrimSuffix(s.base(), "/") + SignPath + strings.Join(segments, "/") + "?token=" + token
}

// Rotate adds a key that signs from now on. Older ones still verify, until they
// are more than four.
func (s *Store) Rotate() error { return s.keys.rotate() }
