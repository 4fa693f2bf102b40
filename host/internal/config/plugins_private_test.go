//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckPrivate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{
		{"private", 0o755}, {"group", 0o775}, {"open", 0o777}, {"open/inner", 0o755}, {"sticky", 0o777 | fs.ModeSticky},
		{"sticky/inner", 0o755},
	} {
		if err := os.Mkdir(at(d.name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, at(d.name+"/file"), "", 0o644)
		write(t, at(d.name+"/writable"), "", 0o646)
		defer chmod(t, at(d.name), 0o700)
	}
	for link, target := range map[string]string{
		"private/link": "file", "private/to-open": "../open/inner/file", "private/to-group": at("group/file"), "sticky/link": "inner/file",
		"private/loop": "loop", "private/up": "../private/../group", "private/to-writable": "writable", "open/link": at("private/file"),
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	chmod(t, at("group"), 0o775)
	chmod(t, at("open"), 0o777)
	chmod(t, at("sticky"), 0o777|fs.ModeSticky)
	open := "open is writable by others (mode 0777): chmod o-w " + at("open")
	for path, want := range map[string][2]string{ // "" = fine; on the way, alone
		"private/file":        {},
		"private":             {},
		"private/link":        {},
		"private/to-group":    {},
		"private/up/file":     {},
		"group/file":          {},
		"sticky/inner/file":   {},
		"sticky/inner":        {},
		"sticky/file":         {"", "sticky/file is in a directory that others may write to (mode 0777)"},
		"sticky/link":         {"", "sticky/link is in a directory that others may write to"},
		"sticky":              {"", "sticky is writable by others"},
		"private/writable":    {"private/writable is writable by others (mode 0646): chmod o-w ", "private/writable is writable by others"},
		"private/to-writable": {"private/writable is writable by others", "private/writable is writable by others"},
		"open/file":           {open, open},
		"open/inner/file":     {open, open},
		"open/link":           {open, open},
		"private/to-open":     {open, open},
		"open":                {open, open},
		"private/loop":        {"more than 40 symlinks", "more than 40 symlinks"},
	} {
		for i, alone := range []bool{false, true} {
			err := CheckPrivate(at(path), alone)
			if want := want[i]; want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, alone %v: got %v, want %q", path, alone, err, want)
			}
		}
	}
	if err := CheckPrivate(at("private/none"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// In a sticky directory a file is safe from others only if it is ours.
func TestCheckPrivateOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root may give files away: this part is not tested")
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "", 0o644)
	if err := os.Chown(file, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if err := CheckPrivate(file, false); err != nil {
		t.Errorf("in a private directory: %v", err)
	}
	chmod(t, dir, 0o777|fs.ModeSticky)
	if err := CheckPrivate(file, false); err == nil || !strings.Contains(err.Error(), "belongs to user 4711") {
		t.Errorf("got %v", err)
	}
}
