package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func TestPut(t *testing.T) {
	h := newHost(t, Options{})
	content := pngHead + strings.Repeat("x", 200_000)
	o := h.put(t, content, Claim{Name: "../../etc/Ein Bild.html", MimeType: "text/html"})
	want := Object{Bucket: "agent-files", Path: o.Path, MimeType: "image/png", SizeBytes: int64(len(content)), Name: "Ein Bild.html"}
	if o != want {
		t.Errorf("found %+v, expected %+v", o, want)
	}
	if !strings.HasPrefix(o.Path, "agent-inputs/owner-1/") || !strings.HasSuffix(o.Path, ".png") {
		t.Errorf("path: found %s", o.Path)
	}
	if names := h.files(t); !slices.Equal(names, []string{o.Ref().String(), o.Ref().String() + ".json"}) {
		t.Errorf("on disk: found %v", names)
	}
	f, again, err := h.Open(o.Ref())
	if err != nil || again != o {
		t.Fatalf("found %+v, %v, expected %+v", again, err, o)
	}
	b, err := io.ReadAll(f)
	if err != nil || string(b) != content {
		t.Errorf("found %d bytes, %v, expected what was put", len(b), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Delete(o.Ref()); err != nil {
		t.Error(err)
	}
	h.empty(t)
	_, err = h.Stat(o.Ref())
	refused(t, err, ErrNotFound, "found nothing at agent-files/agent-inputs/owner-1/")
	refused(t, h.Delete(o.Ref()), ErrNotFound, "")
}

func TestPutRefused(t *testing.T) {
	h := newHost(t, Options{MaxBytes: 1000})
	for name, c := range map[string]struct {
		owner   string
		content string
		claim   Claim
		want    error
		text    string
	}{
		"empty":           {"o", "", Claim{}, ErrEmpty, "found no bytes"},
		"too large":       {"o", strings.Repeat("x", 1001), Claim{}, ErrTooLarge, "more than 1000 bytes"},
		"over its limit":  {"o", strings.Repeat("x", 11), Claim{Limit: 10}, ErrTooLarge, "more than 10 bytes"},
		"limit of no use": {"o", strings.Repeat("x", 1001), Claim{Limit: 5000}, ErrTooLarge, "more than 1000 bytes"},
		"type":            {"o", "BM bitmap", Claim{MimeType: "image/png"}, ErrType, "found image/bmp, expected one of image/jpeg, "},
		"no owner":        {"", "x", Claim{}, ErrOwner, "found 0 characters"},
		"long owner":      {strings.Repeat("o", 65), "x", Claim{}, ErrOwner, "found 65 characters"},
		"owner up":        {"..", "x", Claim{}, ErrOwner, "found '.'"},
		"owner below":     {"a/b", "x", Claim{}, ErrOwner, "found '/'"},
		"owner ü":         {"ü", "x", Claim{}, ErrOwner, "expected letters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.PutBytes(context.Background(), c.owner, []byte(c.content), c.claim)
			refused(t, err, c.want, c.text)
		})
	}
	h.empty(t)
	h.put(t, strings.Repeat("x", 1000), Claim{}) // just fits
	if _, err := h.PutBytes(context.Background(), strings.Repeat("_", 64), []byte("x"), Claim{}); err != nil {
		t.Error(err)
	}
}

// A stream that breaks leaves nothing, wherever it does.
func TestPutBroken(t *testing.T) {
	h := newHost(t, Options{})
	broken := errors.New("cable cut")
	for _, at := range []int{0, 1, 511, 512, 513, 100_000} {
		for _, why := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("wrapped: %w", io.EOF)} {
			r := io.MultiReader(bytes.NewReader(make([]byte, at)), iotest.ErrReader(why))
			if _, err := h.Put(context.Background(), "o", r, Claim{}); !errors.Is(err, why) {
				t.Errorf("%d bytes: found %v, expected %v", at, err, why)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := io.MultiReader(strings.NewReader(strings.Repeat("x", 1000)), readFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }))
	if _, err := h.Put(ctx, "o", r, Claim{}); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, expected the context's end", err)
	}
	h.empty(t)
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// One byte at a time is the same file.
func TestPutSlowly(t *testing.T) {
	h := newHost(t, Options{})
	o, err := h.Put(context.Background(), "o", iotest.OneByteReader(strings.NewReader(pdfHead+strings.Repeat("y", 2000))), Claim{})
	if err != nil || o.MimeType != "application/pdf" || o.SizeBytes != 2009 || o.Name != "attachment.pdf" {
		t.Errorf("found %+v, %v", o, err)
	}
}

func TestConcurrentPuts(t *testing.T) {
	h := newHost(t, Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 40 {
		wg.Go(func() {
			content := fmt.Sprintf("file %d", i)
			o, err := h.PutBytes(context.Background(), fmt.Sprint("owner", i%3), []byte(content), Claim{Name: "same.txt"})
			if err != nil {
				t.Error(err)
				return
			}
			f, _, err := h.Open(o.Ref())
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(f)
			if err = errors.Join(err, f.Close()); err != nil || string(b) != content {
				t.Errorf("found %q, %v, expected %q", b, err, content)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[o.Path] = true
		})
	}
	wg.Wait()
	if len(seen) != 40 || len(h.files(t)) != 80 {
		t.Errorf("found %d paths and %d files, expected 40 and 80", len(seen), len(h.files(t)))
	}
}

// No name on the disk is, or holds, a client's.
func TestNames(t *testing.T) {
	h := newHost(t, Options{})
	for given, want := range map[string]string{
		"":                                   "attachment.txt",
		"..":                                 "attachment.txt",
		". .":                                "attachment.txt",
		"../../secret.txt":                   "secret.txt",
		`C:\Users\me\plan.txt`:               "plan.txt",
		"a\x00b\r\nSet-Cookie: x.txt":        "abSet-Cookie: x.txt",
		"exe.\u202Etxt.bat":                  "exe.txt.bat",
		"bad\xff.txt":                        "bad.txt",
		"  übersicht 最終.txt ":                "übersicht 最終.txt",
		"clientname.txt.json":                "clientname.txt.json",
		strings.Repeat("最", 300) + ".txt":    strings.Repeat("最", 65) + ".txt",
		"x." + strings.Repeat("longer", 100): "x." + strings.Repeat("longer", 33),
		"trailing/":                          "attachment.txt",
	} {
		o := h.put(t, "text", Claim{Name: given})
		if o.Name != want {
			t.Errorf("%q: found %q, expected %q", given, o.Name, want)
		}
		if given != "" && strings.Contains(o.Path, strings.TrimSuffix(want, ".txt")) {
			t.Errorf("%q is in the path %s", given, o.Path)
		}
		p, err := o.Ref().place()
		if err != nil || p.ref() != o.Ref() {
			t.Errorf("%s is no path of ours: %v", o.Path, err)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Run("ok", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir, Options{})
		for name, mode := range map[string]fs.FileMode{Dir: 0o700, Dir + "/tmp": 0o700, Dir + "/agent-files": 0o700, KeyFile: 0o600} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
				t.Errorf("%s: found %v, %v, expected %v", name, info, err, mode)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.PutBytes(context.Background(), "o", []byte("x"), Claim{}); err == nil {
			t.Error("a closed store took a file")
		}
	})
	t.Run("made private", func(t *testing.T) {
		dir := t.TempDir()
		open(t, dir, Options{})
		for _, name := range []string{Dir, KeyFile} {
			if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		open(t, dir, Options{})
		for _, name := range []string{Dir, KeyFile} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: found %v, %v, expected it private", name, info.Mode(), err)
			}
		}
	})
}

func TestOpenRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		o    Options
		want string
	}{
		"errNoDirectory": {func(t *testing.T, dir string) { _ = os.Remove(dir) }, Options{}, "no such file"},
		"errSymlink":     {func(t *testing.T, dir string) { symlink(t, t.TempDir(), filepath.Join(dir, Dir)) }, Options{}, "attachments: found a symlink, expected a directory"},
		"errLinkInside": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "other"), 0o700); err != nil {
				t.Fatal(err)
			}
			symlink(t, "other", filepath.Join(dir, Dir))
		}, Options{}, "attachments: found a symlink"},
		"errFile":    {func(t *testing.T, dir string) { write(t, filepath.Join(dir, Dir), "x") }, Options{}, "attachments: found a file"},
		"errKeyLink": {func(t *testing.T, dir string) { symlink(t, "other", filepath.Join(dir, KeyFile)) }, Options{}, "attachments.key: found a symlink, expected a file"},
		"errType":    {func(*testing.T, string) {}, Options{Types: []string{"png"}}, `found "png", expected TYPE/SUBTYPE or TYPE/*`},
		"errAnyType": {func(*testing.T, string) {}, Options{Types: []string{"*/*"}}, `found "*/*"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			c.make(t, dir)
			s, err := Open(dir, c.o)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, expected %q", err, c.want)
			}
		})
	}
}

// A symlink in the store is never followed, also not to inside of it.
func TestPlantedSymlinks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	for name, plant := range map[string]func(t *testing.T, h *host, o, other Object){
		"file outside": func(t *testing.T, h *host, o, _ Object) {
			_ = os.Remove(h.disk(o.Ref().String()))
			symlink(t, secret, h.disk(o.Ref().String()))
		},
		"file inside": func(t *testing.T, h *host, o, other Object) {
			_ = os.Remove(h.disk(o.Ref().String()))
			symlink(t, filepath.Base(other.Path), h.disk(o.Ref().String()))
		},
		"sidecar": func(t *testing.T, h *host, o, other Object) {
			_ = os.Remove(h.disk(o.Ref().String() + ".json"))
			symlink(t, filepath.Base(other.Path)+".json", h.disk(o.Ref().String()+".json"))
		},
		"owner": func(t *testing.T, h *host, o, _ Object) {
			from := h.disk("agent-files/agent-inputs/owner-1")
			if err := os.Rename(from, from+"x"); err != nil {
				t.Fatal(err)
			}
			symlink(t, "owner-1x", from)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Options{})
			o, other := h.put(t, "secret", Claim{}), h.put(t, "secret", Claim{})
			plant(t, h, o, other)
			if _, err := h.Stat(o.Ref()); err == nil || !strings.Contains(err.Error(), "found a symlink") {
				t.Errorf("stat: found %v", err)
			}
			if f, _, err := h.Open(o.Ref()); err == nil {
				_ = f.Close()
				t.Error("it was opened")
			}
			if _, err := h.Parse(h.get(o)); err == nil {
				t.Error("its url was taken")
			}
			if r := do(t, "GET", h.get(o), nil, nil); r.status != 500 || strings.Contains(r.body, "secret") {
				t.Errorf("found %d %q", r.status, r.body)
			}
			if name == "owner" {
				if _, err := h.PutBytes(context.Background(), "owner-1", []byte("x"), Claim{}); err == nil || !strings.Contains(err.Error(), "found a symlink, expected a directory") {
					t.Errorf("put: found %v", err)
				}
			}
			if _, err := os.Stat(secret); err != nil {
				t.Error(err)
			}
		})
	}
}

// What does not fit what is beside it is not given out.
func TestDamaged(t *testing.T) {
	h := newHost(t, Options{})
	for name, damage := range map[string]func(path string) error{
		"cut off":        func(path string) error { return os.Truncate(path, 1) },
		"sidecar broken": func(path string) error { return os.WriteFile(path+".json", []byte("{"), 0o600) },
		"sidecar huge":   func(path string) error { return os.Truncate(path+".json", maxJSON+1) },
		"sidecar type": func(path string) error {
			return os.WriteFile(path+".json", []byte(`{"size_bytes":4,"mime_type":"a\r\nb"}`), 0o600)
		},
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := h.put(t, "text", Claim{})
			if err := damage(h.disk(o.Ref().String())); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Stat(o.Ref()); err == nil || errors.Is(err, ErrNotFound) {
				t.Errorf("found %v, expected what is wrong", err)
			}
		})
	}
	o := h.put(t, "text", Claim{})
	if err := os.Remove(h.disk(o.Ref().String() + ".json")); err != nil {
		t.Fatal(err)
	}
	_, err := h.Stat(o.Ref())
	refused(t, err, ErrNotFound, "")
}

func TestRefRefused(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	for name, c := range map[string]struct {
		ref  Ref
		want error
	}{
		"zero":       {Ref{}, ErrTraversal},
		"up":         {Ref{Bucket, "agent-inputs/../tmp"}, ErrTraversal},
		"absolute":   {Ref{Bucket, "/etc/passwd"}, ErrTraversal},
		"bucket":     {Ref{"tmp", o.Path}, ErrNotFound},
		"bucket up":  {Ref{"..", o.Path}, ErrTraversal},
		"sidecar":    {Ref{Bucket, o.Path + ".json"}, ErrNotFound},
		"upper case": {Ref{Bucket, strings.ToUpper(o.Path)}, ErrNotFound},
		"shallow":    {Ref{Bucket, "agent-inputs"}, ErrNotFound},
		"no uuid":    {Ref{Bucket, "agent-inputs/owner-1/00000000-0000-0000-0000-00000000000g.txt"}, ErrNotFound},
		"urn":        {Ref{Bucket, "agent-inputs/owner-1/urn:uuid:" + filepath.Base(o.Path)}, ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Stat(c.ref)
			refused(t, err, c.want, "expected")
			_, _, err = h.Open(c.ref)
			refused(t, err, c.want, "expected")
			refused(t, h.Delete(c.ref), c.want, "expected")
		})
	}
}
