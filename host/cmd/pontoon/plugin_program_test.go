//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs is a directory with a binary, a script that has a sibling, and a file
// of plugins that pins both; no host.
type programs struct{ dir, file, binary, script, tree string }

func newPrograms(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	p := programs{dir, filepath.Join(dir, "plugins.yaml"), filepath.Join(dir, "bin", "program"), filepath.Join(dir, "script", "run.sh"), ""}
	for path, text := range map[string]string{p.binary: "\x7fELF\x00 more or less", p.script: "#!/bin/sh\n", filepath.Join(dir, "script", "lib", "sibling"): "data"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, text)
	}
	for _, path := range []string{p.binary, p.script} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// As docs/operators.md defines the sum of a tree.
	sum := sha256.Sum256([]byte("pontoon tree 1\n" +
		"- " + sumOfFile(t, filepath.Join(dir, "script", "lib", "sibling")) + " lib/sibling\x00" +
		"x " + sumOfFile(t, p.script) + " run.sh\x00"))
	p.tree = hex.EncodeToString(sum[:])
	writeFile(t, p.file, "plugins:\n"+
		"  - {name: one, command: [./bin/program], sha256: "+sumOfFile(t, p.binary)+"}\n"+
		"  - {name: two, command: [./script/run.sh], sha256: "+p.tree+"}\n"+
		"  - {name: own, command: [pontoon, adapter, run, webchat]}\n"+
		"  - {name: loose, command: ["+p.script+"]}\n")
	return p
}

func TestPluginHash(t *testing.T) {
	t.Parallel()
	p := newPrograms(t)
	one := sumOfFile(t, p.binary)
	link := filepath.Join(p.dir, "bin", "link")
	if err := os.Symlink(p.binary, link); err != nil {
		t.Fatal(err)
	}
	covers := "covers all 2 files of " + filepath.Dir(p.script) + "\n"
	for name, c := range map[string]struct {
		ref string
		result
	}{
		"file":         {p.binary, result{one + "  " + p.binary + "\n", "", 0}},
		"script":       {p.script, result{p.tree + "  " + p.script + "\n", covers, 0}},
		"directory":    {filepath.Dir(p.script), result{p.tree + "  " + filepath.Dir(p.script) + "\n", covers, 0}},
		"plugin":       {"one", result{one + "  " + p.binary + "\n", "", 0}},
		"pluginScript": {"two", result{p.tree + "  " + p.script + "\n", covers, 0}},
	} {
		if r := runCommand(t, nil, "", "plugin", "hash", "--plugins", p.file, c.ref); r != c.result {
			t.Errorf("%s: %+v, expected %+v", name, r, c.result)
		}
	}
	var v struct {
		SHA256, Path string
		Tree         bool
		Files        int
		Bytes        int64
	}
	r := runCommand(t, nil, "", "plugin", "hash", "--json", p.script)
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.err != "" || v.SHA256 != p.tree || v.Path != p.script || !v.Tree || v.Files != 2 || v.Bytes != 14 {
		t.Errorf("--json: %+v, %v", r, err)
	}
	for ref, want := range map[string]string{
		link: "symlink", p.dir: "holds plugins.yaml", "nobody": "neither such a file nor a plugin",
	} {
		r := runCommand(t, nil, "", "plugin", "hash", "--plugins", p.file, ref)
		if r.code != 1 || r.out != "" {
			t.Errorf("hash of %s: %+v", ref, r)
		}
		oneLine(t, r.err, want)
	}
}

func TestPluginVerify(t *testing.T) {
	t.Parallel()
	p := newPrograms(t)
	// verify checks which of the plugins may run, by name.
	verify := func(want map[string]bool, reason string, args ...string) {
		t.Helper()
		var v struct{ Plugins []verdictView }
		r := runCommand(t, nil, "", append([]string{"plugin", "verify", "--json", "--plugins", p.file}, args...)...)
		if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.err != "" {
			t.Fatalf("verify %v: %v, %+v", args, err, r)
		}
		got := map[string]bool{}
		for _, one := range v.Plugins {
			got[one.Name] = one.OK
			if one.OK != (one.Reason == "") || one.OK != (one.Found != "") || !one.OK && !strings.Contains(one.Reason, reason) {
				t.Errorf("verify %v: %+v, expected a reason with %q", args, one, reason)
			}
		}
		if code := map[bool]int{true: 1}[slices.Contains(slices.Collect(maps.Values(want)), false)]; !maps.Equal(got, want) || r.code != code {
			t.Errorf("verify %v: %v, exit status %d; expected %v, %d", args, got, r.code, want, code)
		}
	}
	verify(map[string]bool{"one": true, "two": true, "own": true, "loose": true}, "")
	verify(map[string]bool{"own": true, "loose": false}, "sha256", "own", "loose", "--require-checksums")
	flipped, err := os.ReadFile(p.binary)
	if err != nil {
		t.Fatal(err)
	}
	flipped[5] ^= 1
	writeFile(t, p.binary, string(flipped))
	verify(map[string]bool{"one": false}, "sha256: found "+sumOfFile(t, p.binary), "one")
	r := runCommand(t, nil, "", "plugin", "verify", "--plugins", p.file, "one", "two")
	if rows := lines(r.out); r.code != 1 || r.err != "" || len(rows) != 2 || !strings.HasPrefix(rows[0], "one  refused  ") || !strings.HasPrefix(rows[1], "two  ok       ") {
		t.Errorf("the table is %+v", r)
	}
	if err := os.Chmod(p.script, 0o777); err != nil {
		t.Fatal(err)
	}
	verify(map[string]bool{"two": false, "loose": false}, "writable", "two", "loose")
	r = runCommand(t, nil, "", "plugin", "verify", "--plugins", p.file, "nobody")
	if r.code != 1 || r.out != "" {
		t.Errorf("verify of nobody: %+v", r)
	}
	oneLine(t, r.err, `no plugin "nobody" in `+p.file)
}

// Without the default file there are no plugins; one that is named must be there.
func TestPluginFileAbsent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want result
	}{
		{[]string{"verify"}, result{}},
		{[]string{"verify", "--json"}, result{out: `{"plugins":[]}` + "\n"}},
		{[]string{"verify", "nobody"}, result{err: `no plugin "nobody"`, code: 1}},
		{[]string{"verify", "--plugins", "plugins.yaml"}, result{err: "no such file", code: 1}},
		{[]string{"hash", "/nope"}, result{err: "pontoon: /nope: no such file\n", code: 1}},
		{[]string{"hash", "nobody"}, result{err: "nobody: found neither", code: 1}},
	} {
		r := runCommand(t, nil, "", append([]string{"plugin"}, c.args...)...)
		if r.code != c.want.code || r.out != c.want.out || !strings.Contains(r.err, c.want.err) || c.want.err == "" && r.err != "" {
			t.Errorf("%q: %+v, expected %+v", c.args, r, c.want)
		}
	}
}
