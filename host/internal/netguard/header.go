package netguard

import (
	"encoding/json"
	"net/http"
)

// hsts has browsers speak TLS alone for a year.
const hsts = "max-age=31536000"

// headers sets what every answer carries unless its handler knows better: it is
// data, which no page may frame or run and no browser keep.
func headers(h http.Header, r *http.Request) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for what knows no frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	if Secure(r) && nameOf(r.Host) != "localhost" { // of which there are others on this machine, at other ports
		h.Set("Strict-Transport-Security", hsts)
	}
}

// refuse answers with a problem (RFC 9457).
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct { // the client is told or gone
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
}
