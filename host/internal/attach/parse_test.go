package attach

import (
	"crypto/sha256"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	good := h.get(o)
	if !strings.HasPrefix(good, h.url+"/storage/v1/object/sign/agent-files/agent-inputs/owner-1/") {
		t.Errorf("found %s", good)
	}
	for name, u := range map[string]string{
		"ok":              good,
		"HEAD":            h.Sign(o.Ref(), "HEAD", 0),
		"week":            h.Sign(o.Ref(), "GET", MaxTTL),
		"encoded once":    strings.Replace(good, "owner-1", "%6fwner%2D1", 1),
		"other parameter": good + "&download=",
		"fragment":        good + "#page=2",
		"upper scheme":    strings.Replace(good, "http:", "HTTP:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if ref, err := h.Parse(u); err != nil || ref != o.Ref() {
				t.Errorf("found %v, %v, expected %v", ref, err, o.Ref())
			}
		})
	}
}

// badURL is one that Parse refuses, and part of why.
type badURL struct{ url, text string }

func (h *host) refuses(t *testing.T, want error, good string, urls map[string]badURL) {
	t.Helper()
	for name, c := range urls {
		t.Run(name, func(t *testing.T) {
			ref, err := h.Parse(c.url)
			refused(t, err, want, c.text, c.url, good)
			if ref != (Ref{}) {
				t.Errorf("found %v beside an error", ref)
			}
		})
	}
}

func TestParseForeign(t *testing.T) {
	h := newHost(t, Options{})
	good := h.get(h.put(t, "text", Claim{}))
	_, token, _ := strings.Cut(good, "?token=")
	at := func(path string) string { return h.url + SignPath + path + "?token=" + token }
	bare := strings.TrimPrefix(h.url, "http://")
	h.refuses(t, ErrForeign, good, map[string]badURL{
		"no url":         {"\x7f://", "found no plain url, expected one of http://127.0.0.1:"},
		"empty":          {"", "found no plain url"},
		"relative":       {strings.TrimPrefix(good, h.url), "found no plain url"},
		"other host":     {strings.Replace(good, "127.0.0.1", "evil.example", 1), `found "http://evil.example:`},
		"other port":     {strings.Replace(good, bare, "127.0.0.1:1", 1), `found "http://127.0.0.1:1"`},
		"no port":        {strings.Replace(good, bare, "127.0.0.1", 1), `found "http://127.0.0.1:80"`},
		"other scheme":   {strings.Replace(good, "http:", "https:", 1), `found "https://`},
		"user":           {strings.Replace(good, "http://", "http://"+bare+"@", 1), "found no plain url"},
		"token as host":  {"http://" + token + good[len("http://")+len(bare):], "found \"another origin\""},
		"other path":     {h.url + "/storage/v1/object/public/x?token=" + token, "expected one under /storage/v1/object/sign/"},
		"encoded prefix": {strings.Replace(good, "/sign/", "%2fsign/", 1), "found another path"},
		"escape":         {at("agent-files/%zz"), "found no plain url"},
		"too long":       {good + strings.Repeat("x", maxURL), "expected at most 16384"},
		"NUL, raw":       {at("agent-files/\x00"), "found no plain url"},
	})
}

func TestParseTraversal(t *testing.T) {
	h := newHost(t, Options{})
	good := h.get(h.put(t, "text", Claim{}))
	_, token, _ := strings.Cut(good, "?token=")
	at := func(path string) string { return h.url + SignPath + path + "?token=" + token }
	h.refuses(t, ErrTraversal, good, map[string]badURL{
		"dots":            {at("agent-files/agent-inputs/../x"), "found a dot segment, expected plain names"},
		"dots, signed":    {h.Sign(Ref{Bucket, "agent-inputs/../x"}, "GET", 0), "a dot segment"},
		"dots, encoded":   {at("agent-files/agent-inputs/%2e%2E/x"), "a dot segment"},
		"dots for bucket": {at("../x"), "a dot segment"},
		"dot":             {at("agent-files/./x"), "a dot segment"},
		"empty segment":   {at("agent-files//x"), "an empty segment"},
		"trailing slash":  {at("agent-files/x/"), "an empty segment"},
		"no bucket":       {at(""), "an empty segment"},
		"bucket alone":    {at("agent-files"), "found no path behind the bucket"},
		"backslash":       {at(`agent-files/..\x`), "a slash within a segment"},
		"backslash, enc.": {at("agent-files/..%5Cx"), "a slash within a segment"},
		"slash, encoded":  {at("agent-files/a%2Fb"), "a slash within a segment"},
		"dots and slash":  {at("agent-files/..%2f..%2fx"), "a slash within a segment"},
		"encoded twice":   {at("agent-files/%252e%252e/x"), "a second layer of percent-encoding"},
		"slash, twice":    {at("agent-files/a%252Fb"), "a second layer"},
		"NUL":             {at("agent-files/x%00.png"), "a control character"},
		"line break":      {at("agent-files/x%0d%0ay"), "a control character"},
		"C1 control":      {at("agent-files/x%C2%85y"), "a control character"},
		"no UTF-8":        {at("agent-files/%c0%ae%c0%ae/x"), "bytes that are not UTF-8"},
	})
}

