//go:build unix

package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// secret is in the environment of every test here, and in no message.
const secret = "s3cr3t-value-of-the-environment"

func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"SECRET": secret, "NAME": "pontoon", "PORT": "8080", "EMPTY": "", "NESTED": "${SECRET} $${x} {a: [b",
		"BINARY": "\xff\xfe", "BIG": strings.Repeat(secret, 3000), "HUGE": strings.Repeat("x", maxFilled+1),
	}[name]
	return v, ok
}

// programs makes a directory with something to run.
func programs(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "adapter"), "#!/bin/sh\n", 0o755)
	write(t, filepath.Join(dir, "plain"), "text", 0o644)
	for _, sub := range []string{"dir", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// Each file of testdata/plugins gives what is in its golden file: the entries,
// or exactly these messages.
func TestPluginFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/plugins/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	dir := programs(t)
	sh := t.TempDir()
	write(t, filepath.Join(sh, "sh"), "", 0o755)
	t.Setenv("PATH", sh)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			plugins, err := parsePlugins(src, "plugins.yaml", dir, Lookup{Env: testEnv})
			got := outcome(t, plugins, err)
			if err != nil && (strings.Contains(got, secret) || strings.Contains(got, "hunter")) {
				t.Errorf("a secret is shown: %s", got)
			}
			got = strings.NewReplacer(dir, "DIR", sh, "PATH").Replace(got)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				write(t, golden, got, 0o644)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func outcome(t *testing.T, plugins []Plugin, err error) string {
	t.Helper()
	if err != nil {
		if plugins != nil {
			t.Error("plugins beside an error")
		}
		return err.Error() + "\n"
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(plugins); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPluginFileBounds(t *testing.T) {
	dir := programs(t)
	entry := func(i int) string { return fmt.Sprintf("  - {name: p%d, command: [./adapter]}\n", i) }
	many := func(n int) string {
		var b strings.Builder
		b.WriteString("plugins:\n")
		for i := range n {
			b.WriteString(entry(i))
		}
		return b.String()
	}
	words := func(n int) string {
		return "plugins:\n  - {name: a, command: [./adapter" + strings.Repeat(", x", n-1) + "]}\n"
	}
	names := func(n int) string {
		return "plugins:\n  - {name: a, command: [./adapter], env: [A" + strings.Repeat(", A", n-1) + "]}\n"
	}
	nested := func(n int) string { // the config is level 4
		return entryWith("config: {x: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	for name, c := range map[string]struct{ src, want string }{
		"plugins":           {many(maxPlugins), ""},
		"too many plugins":  {many(maxPlugins + 1), "p.yaml:258:5: found 257 plugins, at most 256 are allowed"},
		"words":             {words(maxWords), ""},
		"too many words":    {words(maxWords + 1), "found 257 words, at most 256"},
		"names":             {names(maxNames), ""},
		"too many names":    {names(maxNames + 1), "found 257 names, at most 256"},
		"depth":             {nested(60), ""},
		"too deep":          {nested(61), "found more than 64 levels"},
		"far too deep":      {nested(1 << 12), "found more than 64 levels"},
		"deep blocks":       {strings.Repeat("- ", 1<<12), "found more than 64 levels"},
		"too many tokens":   {strings.Repeat("a:\n", maxTokens), "at most 50000 are allowed"},
		"config":            {entryWith("config: {x: " + strings.Repeat("x", maxFilled-len(`{"x":""}`)) + "}"), ""},
		"config too large":  {entryWith("config: {x: " + strings.Repeat("x", maxFilled) + "}"), "found a config of 262152 bytes as JSON, at most 262144"},
		"agent too long":    {entryWith("agent: " + strings.Repeat("x", maxAgent+1)), "(257 bytes)"},
		"agent of controls": {entryWith(`agent: "a\e[31m"`), "expected the name of an agent"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePlugins([]byte(c.src), "p.yaml", dir, Lookup{Env: testEnv})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %.300v, want %q", err, c.want)
			}
		})
	}
}

func entryWith(line string) string {
	return "plugins:\n  - name: a\n    command: [./adapter]\n    " + line + "\n"
}

// A problem each, and the first ten in the file's order.
func TestPluginFileProblemsAreBounded(t *testing.T) {
	src := "plugins:\n" + strings.Repeat("  - {nam: x}\n", 40)
	_, err := parsePlugins([]byte(src), "p.yaml", t.TempDir(), Lookup{Env: testEnv})
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != maxProblems || !strings.HasPrefix(lines[0], "p.yaml:2:") {
		t.Errorf("got %d lines: %v", len(lines), err)
	}
}

// A working directory in PATH is where others may put programs.
func TestPluginFromWorkingDirectory(t *testing.T) {
	t.Chdir(programs(t))
	t.Setenv("PATH", ".")
	_, err := parsePlugins([]byte("plugins:\n  - {name: a, command: [adapter]}\n"), "p.yaml", t.TempDir(), Lookup{Env: testEnv})
	if want := `p.yaml:2:25: found "adapter", which PATH has only in the working directory`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestLoadPlugins(t *testing.T) {
	dir := programs(t)
	t.Chdir(dir)
	write(t, "plugins.yaml", "plugins:\n\n  - {name: a, command: [./adapter]}\n", 0o644)
	plugins, err := LoadPlugins("plugins.yaml", Lookup{Env: testEnv})
	if err != nil || len(plugins) != 1 {
		t.Fatal(plugins, err)
	}
	if p := plugins[0]; p.Dir != dir || p.Command[0] != filepath.Join(dir, "adapter") || p.Source != "plugins.yaml:3" {
		t.Errorf("got %+v", p)
	}

	_, err = LoadPlugins("none.yaml", Lookup{Env: testEnv})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("missing file: %v", err)
	}
	write(t, "large.yaml", strings.Repeat("#", maxFile+1), 0o644)
	write(t, "open.yaml", "", 0o666)
	write(t, "bin/fine.yaml", "", 0o644)
	if err := syscall.Mkfifo("pipe.yaml", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range [][2]string{{"plugins.yaml", "link.yaml"}, {"open.yaml", "to-open.yaml"}, {dir + "/bin/fine.yaml", "to-fine.yaml"}} {
		if err := os.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"link.yaml":     "",
		"to-fine.yaml":  "",
		"large.yaml":    "large.yaml is over 1048576 bytes",
		"dir":           "dir is a directory, expected a file",
		"pipe.yaml":     "pipe.yaml is no regular file, expected a file",
		"open.yaml":     "open.yaml is writable by others (mode 0666): chmod o-w " + dir + "/open.yaml",
		"to-open.yaml":  "chmod o-w " + dir + "/open.yaml",
		"bin/fine.yaml": "",
	} {
		if _, err := LoadPlugins(file, Lookup{Env: testEnv}); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
	chmod(t, "bin", 0o777)
	for _, file := range []string{"bin/fine.yaml", "to-fine.yaml"} {
		if _, err := LoadPlugins(file, Lookup{Env: testEnv}); err == nil || !strings.Contains(err.Error(), "bin is writable by others (mode 0777): chmod o-w "+dir+"/bin") {
			t.Errorf("%s: %v", file, err)
		}
	}
	chmod(t, "bin", 0o777|fs.ModeSticky)
	if _, err := LoadPlugins("to-fine.yaml", Lookup{Env: testEnv}); err != nil {
		t.Errorf("sticky: %v", err)
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestSameProcess(t *testing.T) {
	base := func() Plugin {
		agent := "echo"
		return Plugin{
			Name: "a", Command: []string{"/x", "y"}, SHA256: "s", Enabled: true, Env: []string{"A"}, Config: json.RawMessage(`{}`),
			Restart: DefaultRestart(), Limits: Limits{Memory: 1}, Policy: PluginPolicy{Agent: &agent}, Dir: "/d", Source: "f:1",
		}
	}
	other, yes := "other", true
	for name, c := range map[string]struct {
		change      func(*Plugin)
		same, equal bool
	}{
		"nothing":    {func(*Plugin) {}, true, true},
		"sandbox":    {func(p *Plugin) { p.Sandbox.Mode = SandboxOff }, false, false},
		"read":       {func(p *Plugin) { p.Sandbox.Read = []string{"/x"} }, false, false},
		"no port":    {func(p *Plugin) { p.Sandbox.Connect = []uint16{} }, false, false},
		"user":       {func(p *Plugin) { p.Sandbox.User = "x" }, false, false},
		"source":     {func(p *Plugin) { p.Source = "f:2" }, true, true},
		"written":    {func(p *Plugin) { p.Written = []string{"${X}"} }, true, true},
		"enabled":    {func(p *Plugin) { p.Enabled = false }, true, false},
		"agent":      {func(p *Plugin) { p.Policy.Agent = &other }, true, false},
		"no agent":   {func(p *Plugin) { p.Policy.Agent = nil }, true, false},
		"queue":      {func(p *Plugin) { p.Policy.Queue = &yes }, true, false},
		"retention":  {func(p *Plugin) { p.Policy.Retention = new(int) }, true, false},
		"accept all": {func(p *Plugin) { p.Policy.Accept = []string{} }, true, false},
		"accept":     {func(p *Plugin) { p.Policy.Accept = []string{"text"} }, true, false},
		"name":       {func(p *Plugin) { p.Name = "b" }, false, false},
		"command":    {func(p *Plugin) { p.Command[1] = "z" }, false, false},
		"sum":        {func(p *Plugin) { p.SHA256 = "" }, false, false},
		"env":        {func(p *Plugin) { p.Env = nil }, false, false},
		"config":     {func(p *Plugin) { p.Config = nil }, false, false},
		"restart":    {func(p *Plugin) { p.Restart.QuarantineAfter++ }, false, false},
		"limits":     {func(p *Plugin) { p.Limits.Memory++ }, false, false},
		"directory":  {func(p *Plugin) { p.Dir = "/e" }, false, false},
		"lookup":     {func(p *Plugin) { p.Lookup = "x" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := base(), base()
			c.change(&b)
			for range 2 {
				if a.SameProcess(b) != c.same || a.Equal(b) != c.equal {
					t.Errorf("SameProcess %v, Equal %v, want %v, %v", a.SameProcess(b), a.Equal(b), c.same, c.equal)
				}
				a, b = b, a
			}
		})
	}
}

// The order in which a config is written makes no difference.
func TestConfigOrder(t *testing.T) {
	dir := programs(t)
	var got []Plugin
	for _, c := range []string{"{a: 1, b: {c: x, d: y}}", "{b: {d: 'y', \"c\": x}, a: 1}"} {
		p, err := parsePlugins([]byte(entryWith("config: "+c)), "p.yaml", dir, Lookup{Env: testEnv})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p...)
	}
	if !got[0].SameProcess(got[1]) {
		t.Errorf("%s and %s differ", got[0].Config, got[1].Config)
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "irc-home.2_x": true, "0": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "A": false, "a b": false, "bridge": false, "plugin": false, "agui": false, "bridle": false,
		strings.Repeat("a", 64): false, "98637a8f-e091-4066-a59a-e9e07f693354": false, "98637a8fe0914066a59ae9e07f693354": false, "a\n": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
