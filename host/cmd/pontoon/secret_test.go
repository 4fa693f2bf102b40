//go:build linux

package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// secretsOf lists the secrets by name.
func (h *host) secretsOf() map[string]api.Secret {
	h.t.Helper()
	var list struct{ Secrets []api.Secret }
	h.json(&list, "secret", "list")
	all := map[string]api.Secret{}
	for _, s := range list.Secrets {
		all[s.Name] = s
	}
	return all
}

// A secret goes from stdin to the plugin that names it, and is shown by nothing.
func TestCLISecret(t *testing.T) {
	t.Parallel()
	p := newPit(t, nil)
	const first, second = "canary-first-value", "canary-second-value"
	set := func(name, value string) result {
		return runCommand(t, p.env(), value, "secret", "set", name)
	}
	if r := set("NAME", first+"\n"); r.code != 0 || r.out != "Set NAME.\n" || r.err != "" {
		t.Fatalf("%+v", r)
	}
	entry := plugin{name: "a", mode: "ok"}
	text := func(value string) string {
		return strings.Replace(p.yaml(entry), "config: {", `config: {password: "`+value+`", `, 1)
	}
	writeFile(t, p.file, text("${NONE}"))
	if r := runCommand(t, p.env(), "", "plugin", "reload"); r.code != 1 || !strings.Contains(r.err, "neither set in the environment nor in the secret store: pontoon secret set NONE") {
		t.Errorf("a secret that is not there: %+v", r)
	}
	writeFile(t, p.file, text("${NAME}"))
	holds(t, p.cli("plugin", "verify", "--plugins", p.file), "ok")
	holds(t, p.cli("plugin", "reload"), "added")
	eventually(t, "the plugin runs", func() bool { return p.plugins()["a"].State == "running" })
	before := p.plugins()["a"].Pid
	if s := p.secretsOf()["NAME"]; len(s.UsedBy) != 1 || s.UsedBy[0] != p.full("a") || s.Shadowed || time.Since(s.CreatedAt.Time) > time.Hour {
		t.Errorf("listed as %+v", s)
	}
	holds(t, p.cli("secret", "list"), "NAME", p.full("a"))

	holds(t, set("NAME", second).out, "Set NAME.", "pontoon plugin reload")
	holds(t, p.cli("plugin", "reload"), "changed    "+p.full("a"))
	eventually(t, "the plugin runs again", func() bool { r := p.plugins()["a"]; return r.State == "running" && r.Pid != before })
	for _, args := range [][]string{{"set", "NAME", first}, {"set", "NAME=" + first}} {
		r := runCommand(t, p.env(), "", append([]string{"secret"}, args...)...)
		if r.code != 2 || strings.Contains(r.err, first) {
			t.Errorf("%v: %+v", args, r)
		}
		oneLine(t, r.err, "the secret itself")
	}
	for name, value := range map[string]string{"9": "x", "PONTOON_MASTER_KEY": "x", "EMPTY": "", "LARGE": strings.Repeat("x", api.MaxSecret+1), "BINARY": "\xff"} {
		if r := set(name, value); r.code != 1 || r.out != "" {
			t.Errorf("%s: %d %.200s", name, r.code, r.err)
		}
	}

	p.asksForSecret(t, "NAME", second)
	holds(t, p.cli("plugin", "reload"), "unchanged  "+p.full("a")) // what was typed is what it was
	holds(t, p.cli("secret", "delete", "NAME"), "Deleted secret NAME")
	oneLine(t, runCommand(t, p.env(), "", "secret", "delete", "NAME").err, "not found")
	if len(p.secretsOf()) != 0 {
		t.Error("it is still there")
	}
	var audit struct {
		Audit []struct{ Action, Target, Detail string }
	}
	status, body := p.request("GET", "/audit", "")
	if _ = json.Unmarshal([]byte(body), &audit); status != 200 || strings.Count(body, "secret.set") != 3 || strings.Count(body, "secret.delete") != 1 {
		t.Errorf("audit %d %s", status, body)
	}
	p.stop()
	for _, where := range []string{p.errs.String(), body} {
		if strings.Contains(where, "canary-") {
			t.Errorf("shown in %s", where)
		}
	}
}