func TestParseRefused(t *testing.T) {
	h := newHost(t, Options{})
	o, other := h.put(t, "text", Claim{}), h.put(t, "text", Claim{})
	good := h.get(o)
	_, token, _ := strings.Cut(good, "?token=")
	_, foreign, _ := strings.Cut(h.get(other), "?token=")
	bare := h.url + SignPath + o.Ref().String() // without a token
	signed := func(bucket, path string) string { return h.Sign(Ref{bucket, path}, "GET", 0) }
	const file = "/0b0f9d2e-0000-4000-8000-000000000000.txt"
	h.refuses(t, ErrForged, good, map[string]badURL{
		"no token":          {bare, "found 0 tokens, expected one"},
		"two tokens":        {good + "&token=" + token, "found 2 tokens"},
		"bad query":         {good + "&%zz", "tokens, expected one"},
		"empty token":       {bare + "?token=", "found a token of 1 parts"},
		"cut token":         {good[:len(good)-1], "found a signature that does not match"},
		"token of another":  {strings.Replace(good, token, foreign, 1), "the token of another path"},
		"token for PUT":     {h.Sign(o.Ref(), "PUT", 0), "the token of another method, expected one of GET"},
		"other secret":      {bare + "?token=" + forge(`{"alg":"HS256","kid":"`+h.keys.newest().ID+`"}`, `{}`, sha256.New, []byte("x")), "signature"},
		"forged bucket":     {h.url + SignPath + "agent-outputs/x?token=" + token, "another path"},
		"query in the path": {strings.Replace(good, "?token=", "%3Ftoken=", 1), "found 0 tokens"},
	})
	h.refuses(t, ErrExpired, good, map[string]badURL{
		"no exp": {bare + "?token=" + h.keys.seal(claims{Method: "GET", URL: o.Ref().String()}), ""},
	})
	h.refuses(t, ErrNotFound, good, map[string]badURL{
		"unknown bucket":   {signed("agent-outputs", o.Path), "found an unknown bucket, expected agent-files"},
		"our temporary":    {signed("tmp", "x"), "an unknown bucket"},
		"other form":       {signed(Bucket, "elsewhere/owner-1"+file), "expected agent-inputs/OWNER/UUID.EXT"},
		"sidecar":          {signed(Bucket, o.Path+".json"), "a path of another form"},
		"not there":        {signed(Bucket, "agent-inputs/owner-1"+file), "found nothing at agent-files/agent-inputs/owner-1/"},
		"not there, owner": {signed(Bucket, "agent-inputs/nobody"+file), "found nothing"},
	})
	if _, err := h.Stat(o.Ref()); err != nil {
		t.Error(err)
	}
}

func TestExpiry(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	for _, c := range []struct{ ask, want time.Duration }{
		{0, time.Hour}, {-time.Hour, time.Hour}, {time.Minute, time.Minute}, {MaxTTL, MaxTTL}, {100 * MaxTTL, MaxTTL},
	} {
		u := h.Sign(o.Ref(), "GET", c.ask)
		h.clock.add(c.want - time.Second)
		if _, err := h.Parse(u); err != nil {
			t.Errorf("%v: a second before: %v", c.ask, err)
		}
		h.clock.add(time.Second)
		_, err := h.Parse(u)
		refused(t, err, ErrExpired, "expected one that is signed for now", u)
		if r := do(t, "GET", u, nil, nil); r.status != 403 {
			t.Errorf("found %d, expected 403", r.status)
		}
	}
}

