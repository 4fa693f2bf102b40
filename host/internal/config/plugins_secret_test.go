package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A name of the environment counts before one of the secret store, a store's
// secret goes into config alone, and no message shows a value.
func TestSecretsOfPlugins(t *testing.T) {
	t.Parallel()
	const stored, set = "s3cr3t-value-of-the-store", "s3cr3t-value-of-the-environment"
	from := Lookup{
		Env: func(name string) (string, bool) { return set, name == "BOTH" || name == "ENV_TOKEN" },
		Secret: func(name string) (string, bool, error) {
			if name == "BROKEN" {
				return "", false, errors.New("was changed")
			}
			return stored, name == "BOTH" || name == "STORED", nil
		},
	}
	dir := programs(t)
	load := func(entry string) ([]Plugin, error) {
		return parsePlugins([]byte("plugins:\n  - {name: a, command: [./adapter], "+entry+"}\n"), "p.yaml", dir, from)
	}
	got, err := load(`config: {password: "inline-secret", a: "x${STORED}", b: "${BOTH}", c: "${STORED} ${ENV_TOKEN}", host: "seen by all", key: short}`)
	if err != nil {
		t.Fatal(err)
	}
	p := got[0]
	if string(p.Config) != `{"a":"x`+stored+`","b":"`+set+`","c":"`+stored+` `+set+`","host":"seen by all","key":"short","password":"inline-secret"}` {
		t.Errorf("config %s", p.Config)
	}
	slices.Sort(p.Hidden)
	if !slices.Equal(p.Secrets, []string{"STORED"}) || !slices.Equal(p.Hidden, []string{"inline-secret", set, stored}) {
		t.Errorf("secrets %q, hidden %q", p.Secrets, p.Hidden)
	}
	for entry, want := range map[string]string{
		`config: {a: "${NONE}"}`:                   "p.yaml:2:49: found ${NONE}, which is neither set in the environment nor in the secret store: pontoon secret set NONE",
		`config: {a: "${BROKEN}"}`:                 "found ${BROKEN}, a secret that can't be opened: was changed",
		`config: {a: "${PONTOON_MASTER_KEY}"}`:     "found ${PONTOON_MASTER_KEY}, which is the host's own: no plugin may have it",
		`config: {a: "${PONTOON_MASTER_KEY_NEW}"}`: "which is the host's own",
		`env: [PONTOON_MASTER_KEY]`:                "which is the host's own",
	} {
		if _, err := load(entry); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", entry, err)
		}
	}
	_, err = parsePlugins([]byte("plugins:\n  - {name: a, command: [./adapter, \"${STORED}\"]}\n"), "p.yaml", dir, from)
	if err == nil || !strings.Contains(err.Error(), "in a command, which every user of the machine can see, expected it in config") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("in a command: %v", err)
	}
}