// tree is what files hold.
func tree(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%s: %x\n", f, sha256.Sum256(b))
	}
	return text
}

// The master key can be changed, is needed, and may be lost.
func TestMasterKey(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	env := []string{"PONTOON_DATA=" + h.data, "PONTOON_URL=http://127.0.0.1:1"}
	file := filepath.Join(h.data, "master.key")
	h.must(nil, "PUT", "/secrets/NAME", `{"value":"canary-of-the-store"}`)
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"https://a.example.org/","secret":"whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3"}}`)
	keys := func() string {
		t.Helper()
		return tree(t, filepath.Join(h.data, "master*"))
	}
	before := keys()
	for _, command := range []string{"rotate-key", "forget"} {
		r := runCommand(t, env, "", "secret", command)
		oneLine(t, r.err, "data directory "+h.data+" is in use by another host: stop that host, run pontoon secret "+command+" again, then start it")
		if r.code != 1 || r.out != "" || keys() != before {
			t.Errorf("%s beside a host: %+v, and the keys were %s, are %s", command, r, before, keys())
		}
	}
	saved := filepath.Join(t.TempDir(), "backup")
	h.cli("backup", saved)
	h.stop()
	diagnosed(t, diagnose(t, env, 0), "master key", "ok", "opens the 2 sealed secrets")

	read := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	first := read()
	var r rotated
	if out := runCommand(t, env, "", "secret", "rotate-key", "--json"); out.code != 0 || json.Unmarshal([]byte(out.out), &r) != nil || r.Sealed != 2 {
		t.Fatalf("%+v", out)
	}
	second := read()
	if b, err := os.ReadFile(r.Former); err != nil || strings.TrimSpace(string(b)) != first || second == first {
		t.Errorf("former key: %v", err)
	}
	diagnosed(t, diagnose(t, env, 0), "former master key", "warn", r.Former)
	h.again()
	var shown agentView
	h.json(&shown, "agent", "show", "hook")
	if !strings.Contains(string(shown.Config), "***") || h.secretsOf()["NAME"].Name == "" {
		t.Errorf("after the change: %s", shown.Config)
	}
	h.stop()

	// A backup of before needs the former key, and restore says where that is.
	out := runCommand(t, env, "", "restore", saved)
	if out.code != 0 || !strings.Contains(out.out, "The key is in "+r.Former+": copy it to "+file) {
		t.Fatalf("restore: %+v", out)
	}
	serve := func(env ...string) string {
		t.Helper()
		out := runCommand(t, env, "", "serve", "--data", h.data, "--listen", "127.0.0.1:0")
		if out.code != 1 || strings.Contains(out.err, first) || strings.Contains(out.err, second) {
			t.Fatalf("serve: %+v", out)
		}
		return lines(out.err)[len(lines(out.err))-1] + "\n"
	}
	oneLine(t, serve(), file+" does not open the secrets")
	diagnosed(t, diagnose(t, env, 1), "master key", "fail", "does not open")
	oneLine(t, serve("PONTOON_MASTER_KEY=canary-of-a-key"), "PONTOON_MASTER_KEY: found 15 characters that are no master key, expected 32 bytes as 64 hexadecimal digits")
	oneLine(t, serve("PONTOON_MASTER_KEY="+second), "set it to the right key, or unset it")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	oneLine(t, serve(), "holds 2 secrets sealed with one")
	diagnosed(t, diagnose(t, env, 1), "master key", "fail", "put it back")
	if err := os.WriteFile(file, []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	oneLine(t, serve(), "mode 0644, expected 0600")
	diagnosed(t, diagnose(t, env, 1), "master key", "fail", "mode 0644")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	h.again() // with the right one
	h.stop()

	// Lost: what it sealed goes, and the host starts with a key of its own.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	holds(t, runCommand(t, env, "", "secret", "forget").out, "agent hook: secret", "secret NAME", "2 secrets can't be opened")
	holds(t, runCommand(t, env, "", "secret", "forget", "--yes").out, "2 secrets forgotten")
	h.again()
	h.json(&shown, "agent", "show", "hook")
	if strings.Contains(string(shown.Config), "secret") || !shown.Away {
		t.Errorf("the agent: %+v", shown)
	}
	h.cli("agent", "update", "hook", "--set", "secret=whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3")
	h.json(&shown, "agent", "show", "hook")
	if shown.Away {
		t.Errorf("with a new secret: %+v", shown)
	}
}

// A key of the environment is used, and changed, without any file.
func TestMasterKeyInEnvironment(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), wrap: []string{"env", "PONTOON_MASTER_KEY=" + first}}
	h.start("127.0.0.1:0")
	h.must(nil, "PUT", "/secrets/NAME", `{"value":"x"}`)
	h.stop()
	if files, err := filepath.Glob(filepath.Join(h.data, "master*")); err != nil || len(files) > 0 {
		t.Errorf("made %v, %v", files, err)
	}
	env := []string{"PONTOON_DATA=" + h.data, "PONTOON_MASTER_KEY=" + first}
	oneLine(t, runCommand(t, env, "", "secret", "rotate-key").err, "PONTOON_MASTER_KEY_NEW")
	oneLine(t, runCommand(t, append(env, "PONTOON_MASTER_KEY_NEW="+first), "", "secret", "rotate-key").err, "expected another")
	holds(t, runCommand(t, append(env, "PONTOON_MASTER_KEY_NEW="+second), "", "secret", "rotate-key").out, "Sealed 1 secrets")
	h.wrap[1] = "PONTOON_MASTER_KEY=" + second
	h.again()
	if h.secretsOf()["NAME"].Name == "" {
		t.Error("the secret is gone")
	}
}

// What a host of before kept in clear is sealed by its first start, in the
// database and in the backup that is made before, and works on.
func TestSecretsOfOlderDatabase(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	h.must(nil, "POST", "/agents", `{"name":"hook","kind":"webhook","config":{"url":"https://a.example.org/","secret":"whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3"}}`)
	h.stop()
	const canary = "whsec_Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5"
	file := filepath.Join(h.data, "pontoon.db")
	downgradeBefore(t, file, 12)
	d, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Exec(`UPDATE agent SET config = ? WHERE name = 'hook'`, fmt.Sprintf(`{"secret":%q,"url":"https://a.example.org/"}`, canary))
	if cerr := d.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if err := os.Remove(filepath.Join(h.data, "master.key")); err != nil { // it had none
		t.Fatal(err)
	}
	h.again()
	holds(t, h.errs.String(), "secrets of agents sealed, which were stored in clear")
	var shown agentView
	h.json(&shown, "agent", "show", "hook")
	if shown.Away || !strings.Contains(string(shown.Config), "***") {
		t.Errorf("%+v", shown)
	}
	found := map[string]bool{}
	for path := range listing(t, h.data) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		found[filepath.Ext(path)] = true
		if strings.Contains(string(b), canary) {
			t.Errorf("in clear in %s", path)
		}
	}
	backups, err := filepath.Glob(filepath.Join(h.data, "backups", "schema-*.db"))
	if err != nil || len(backups) != 1 || !found[".db-wal"] {
		t.Fatalf("backups %v, %v; looked at %v", backups, err, found)
	}
	h.stop()
	h.cli("restore", backups[0])
	h.again()
	h.json(&shown, "agent", "show", "hook")
	if shown.Away {
		t.Errorf("of the backup: %+v", shown)
	}
}
