//go:build unix

package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/program"
)

// tree makes files below a directory, and returns it without links in its path.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What holds something of the host's is opened without that, and never to write.
func TestPrivateStaysPrivate(t *testing.T) {
	dir := tree(t, "srv/data/admin.key", "srv/app/lib", "srv/tls.key", "srv/readme", "other/file")
	if err := os.Symlink("data", filepath.Join(dir, "srv", "link")); err != nil {
		t.Fatal(err)
	}
	own := private{filepath.Join(dir, "srv", "data"), filepath.Join(dir, "srv", "tls.key")}
	for path, want := range map[string][]string{
		"other": {"other"}, "srv/app": {"srv/app"}, "srv/data": nil, "srv/link": nil, "srv/data/admin.key": nil,
		"srv": {"srv/app", "srv/readme"}, ".": {"other", "srv/app", "srv/readme"},
	} {
		var box child.Sandbox
		if err := own.read(&box, filepath.Join(dir, path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var got []string
		for _, open := range box.Read {
			got = append(got, strings.TrimPrefix(open, dir+"/"))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s opens %q, expected %q", path, got, want)
		}
	}
	for path, ok := range map[string]bool{"other": true, "srv/app": true, "srv": false, "srv/data": false, "srv/link": false, "srv/data/x": false, "srv/tls.key": false} {
		var box child.Sandbox
		if err := own.write(&box, filepath.Join(dir, path)); (err == nil) != ok || (len(box.Write) > 0) != ok {
			t.Errorf("%s: %v, opens %q", path, err, box.Write)
		}
	}
}

// A program gets what lies beside it, if that is its own directory.
func TestProgramFiles(t *testing.T) {
	dir := tree(t, "plugins.yaml", "alone", "bin/program", "venv/pyvenv.cfg", "venv/bin/python", "py/bin/python3", "py/lib/os.py", "adapter/main.py", "local/one.conf")
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		command []string
		want    []string
	}{
		"beside plugins.yaml": {[]string{at("alone")}, []string{"alone"}},
		"own directory":       {[]string{at("bin/program"), "--flag"}, []string{"bin/program", "bin"}},
		"virtual environment": {[]string{at("venv/bin/python"), "adapter/main.py"}, []string{"venv/bin/python", "venv", "adapter/main.py", "adapter"}},
		"interpreter":         {[]string{at("py/bin/python3"), "-c", "pass"}, []string{"py/bin/python3", "py"}},
		"second file":         {[]string{at("bin/program"), "adapter/main.py", at("local/one.conf")}, []string{"bin/program", "bin", "adapter/main.py", "adapter", "local/one.conf"}},
		"the host itself":     {[]string{config.OwnBinary, "adapter/main.py"}, []string{"alone"}},
	} {
		prog := program.Program{Path: c.command[0], Args: c.command, Dir: dir}
		if c.command[0] == config.OwnBinary {
			prog.Path = at("alone")
		}
		var got []string
		for _, path := range programFiles(config.Plugin{Command: c.command, Dir: dir}, prog, at("code")) {
			got = append(got, strings.TrimPrefix(path, dir+"/"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: opens %q, expected %q", name, got, c.want)
		}
	}
}
