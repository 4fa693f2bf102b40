package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// engine is the one there is.
var engine Engine = sqlite.Offline{}

// host is a data directory in use.
type host struct {
	t     *testing.T
	dir   string
	store *sqlite.Store
	conv  *ledger.Conversation
}

func start(t *testing.T, dir string) *host {
	t.Helper()
	s, err := sqlite.Open(t.Context(), blank.Dir(t, dir), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h := &host{t: t, dir: dir, store: s}
	row, err := s.Channel(t.Context(), "c")
	if err != nil {
		row, err = s.CreateChannel(t.Context(), ledger.Channel{ID: "id", Name: "c", Kind: "bridge", Agent: "echo"}, nil, ledger.Change{Actor: "test", Action: "test"})
	}
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.Own(t.Context(), row.Key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Conversation(t.Context(), chain, "conv")
	if err != nil {
		t.Fatal(err)
	}
	h.conv = r.Conversation
	return h
}

func (h *host) say(text string) {
	h.t.Helper()
	done := make(chan error, 1)
	h.store.Append(&ledger.Unit{Conversation: h.conv, In: &ledger.Row{State: ledger.Handled, Text: text}}, func(r ledger.Result) { done <- r.Err })
	if err := await.Value(h.t, "the commit", done); err != nil {
		h.t.Error(err)
	}
}

func (h *host) texts() []string {
	h.t.Helper()
	entries, err := h.store.Before(h.t.Context(), ledger.Scope{Channel: h.conv.Tail.Channel}, 0, 100_000)
	if err != nil {
		h.t.Fatal(err)
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		out[len(entries)-1-i] = e.Text
	}
	return out
}

// A backup of a busy host holds all that was committed before it began, in
// order and without a gap, and what it holds comes back whole.
func TestBackupOfBusyHost(t *testing.T) {
	h := start(t, t.TempDir())
	files, err := attach.Open(h.dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	o, err := files.PutBytes(t.Context(), "owner", []byte("%PDF-1.7\nhello"), attach.Claim{Name: "a.pdf"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		h.say(fmt.Sprint(i))
	}
	stop := make(chan struct{})
	var wrote atomic.Int64
	wrote.Store(50)
	var wg sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	defer end()
	wg.Go(func() {
		for ; ; wrote.Add(1) {
			select {
			case <-stop:
				return
			default:
				h.say(fmt.Sprint(wrote.Load()))
			}
		}
	})
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	await.Until(t, "the host is busy", func() bool { return wrote.Load() > 60 })
	if err := Write(t.Context(), engine, h.dir, file); err != nil {
		t.Fatal(err)
	}
	end()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	dir := filepath.Join(t.TempDir(), "new")
	if aside, err := Restore(t.Context(), engine, file, dir); err != nil || aside != "" {
		t.Fatalf("%q, %v", aside, err)
	}
	got := start(t, dir).texts()
	if len(got) < 60 || len(got) > int(wrote.Load()) {
		t.Errorf("%d messages came back, %d were written", len(got), wrote.Load())
	}
	for i, text := range got {
		if text != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, text)
		}
	}
	back, err := attach.Open(dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Close() })
	if again, err := back.Stat(o.Ref()); err != nil || again != o {
		t.Errorf("attachment: %+v, %v", again, err)
	}
	for _, secret := range []string{"admin.key", attach.KeyFile} {
		if names := entries(t, file); slices.Contains(names, secret) {
			t.Errorf("%s is in it", secret)
		}
	}
}

func entries(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			return names
		}
		names = append(names, h.Name)
	}
}

func TestRestoreRefuses(t *testing.T) {
	h := start(t, t.TempDir())
	h.say("hello")
	file := filepath.Join(t.TempDir(), "b")
	if err := Write(t.Context(), engine, h.dir, file); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), engine, h.dir, file); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over another: %v", err)
	}
	if err := Write(t.Context(), engine, t.TempDir(), file+"2"); err == nil {
		t.Error("of nothing")
	}
	if _, err := Restore(t.Context(), engine, file, h.dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("over a running host: %v", err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"no archive": {[]byte("hello"), "is no backup"},
		"cut off":    {whole[:len(whole)/2], "is broken"},
		"too long":   {longer(t, whole), "is broken"},
		"nothing":    {archive(t, map[string]string{}), "found no pontoon.db"},
		"traversing": {archive(t, map[string]string{"../x": "y"}), "expected pontoon.db"},
		"a key":      {archive(t, map[string]string{"admin.key": "y"}), "expected pontoon.db"},
		"no SQLite":  {archive(t, map[string]string{"pontoon.db": "y"}), "pontoon.db"},
	} {
		t.Run(name, func(t *testing.T) {
			bad, dir := filepath.Join(t.TempDir(), "bad"), t.TempDir()
			if err := os.WriteFile(bad, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), engine, bad, dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			if hidden, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left)+len(hidden) != 1 { // the lock
				t.Errorf("left behind: %v %v", left, hidden)
			}
		})
	}
}

