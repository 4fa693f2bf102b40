package attach

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

func (h *host) reserve(t testing.TB, c Claim, size int64) Reservation {
	t.Helper()
	r, err := h.Reserve("owner-1", c, size)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReserve(t *testing.T) {
	h := newHost(t, Options{})
	content := pngHead + strings.Repeat("x", 5000)
	res := h.reserve(t, Claim{Name: "../a.png", MimeType: "image/png"}, int64(len(content)))
	if !res.ExpiresAt.Equal(h.clock.now().Add(time.Hour)) || res.Object.Name != "a.png" || res.Object.MimeType != "image/png" {
		t.Errorf("found %+v", res)
	}
	_, err := h.Stat(res.Object.Ref())
	refused(t, err, ErrNotFound, "")
	if r := do(t, "GET", res.URL, nil, nil); r.status != 403 {
		t.Errorf("GET with a token for PUT: found %d", r.status)
	}
	if r := do(t, "GET", h.get(res.Object), nil, nil); r.status != 404 {
		t.Errorf("GET before: found %d", r.status)
	}
	r := do(t, "PUT", res.URL, nil, strings.NewReader(content))
	var o Object
	if err := json.Unmarshal([]byte(r.body), &o); err != nil || r.status != 201 || o != res.Object {
		t.Errorf("found %d %s, %v, expected 201 %+v", r.status, r.body, err, res.Object)
	}
	if got, err := h.Stat(o.Ref()); err != nil || got != res.Object {
		t.Errorf("found %+v, %v", got, err)
	}
	if r := do(t, "GET", h.get(o), nil, nil); r.status != 200 || r.body != content {
		t.Errorf("found %d, %d bytes", r.status, len(r.body))
	}
	// Once only, also with the same bytes.
	if r := do(t, "PUT", res.URL, nil, strings.NewReader(content)); r.status != 409 {
		t.Errorf("twice: found %d, expected 409", r.status)
	}
	if names := h.files(t); !slices.Equal(names, []string{o.Ref().String(), o.Ref().String() + ".json"}) {
		t.Errorf("on disk: found %v", names)
	}
	if err := h.Delete(o.Ref()); err != nil {
		t.Fatal(err)
	}
	if r := do(t, "PUT", res.URL, nil, strings.NewReader(content)); r.status != 404 {
		t.Errorf("after delete: found %d, expected 404", r.status)
	}
	h.empty(t)
}

func TestReserveRefused(t *testing.T) {
	h := newHost(t, Options{MaxBytes: 1000})
	for name, c := range map[string]struct {
		owner string
		claim Claim
		size  int64
		want  error
		text  string
	}{
		"owner":     {"a/b", Claim{}, 1, ErrOwner, ""},
		"empty":     {"o", Claim{}, 0, ErrEmpty, "found 0 bytes"},
		"negative":  {"o", Claim{}, -1, ErrEmpty, "found -1 bytes"},
		"too large": {"o", Claim{}, 1001, ErrTooLarge, "found 1001 bytes, expected at most 1000"},
		"its limit": {"o", Claim{Limit: 5}, 6, ErrTooLarge, "at most 5"},
		"type":      {"o", Claim{MimeType: "application/wasm"}, 1, ErrType, "found application/wasm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Reserve(c.owner, c.claim, c.size)
			refused(t, err, c.want, c.text)
		})
	}
	h.empty(t)
}

// What is announced as something must be it; application/octet-stream is anything.
func TestReservedTypes(t *testing.T) {
	h := newHost(t, Options{})
	for name, c := range map[string]struct {
		declared, content string
		as                string
		status            int
	}{
		"ok":            {"image/png", pngHead, "image/png", 201},
		"parameters":    {"Text/Plain; charset=utf-8", "text", "text/plain", 201},
		"audio":         {"audio/webm", "\x1A\x45\xDF\xA3 webm", "audio/webm", 201},
		"nothing":       {"", pngHead, octetStream, 201},
		"html":          {"text/html", "<html>x</html>", octetStream, 201},
		"svg":           {"image/svg+xml", "<svg>", octetStream, 201},
		"csv":           {"text/csv", "a,b", "text/plain", 201},
		"errOther":      {"image/png", "GIF89a image", "image/png", 415},
		"errHTML":       {"text/plain", "<html><script>", "text/plain", 415},
		"errNotAllowed": {"", "BM bitmap", octetStream, 415},
	} {
		t.Run(name, func(t *testing.T) {
			res := h.reserve(t, Claim{MimeType: c.declared}, int64(len(c.content)))
			if res.Object.MimeType != c.as {
				t.Errorf("found %s, expected %s", res.Object.MimeType, c.as)
			}
			if r := do(t, "PUT", res.URL, nil, strings.NewReader(c.content)); r.status != c.status {
				t.Errorf("found %d %s, expected %d", r.status, r.body, c.status)
			}
			if o, err := h.Stat(res.Object.Ref()); (err == nil) != (c.status == 201) || err == nil && o.MimeType != c.as {
				t.Errorf("found %+v, %v", o, err)
			}
		})
	}
}

