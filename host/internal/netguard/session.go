package netguard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/auth"
)

// The cookie of a session. Under TLS its name keeps others of the same domain
// from setting it (RFC 6265bis).
const (
	cookieName       = "pontoon"
	secureCookieName = "__Host-pontoon"
)

// Below these paths a session counts.
const (
	consolePath = "/console/"
	apiPath     = "/api/v1/"
)

// Admitter knows who is logged in.
type Admitter interface {
	AdmitSession(ctx context.Context, secret string) (auth.Holder, error)
}

// Sessions puts who is logged in into the context of requests for the console and
// the API. What comes with a key is left alone, and so is every other path. A
// page of another origin can neither log in nor do anything by the cookie. One that
// opens nothing is taken back at once and counts once, though a browser may send it
// with several requests before it knows.
func Sessions(a Admitter, failures *Failures, log *slog.Logger, next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		console := strings.HasPrefix(r.URL.Path, consolePath) && !strings.HasPrefix(r.URL.Path, consolePath+"static/")
		api := strings.HasPrefix(r.URL.Path, apiPath)
		if !console && (!api || hasKey(r)) {
			next.ServeHTTP(w, r)
			return
		}
		secret, ok := sessionSecret(r)
		if !ok && api || ok && api && foreign(r) {
			next.ServeHTTP(w, r)
			return
		}
		if err := cross.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "a page of another origin may not do this: open the console itself, and try again there")
			return
		}
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		if wait := failures.Allow(r.RemoteAddr, Cookies); wait > 0 {
			w.Header().Set("Retry-After", Seconds(wait))
			refuse(w, http.StatusTooManyRequests, TooManyFailures)
			return
		}
		h, err := a.AdmitSession(r.Context(), secret)
		switch {
		case err == nil:
			r = r.WithContext(auth.WithHolder(r.Context(), h))
		case errors.Is(err, auth.ErrInvalid):
			failures.Failed(r.RemoteAddr, Cookies, secret)
			ClearSession(w, r)
		default: // nobody is logged in while storage does not answer
			log.Error("session not checked", "error", err)
		}
		next.ServeHTTP(w, r)
	})
}

// hasKey reports whether the request brings a key, which then counts alone.
func hasKey(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

// foreign reports whether a page of another origin reads: a cookie comes with
// that from another port of this host.
func foreign(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		site := r.Header.Get("Sec-Fetch-Site")
		return site != "" && site != "same-origin" && site != "none"
	}
	return false // CrossOriginProtection's business
}

// HasSession reports whether the request brings the cookie of a session, of one that
// has ended too.
func HasSession(r *http.Request) bool {
	_, ok := sessionSecret(r)
	return ok
}

// SetSession gives the browser the cookie of a session.
func SetSession(w http.ResponseWriter, r *http.Request, secret string, expires time.Time) {
	http.SetCookie(w, sessionCookie(r, secret, expires))
}

// ClearSession takes the cookie back.
func ClearSession(w http.ResponseWriter, r *http.Request) {
	c := sessionCookie(r, "", time.Unix(1, 0)) //nolint:gosec // G124: Secure wherever the browser came by TLS
	c.MaxAge = -1
	http.SetCookie(w, c)
}

func sessionCookie(r *http.Request, secret string, expires time.Time) *http.Cookie {
	c := &http.Cookie{Name: cookieName, Value: secret, Path: "/", Expires: expires, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if Secure(r) {
		c.Name, c.Secure = secureCookieName, true
	}
	return c
}

// sessionSecret is what the cookie holds. Under TLS the one without the prefix
// does not count.
func sessionSecret(r *http.Request) (string, bool) {
	name := cookieName
	if Secure(r) {
		name = secureCookieName
	}
	c, err := r.Cookie(name)
	if err != nil || !strings.HasPrefix(c.Value, auth.SessionPrefix) {
		return "", false
	}
	return c.Value, true
}
