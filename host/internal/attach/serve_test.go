package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/torture"
)

// reply is an answer, read.
type reply struct {
	status int
	header http.Header
	body   string
}

func do(t testing.TB, method, url string, header map[string]string, body io.Reader) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	// Kept alive, so that the server reads the rest of a body that it refuses: a
	// connection that it cut would lose the answer.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

func TestServe(t *testing.T) {
	h := newHost(t, Options{})
	content := pngHead + strings.Repeat("0123456789", 100)
	o := h.put(t, content, Claim{Name: "Übersicht \"1\".png"})
	u := h.get(o)
	r := do(t, "GET", u, nil, nil)
	if r.status != 200 || r.body != content {
		t.Errorf("found %d, %d bytes, expected 200, %d", r.status, len(r.body), len(content))
	}
	for k, want := range map[string]string{
		"Content-Type":                 "image/png",
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "cross-origin",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "private",
		"Accept-Ranges":                "bytes",
		"Content-Length":               "1008",
		"Last-Modified":                h.clock.now().UTC().Format(http.TimeFormat),
	} {
		if got := r.header.Get(k); got != want {
			t.Errorf("%s: found %q, expected %q", k, got, want)
		}
	}
	how, params, err := mime.ParseMediaType(r.header.Get("Content-Disposition"))
	if err != nil || how != "inline" || params["filename"] != o.Name {
		t.Errorf("found %s, %v, expected inline, %s", r.header.Get("Content-Disposition"), err, o.Name)
	}
	head := do(t, "HEAD", u, nil, nil)
	if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != "1008" || head.header.Get("Etag") != r.header.Get("Etag") {
		t.Errorf("HEAD: found %d %q %v", head.status, head.body, head.header)
	}
}

func TestServeRanges(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "0123456789", Claim{})
	u := h.get(o)
	etag := do(t, "HEAD", u, nil, nil).header.Get("Etag")
	if len(etag) != uuidChars+2 {
		t.Errorf("found etag %s", etag)
	}
	for name, c := range map[string]struct {
		header       map[string]string
		status       int
		body, ranges string
	}{
		"first":        {map[string]string{"Range": "bytes=0-3"}, 206, "0123", "bytes 0-3/10"},
		"rest":         {map[string]string{"Range": "bytes=8-"}, 206, "89", "bytes 8-9/10"},
		"last":         {map[string]string{"Range": "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		"same":         {map[string]string{"Range": "bytes=0-0", "If-Range": etag}, 206, "0", "bytes 0-0/10"},
		"changed":      {map[string]string{"Range": "bytes=0-0", "If-Range": `"other"`}, 200, "0123456789", ""},
		"beyond":       {map[string]string{"Range": "bytes=10-"}, 416, "", "bytes */10"},
		"not modified": {map[string]string{"If-None-Match": etag}, 304, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := do(t, "GET", u, c.header, nil)
			if r.status != c.status || r.header.Get("Content-Range") != c.ranges || c.status < 300 && r.body != c.body {
				t.Errorf("found %d %q %q, expected %d %q %q", r.status, r.body, r.header.Get("Content-Range"), c.status, c.body, c.ranges)
			}
		})
	}
	if r := do(t, "GET", u, map[string]string{"Range": "bytes=0-1,4-5"}, nil); r.status != 206 || !strings.HasPrefix(r.header.Get("Content-Type"), "multipart/byteranges") {
		t.Errorf("several: found %d %v", r.status, r.header)
	}
}

// What a browser may show in place, and what it is to save.
func TestDisposition(t *testing.T) {
	h := newHost(t, Options{Types: append(DefaultTypes(), "text/html", "image/svg+xml")})
	for name, c := range map[string]struct {
		content string
		claim   Claim
		mime    string
		want    string
	}{
		"png":   {pngHead, Claim{Name: "a.png"}, "image/png", "inline; filename=a.png"},
		"audio": {"fLaC\x00\x00\x00\x22\x00\x00\x00\x00", Claim{Name: "a b.flac"}, "audio/flac", `inline; filename="a b.flac"`},
		"video": {"\x1A\x45\xDF\xA3 webm", Claim{Name: "v.webm"}, "video/webm", "inline; filename=v.webm"},
		"pdf":   {pdfHead, Claim{Name: "a.pdf"}, "application/pdf", "attachment; filename=a.pdf"},
		"text":  {"text", Claim{}, "text/plain", "attachment; filename=attachment.txt"},
		"html":  {"<html><script>x</script>", Claim{Name: "a.html"}, "text/html", "attachment; filename=a.html"},
		"svg":   {"<svg onload=x>", Claim{Name: "a.svg"}, "image/svg+xml", "attachment; filename=a.svg"},
		"ü":     {"text", Claim{Name: "ü.txt"}, "text/plain", "attachment; filename*=utf-8''%C3%BC.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			r := do(t, "GET", h.get(h.put(t, c.content, c.claim)), nil, nil)
			if r.header.Get("Content-Type") != c.mime || r.header.Get("Content-Disposition") != c.want {
				t.Errorf("found %s, %s, expected %s, %s", r.header.Get("Content-Type"), r.header.Get("Content-Disposition"), c.mime, c.want)
			}
		})
	}
}