func TestPutSizes(t *testing.T) {
	h := newHost(t, Options{})
	res := h.reserve(t, Claim{}, 1000)
	for name, c := range map[string]struct {
		n      int
		length bool // announced
		status int
	}{
		"none":               {0, true, 400},
		"none, unannounced":  {0, false, 400},
		"short":              {999, true, 400},
		"short, unannounced": {999, false, 400},
		"long":               {1001, true, 413},
		"long, unannounced":  {1001, false, 413},
		"much too long":      {200_000, false, 413},
	} {
		t.Run(name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(strings.Repeat("x", c.n))
			if !c.length {
				body = io.MultiReader(body)
			}
			if r := do(t, "PUT", res.URL, nil, body); r.status != c.status {
				t.Errorf("found %d %s, expected %d", r.status, r.body, c.status)
			}
			if names := h.files(t); len(names) != 1 || !strings.HasPrefix(names[0], reservedDir) {
				t.Errorf("found %v, expected the reservation alone", names)
			}
		})
	}
	if r := do(t, "PUT", res.URL, nil, io.MultiReader(strings.NewReader(strings.Repeat("x", 1000)))); r.status != 201 {
		t.Errorf("found %d %s, expected that it can still be made", r.status, r.body)
	}
}

// A PUT that breaks half-way leaves nothing visible, and can be tried again.
func TestPutBreaks(t *testing.T) {
	h := newHost(t, Options{})
	for _, sent := range []int{1, 300, 100_000} {
		res := h.reserve(t, Claim{}, 200_000)
		conn := startPut(t, h, res, sent)
		until(t, "the upload to begin", func() bool { return h.claimed(res) })
		if _, err := h.Stat(res.Object.Ref()); err == nil {
			t.Error("half of a file is visible")
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		until(t, "the upload to end", func() bool { return !h.claimed(res) })
		if names := h.files(t); slices.ContainsFunc(names, func(n string) bool {
			return strings.Contains(n, res.Object.Path) || strings.HasPrefix(n, tempDir)
		}) {
			t.Errorf("%d bytes: found %v", sent, names)
		}
		if r := do(t, "PUT", res.URL, nil, strings.NewReader(strings.Repeat("x", 200_000))); r.status != 201 {
			t.Errorf("again: found %d %s", r.status, r.body)
		}
	}
}

// startPut sends the head of a PUT and some of the body, and leaves it so.
func startPut(t *testing.T, h *host, res Reservation, sent int) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(h.url, "http://")
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", strings.TrimPrefix(res.URL, h.url), address, res.Object.SizeBytes, strings.Repeat("x", sent))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func (h *host) claimed(res Reservation) bool {
	p, _ := res.Object.Ref().place()
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.busy[p]
	return ok
}

// until waits for a condition; what says which.
var until = await.Until

// Of several at a time one is taken.
func TestConcurrentUploads(t *testing.T) {
	h := newHost(t, Options{})
	res := h.reserve(t, Claim{}, 100_000)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 10 {
		wg.Go(func() {
			r := do(t, "PUT", res.URL, nil, strings.NewReader(strings.Repeat(string(rune('a'+i)), 100_000)))
			mu.Lock()
			defer mu.Unlock()
			got[r.status]++
		})
	}
	wg.Wait()
	if got[http.StatusCreated] != 1 || got[http.StatusConflict] != 9 {
		t.Errorf("found %v, expected one 201 and nine 409", got)
	}
	r := do(t, "GET", h.get(res.Object), nil, nil)
	if len(r.body) != 100_000 || strings.Trim(r.body, r.body[:1]) != "" {
		t.Error("found a mixture of uploads")
	}
}

func TestReservationExpires(t *testing.T) {
	h := newHost(t, Options{})
	res := h.reserve(t, Claim{}, 4)
	other := h.reserve(t, Claim{}, 4)
	h.clock.add(time.Hour)
	if r := do(t, "PUT", res.URL, nil, strings.NewReader("text")); r.status != 403 {
		t.Errorf("found %d, expected 403", r.status)
	}
	// Signing anew makes no reservation longer, and none of another path.
	if r := do(t, "PUT", h.Sign(res.Object.Ref(), "PUT", 0), nil, strings.NewReader("text")); r.status != 403 {
		t.Errorf("signed anew: found %d, expected 403", r.status)
	}
	elsewhere := Ref{Bucket, strings.Replace(other.Object.Path, "owner-1", "owner-2", 1)}
	if r := do(t, "PUT", h.Sign(elsewhere, "PUT", 0), nil, strings.NewReader("text")); r.status != 404 {
		t.Errorf("elsewhere: found %d, expected 404", r.status)
	}
	if r := do(t, "PUT", h.Sign(Ref{Bucket, "agent-inputs/o/0b0f9d2e-0000-4000-8000-000000000000.txt"}, "PUT", 0), nil, strings.NewReader("text")); r.status != 404 {
		t.Errorf("never reserved: found %d, expected 404", r.status)
	}
}

// A token for PUT changes nothing that is there by other means.
func TestPutOverObject(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	if r := do(t, "PUT", h.Sign(o.Ref(), "PUT", 0), nil, strings.NewReader("TEXT")); r.status != 409 {
		t.Errorf("found %d, expected 409", r.status)
	}
	if r := do(t, "PUT", h.get(o), nil, strings.NewReader("TEXT")); r.status != 403 {
		t.Errorf("token for GET: found %d, expected 403", r.status)
	}
	if r := do(t, "GET", h.get(o), nil, nil); r.body != "text" {
		t.Errorf("found %q", r.body)
	}
}

func TestReservationDamaged(t *testing.T) {
	h := newHost(t, Options{})
	res := h.reserve(t, Claim{}, 4)
	p, _ := res.Object.Ref().place()
	write(t, h.disk(p.reserved()), "{")
	if r := do(t, "PUT", res.URL, nil, strings.NewReader("text")); r.status != 500 {
		t.Errorf("found %d, expected 500", r.status)
	}
	if err := os.Remove(h.disk(p.reserved())); err != nil {
		t.Fatal(err)
	}
	if r := do(t, "PUT", res.URL, nil, strings.NewReader("text")); r.status != 404 {
		t.Errorf("found %d, expected 404", r.status)
	}
}