// longer is an archive behind whose end there is more than tar pads it with.
func longer(t *testing.T, whole []byte) []byte {
	t.Helper()
	var more bytes.Buffer
	z := gzip.NewWriter(&more)
	if _, err := z.Write(make([]byte, maxPadding+1)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(whole), more.Bytes()...)
}

// A byte that changed on its way is noticed, wherever it is: the database may look
// whole without it.
func TestRestoreNoticesEveryFlippedByte(t *testing.T) {
	h := start(t, t.TempDir())
	h.say("hello")
	file := filepath.Join(t.TempDir(), "b")
	if err := Write(t.Context(), engine, h.dir, file); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	said := unpacked(whole)
	const header = 10 // of gzip: a time and a system, which say nothing
	const tries = 50
	for i := range tries {
		at := header + i*(len(whole)-header)/tries
		whole[at] ^= 0x10
		bad := filepath.Join(t.TempDir(), "bad")
		if err := os.WriteFile(bad, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		// A bit may be flipped that says nothing, such as one that fills up a byte.
		if _, err := Restore(t.Context(), engine, bad, t.TempDir()); err == nil && !bytes.Equal(unpacked(whole), said) {
			t.Errorf("byte %d of %d was flipped, and the backup restored", at, len(whole))
		}
		whole[at] ^= 0x10
	}
}

// unpacked is what a gzip file says; nil = it is damaged.
func unpacked(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	said, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return said
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// What is there is moved aside, not lost.
func TestRestoreOver(t *testing.T) {
	h := start(t, t.TempDir())
	h.say("old")
	cookie := ledger.Session{Hash: []byte("a hash of 32 bytes, as they all are"), Lifetime: ledger.Lifetime{ExpiresAt: time.Now().Add(time.Hour)}}
	if _, _, err := h.store.CreateSession(t.Context(), cookie, time.Time{}, ledger.Change{Actor: "test", Action: "login"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if err := Write(context.Background(), engine, h.dir, file); err != nil {
		t.Fatal(err)
	}
	h.say("newer")
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	aside, err := Restore(t.Context(), engine, file, h.dir)
	if err != nil || filepath.Dir(aside) != h.dir {
		t.Fatalf("%q, %v", aside, err)
	}
	if err := CutOff(engine, h.dir); err != nil {
		t.Error(err)
	}
	restored := start(t, h.dir)
	if got := restored.texts(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("restored %q", got)
	}
	if _, err := restored.store.SessionByHash(t.Context(), cookie.Hash); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the session of the backup: %v", err)
	}
	if err := os.Remove(filepath.Join(h.dir, sqlite.File)); err != nil { // as a restore leaves it that is cut off
		t.Fatal(err)
	}
	if err := CutOff(engine, h.dir); err == nil || !strings.Contains(err.Error(), aside) {
		t.Errorf("cut off: %v", err)
	}
	if got := start(t, aside).texts(); !slices.Equal(got, []string{"old", "newer"}) {
		t.Errorf("aside is %q", got)
	}
}

// A copy that a crash cut off is no backup, and does not keep the next from
// being made; the newest three are kept.
func TestBeforeMigration(t *testing.T) {
	h := start(t, t.TempDir())
	h.say("hello")
	if err := os.MkdirAll(filepath.Join(h.dir, dirName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, dirName, partName), []byte(magic), 0o600); err != nil {
		t.Fatal(err)
	}
	if k, ok := Newest(h.dir); ok {
		t.Errorf("named %+v", k)
	}
	var last string
	began := time.Now()
	for i := range keepAutomatic + 2 {
		var err error
		if last, err = BeforeMigration(t.Context(), engine, h.dir, 1); err != nil {
			t.Fatal(err)
		}
		at := began.Add(time.Duration(i-10) * time.Hour) // by the file system's clock two may be as old
		if err := os.Chtimes(last, at, at); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the next has another name", func() bool { return time.Since(began) > time.Duration(i+1)*2*time.Millisecond })
	}
	abs, err := filepath.Abs(last)
	if k, ok := Newest(h.dir); err != nil || !ok || k.File != abs {
		t.Errorf("newest is %+v, expected %s", k, abs)
	}
	if left, err := os.ReadDir(filepath.Join(h.dir, dirName)); err != nil || len(left) != keepAutomatic {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	if _, err := Restore(t.Context(), engine, last, t.TempDir()); err != nil {
		t.Error(err)
	}
}