// Whatever is wrong with a token: one answer.
func TestServeForbidden(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	good := h.get(o)
	gone := strings.Replace(o.Path, "owner-1", "owner-2", 1)
	expired := h.Sign(o.Ref(), "GET", time.Second)
	h.clock.add(time.Second)
	var want reply
	for name, u := range map[string]string{
		"no token":       h.url + SignPath + o.Ref().String(),
		"cut":            good[:len(good)-3],
		"expired":        expired,
		"PUT":            h.Sign(o.Ref(), "PUT", 0),
		"other path":     strings.Replace(good, "owner-1", "owner-2", 1),
		"traversal":      strings.Replace(good, "owner-1", "%2e%2e", 1),
		"slash":          strings.Replace(good, "owner-1", "a%2fb", 1),
		"encoded twice":  strings.Replace(good, "owner-1", "%252e%252e", 1),
		"unknown bucket": h.Sign(Ref{"tmp", "x"}, "GET", 0),
	} {
		got := do(t, "GET", u, nil, nil)
		got.header.Del("Date")
		if want.status == 0 {
			want = got
		}
		if got.status != 403 || got.body != want.body || !maps.EqualFunc(got.header, want.header, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
			t.Errorf("%s: found %+v, expected %+v", name, got, want)
		}
	}
	if want.header.Get("Content-Type") != "application/problem+json" || want.header.Get("Cache-Control") != "no-store" {
		t.Errorf("found %v", want.header)
	}
	if r := do(t, "GET", h.Sign(Ref{Bucket, gone}, "GET", 0), nil, nil); r.status != 404 {
		t.Errorf("not there: found %d, expected 404", r.status)
	}
	if r := do(t, "GET", h.url+"/storage/v1/object/public/x", nil, nil); r.status != 404 {
		t.Errorf("other path: found %d, expected 404", r.status)
	}
}

func TestServeMethods(t *testing.T) {
	h := newHost(t, Options{})
	u := h.get(h.put(t, "text", Claim{}))
	for _, method := range []string{"POST", "DELETE", "PATCH", "OPTIONS", "ODD"} {
		if r := do(t, method, u, nil, nil); r.status != 405 || r.header.Get("Allow") != "GET, HEAD, PUT" {
			t.Errorf("%s: found %d, Allow %q", method, r.status, r.header.Get("Allow"))
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/elsewhere", nil))
	if w.Code != 404 {
		t.Errorf("mounted elsewhere: found %d", w.Code)
	}
}

// What is the disk's fault is logged, without the token, and not told.
func TestServeDamaged(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	o := h.put(t, "text", Claim{})
	if err := os.Truncate(h.disk(o.Ref().String()), 1); err != nil {
		t.Fatal(err)
	}
	u := h.get(o)
	r := do(t, "GET", u, nil, nil)
	var problem struct {
		Title  string
		Status int
		Detail string
	}
	if err := json.Unmarshal([]byte(r.body), &problem); err != nil || r.status != 500 || problem.Status != 500 || problem.Detail != "" {
		t.Errorf("found %d %s, %v", r.status, r.body, err)
	}
	if !strings.Contains(log.String(), "found 1 bytes, expected 4") || strings.Contains(log.String(), u[strings.Index(u, "token=")+6:]) {
		t.Errorf("log: found %s", log.String())
	}
}

// TestHostileSignatures: of a signed url no character can be another one.
func TestHostileSignatures(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	good := h.get(o)
	from := strings.Index(good, SignPath) + len(SignPath)
	tries, through := 0, 0
	for at := from; at < len(good); at++ {
		for _, c := range "Ab1-_.=/" {
			forged := good[:at] + string(c) + good[at+1:]
			if forged == good {
				continue
			}
			tries++
			if r := do(t, "GET", forged, nil, nil); r.status == 200 {
				through++
				t.Errorf("%s: %d", forged[from:], r.status)
			}
		}
		tries++
		if r := do(t, "GET", good[:at]+good[at+1:], nil, nil); r.status == 200 {
			through++
			t.Errorf("without character %d: %d", at-from, r.status)
		}
	}
	torture.Attack(t, "forged urls of attachments: each character another, or missing", tries, through, "served")
}
