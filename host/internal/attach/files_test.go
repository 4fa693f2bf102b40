package attach

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shelfOf is a directory with files, and a function that adds one.
func shelfOf(t *testing.T, dir string) func(name string) string {
	return func(name string) string {
		t.Helper()
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(pngHead), 0o600)); err != nil {
			t.Fatal(err)
		}
		return full
	}
}

func TestCopy(t *testing.T) {
	above := t.TempDir()
	for _, d := range []string{"data", "files", "linked"} {
		if err := os.Mkdir(filepath.Join(above, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(above, "files")
	write := shelfOf(t, dir)
	key := write("tls.key")
	link := func(from, to string) string {
		t.Helper()
		to = filepath.Join(dir, to)
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
		return to
	}
	door := link(dir, "../door") // the operator's way there may be a link
	b := newHost(t, Options{Files: []string{door}, Private: []string{key}})
	for _, name := range []string{write("a.png"), write("mine/deep/a.png"), filepath.Join(door, "a.png")} {
		if err := b.CheckPath(name); err != nil {
			t.Error(err)
		}
		if !b.MayName(name) {
			t.Errorf("%s may not be named", name)
		}
		o, err := b.Copy(context.Background(), "owner-1", name, Claim{})
		if err != nil || o.Name != "a.png" || o.MimeType != "image/png" {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	outside := shelfOf(t, above)("secret")
	twice := filepath.Join(dir, "twice")
	if err := os.Link(outside, twice); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":                                  "no plain path",
		"a.png":                             "no plain path",
		outside:                             "in another directory",
		dir + "-other/a.png":                "in another directory",
		link(outside, "link"):               "no symlink",
		link(above, "up") + "/secret":       "no symlink",
		link("a.png", "inside"):             "no symlink",
		link(b.dir, "to-data") + "/x":       "no symlink",
		dir:                                 "hidden",
		filepath.Join(dir, "mine"):          "a regular file",
		filepath.Join(dir, "absent"):        "found nothing there",
		filepath.Join(dir, "absent", "a"):   "found nothing there",
		dir + "/mine/../a.png":              "no plain path",
		dir + "/../secret":                  "no plain path",
		write(".hidden"):                    "hidden",
		write("mine/.ssh/id"):               "hidden",
		key:                                 "the host's own",
		write("tls.key.1234"):               "the host's own",
		twice:                               "several names",
		"file://" + filepath.Join(dir, "x"): "a file url",
		"FILE:" + filepath.Join(dir, "x"):   "a file url",
	} {
		err := b.CheckPath(name)
		if !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", name, err, want)
		}
		if _, err := b.Copy(context.Background(), "owner-1", name, Claim{}); !errors.Is(err, ErrPath) {
			t.Errorf("copy of %s: %v", name, err)
		}
	}
	if err := newHost(t, Options{}).CheckPath(filepath.Join(dir, "a.png")); !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), "--files DIR") {
		t.Errorf("no directory is named: %v", err)
	}
}

// The data directory is not sent from though it lies in a directory that is named,
// whatever leads there.
func TestDataInsideFiles(t *testing.T) {
	above := t.TempDir()
	data := filepath.Join(above, "deep", "data")
	write := shelfOf(t, data)
	secret, deeper := write("setup.link"), write("before-restore-1/pontoon.db")
	s, err := Open(data, Options{Files: []string{above}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, name := range []string{secret, deeper} {
		if err := s.CheckPath(name); !errors.Is(err, ErrPath) || !strings.Contains(err.Error(), "the host's own directories") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, dir := range []string{data, filepath.Join(data, "before-restore-1")} {
		if _, err := Open(data, Options{Files: []string{dir}}); err == nil || !strings.Contains(err.Error(), "--files") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