// The public url may be any that the operator has, and be known only later.
func TestBase(t *testing.T) {
	for name, c := range map[string]struct {
		base  string
		as    func(string) string // what the client makes of a url
		want  error
		where string
	}{
		"path":            {"https://Example.org/bridge/", nil, nil, "https://Example.org/bridge/storage/"},
		"host, case":      {"https://Example.org", replace("Example.org", "eXAMPLE.ORG"), nil, ""},
		"default port":    {"https://example.org", replace("example.org", "example.org:443"), nil, ""},
		"given port":      {"http://example.org:80", replace(":80", ""), nil, ""},
		"IPv6":            {"http://[::1]:7070", nil, nil, ""},
		"errPort":         {"https://example.org", replace("example.org", "example.org:80"), ErrForeign, ""},
		"errPath":         {"https://example.org/bridge", replace("/bridge", ""), ErrForeign, ""},
		"errSuffix":       {"https://example.org", replace("example.org", "example.org.evil"), ErrForeign, ""},
		"errNotKnown":     {"", nil, ErrForeign, "/storage/v1/object/sign/"},
		"errNotKnownHost": {"", func(u string) string { return "http://127.0.0.1" + u }, ErrForeign, ""},
		"errNoURL":        {":", nil, ErrForeign, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Options{Base: func() string { return c.base }})
			o := h.put(t, "text", Claim{})
			u := h.get(o)
			if !strings.HasPrefix(u, c.where) {
				t.Errorf("found %s, expected %s…", u, c.where)
			}
			if c.as != nil {
				u = c.as(u)
			}
			ref, err := h.Parse(u)
			if c.want != nil {
				refused(t, err, c.want, "", u)
			} else if err != nil || ref != o.Ref() {
				t.Errorf("found %v, %v", ref, err)
			}
		})
	}
}

func replace(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

// Also a ref that we would never make is signed so that it is one url, and
// comes to nothing.
func TestSignOddRef(t *testing.T) {
	h := newHost(t, Options{})
	u := h.Sign(Ref{"a b", `c?d#e/%2e/ü`}, "GET", 0)
	parsed, err := url.Parse(u)
	if err != nil || parsed.Path != `/storage/v1/object/sign/a b/c?d#e/%2e/ü` || parsed.Fragment != "" {
		t.Errorf("found %s, %v", u, err)
	}
	_, err = h.Parse(u)
	refused(t, err, ErrTraversal, "a second layer", u)
}

func FuzzParse(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir, Options{Base: func() string { return "https://example.org/b" }, Now: func() time.Time { return time.Unix(1e9, 0) }})
	const content = "text"
	o, err := s.PutBytes(f.Context(), "o", []byte(content), Claim{})
	if err != nil {
		f.Fatal(err)
	}
	good := s.Sign(o.Ref(), "GET", 0)
	f.Add(good)
	f.Add(strings.Replace(good, "agent-inputs", "agent-inputs/..", 1))
	f.Add(strings.Replace(good, "agent-inputs", "%2e%2e%2f", 1))
	f.Add(strings.Replace(good, "agent-inputs", "%252e", 1))
	f.Add(strings.Replace(good, "example.org", "example.org@evil", 1))
	f.Add(good[:len(good)-2])
	f.Add(s.Sign(o.Ref(), "PUT", 0))
	f.Add(s.Sign(Ref{"tmp", "x"}, "GET", 0))
	f.Add("https://example.org/b/storage/v1/object/sign/")
	kinds := []error{ErrForged, ErrExpired, ErrForeign, ErrTraversal, ErrNotFound}
	f.Fuzz(func(t *testing.T, raw string) {
		ref, err := s.Parse(raw)
		if err == nil {
			u, err := url.Parse(raw)
			if err != nil || ref != o.Ref() || u.Query().Get("token") != good[strings.Index(good, "token=")+6:] {
				t.Errorf("%q was taken as %v", raw, ref)
			}
			return
		}
		known := 0
		for _, kind := range kinds {
			if errors.Is(err, kind) {
				known++
			}
		}
		if known != 1 {
			t.Errorf("%q: found %v, which is of %d kinds", raw, err, known)
		}
		if u, err2 := url.Parse(raw); err2 == nil {
			if token := u.Query().Get("token"); len(token) > maxShown && strings.Contains(err.Error(), token) {
				t.Errorf("the error holds the token: %v", err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, Dir, Bucket, o.Path)); err != nil {
			t.Fatal(err)
		}
	})
}
