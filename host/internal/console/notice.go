package console

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// noticeCookie carries what was done to the page that follows.
const noticeCookie = "pontoon_notice"

// refusedNotice begins a notice of what was not done.
const refusedNotice = "\x01"

// maxNotice bounds it: what is longer is cut.
const maxNotice = 600 // bytes

func giveNotice(w http.ResponseWriter, r *http.Request, text string) {
	if len(text) > maxNotice {
		text = strings.ToValidUTF8(text[:maxNotice], "")
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: Secure wherever the browser came by TLS
		Name: noticeCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(text)), Path: Path, MaxAge: 60,
		HttpOnly: true, Secure: netguard.Secure(r), SameSite: http.SameSiteStrictMode,
	})
}

// takeNotice is what the page before wants to be said, this once. A piece of a page
// that is asked for again leaves it to the page.
func takeNotice(w http.ResponseWriter, r *http.Request) string {
	if r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Boosted") != "true" {
		return ""
	}
	c, err := r.Cookie(noticeCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: Secure wherever the browser came by TLS
		Name: noticeCookie, Path: Path, MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: netguard.Secure(r), SameSite: http.SameSiteStrictMode,
	})
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(text) > maxNotice {
		return ""
	}
	return string(text)
}
