package webchat

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed page
var pageFiles embed.FS

// site is the HTTP side of one Run.
type site struct {
	ctx    context.Context // of Run: streams end with it
	cfg    Config
	addr   *net.TCPAddr
	store  *store
	log    *slog.Logger
	assets map[string]asset // by url path
	slots  chan struct{}    // a token per stream

	receiving chan struct{} // a token per upload
	streams   sync.WaitGroup
}

// titlePlace is where the page has its title, in text and never in an attribute.
const titlePlace = "{{title}}"

// asset is one file of the page.
type asset struct {
	body []byte
	mime string
	etag string
}

func newSite(ctx context.Context, cfg Config, addr *net.TCPAddr, st *store, log *slog.Logger) (*site, error) {
	s := &site{ctx: ctx, cfg: cfg, addr: addr, store: st, log: log, assets: map[string]asset{}, slots: make(chan struct{}, maxStreams), receiving: make(chan struct{}, receiving)}
	files, err := fs.ReadDir(pageFiles, "page")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	for _, f := range files {
		body, err := pageFiles.ReadFile("page/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read the page: %w", err)
		}
		at := "/" + f.Name()
		if f.Name() == "index.html" {
			at = "/"
			// No html/template, for one value: it makes the linker keep every
			// exported method of a program.
			body = bytes.ReplaceAll(body, []byte(titlePlace), []byte(html.EscapeString(cfg.Title)))
		}
		sum := sha256.Sum256(body)
		s.assets[at] = asset{body, mimeType(f.Name()), `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return s, nil
}

// mimeType does not ask the machine, whose answers differ.
func mimeType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(".bin")
}

// server is the HTTP server, with every wait bounded.
func (s *site) server() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", s.serveAsset)
	mux.HandleFunc("GET /stream", s.serveStream)
	mux.HandleFunc("GET /files/{token}", s.serveFile)
	mux.HandleFunc("POST /upload", s.serveUpload)
	return &http.Server{
		Handler:           s.guard(mux),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // only an upload has a body, and more time
		WriteTimeout:      5 * time.Minute,  // a large file over a slow line
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// address is what the operator opens.
func (s *site) address() string {
	host := s.addr.IP.String()
	if s.addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(s.addr.Port)) + "/"
}

func (s *site) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[r.URL.Path]
	if !ok {
		http.Error(w, "Not found.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", a.mime)
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// policy lets the page run its own files and nothing else; pictures and sound may come
// from anywhere, since the host sends addresses. Trusted types make every
// assignment of HTML text an error.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: http: https:; media-src 'self' http: https:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard refuses who comes under a foreign name (DNS rebinding) or from a foreign
// page, and sets the headers that every answer has.
func (s *site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		known, named := s.hostAllowed(r.Host)
		if !known {
			http.Error(w, fmt.Sprintf("Host: found %q, expected %s or a name of \"hosts\" in the adapter's configuration.", r.Host, s.address()), http.StatusForbidden)
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if !originAllowed(origin, r.Host, named) {
				http.Error(w, fmt.Sprintf("Origin: found %q, expected this page itself.", origin), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed: a loopback address or localhost with our port, a name that the
// operator gave (named), or any IP address if the page is public. A foreign name
// that points here is none of these.
func (s *site) hostAllowed(header string) (known, named bool) {
	host, port := splitHost(header)
	for _, name := range s.cfg.Hosts {
		if wantHost, wantPort := splitHost(name); strings.EqualFold(host, wantHost) && (wantPort == "" || port == wantPort) {
			return true, true
		}
	}
	if port == "" {
		port = "80"
	}
	if port != strconv.Itoa(s.addr.Port) {
		return false, false
	}
	if strings.EqualFold(host, "localhost") {
		return true, false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.Unmap().IsLoopback() || s.cfg.AllowPublic), false
}

// originAllowed: the page itself. Behind a proxy with TLS, which needs a name,
// its scheme is https.
func originAllowed(origin, host string, named bool) bool {
	return strings.EqualFold(origin, "http://"+host) || named && strings.EqualFold(origin, "https://"+host)
}
