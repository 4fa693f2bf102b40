package attach

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// What files begin with.
const (
	pngHead = "\x89PNG\x0D\x0A\x1A\x0A"
	pdfHead = "%PDF-1.7\n"
)

// clock is moved by tests.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(c.at.Load(), 0) }
func (c *clock) add(by time.Duration) { c.at.Add(int64(by / time.Second)) }

// host is a store behind a real server.
type host struct {
	*Store
	dir   string // the data directory
	url   string
	clock *clock
}

func newHost(t testing.TB, o Options) *host {
	t.Helper()
	h := &host{dir: t.TempDir(), clock: &clock{}}
	h.clock.at.Store(time.Now().Unix())
	o.Now = h.clock.now
	if o.Base == nil {
		o.Base = func() string { return h.url }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h.Store = open(t, h.dir, o)
	mux := http.NewServeMux()
	mux.Handle(SignPath, h.Store)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (h *host) put(t testing.TB, content string, c Claim) Object {
	t.Helper()
	o, err := h.PutBytes(context.Background(), "owner-1", []byte(content), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (h *host) get(o Object) string { return h.Sign(o.Ref(), http.MethodGet, 0) }

// disk is the path of a file in the store.
func (h *host) disk(name string) string { return filepath.Join(h.dir, Dir, filepath.FromSlash(name)) }

// files lists all that is in the store, and in tmp.
func (h *host) files(t testing.TB) []string {
	t.Helper()
	var names []string
	root := filepath.Join(h.dir, Dir)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (h *host) empty(t testing.TB) {
	t.Helper()
	if names := h.files(t); len(names) > 0 {
		t.Errorf("found %v, expected nothing", names)
	}
}

// refused checks an error: of its kind alone, its text, and no token in it.
func refused(t testing.TB, err, want error, text string, urls ...string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("found %v, expected %v … %s", err, want, text)
		return
	}
	kinds := 0
	for _, kind := range []error{ErrForged, ErrExpired, ErrForeign, ErrTraversal, ErrNotFound, ErrElsewhere, ErrTooLarge, ErrType, ErrEmpty, ErrShort, ErrOwner, ErrTaken, ErrTooMany, ErrFull} {
		if errors.Is(err, kind) {
			kinds++
		}
	}
	if kinds != 1 {
		t.Errorf("%v is of %d kinds, expected one", err, kinds)
	}
	tokenIn(t, err, urls...)
}

var tokenText = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`)

// tokenIn fails if the error holds any longer part of a url's token.
func tokenIn(t testing.TB, err error, urls ...string) {
	t.Helper()
	for _, u := range urls {
		_, token, _ := strings.Cut(u, "token=")
		for _, part := range tokenText.FindAllString(token, -1) {
			if strings.Contains(err.Error(), part) {
				t.Errorf("the error holds a token: %v", err)
			}
		}
	}
}

func symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal("no symlinks here:", err)
	}
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
