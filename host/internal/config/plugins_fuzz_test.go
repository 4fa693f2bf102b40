//go:build unix

package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var messageLine = regexp.MustCompile(`^p\.yaml:[1-9][0-9]*:[1-9][0-9]*: found .`)

// Whatever the file holds: no panic, each message has its place and is one
// line, no value of the environment is in it, and what is accepted is sane.
func FuzzPlugins(f *testing.F) {
	files, err := filepath.Glob("testdata/plugins/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	dir := programs(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		plugins, err := parsePlugins(src, "p.yaml", dir, Lookup{Env: testEnv})
		if err != nil {
			if strings.Contains(err.Error(), secret) && !strings.Contains(string(src), secret) {
				t.Errorf("the secret is shown: %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) > maxProblems {
				t.Errorf("%d lines", len(lines))
			}
			for _, line := range lines {
				if !messageLine.MatchString(line) {
					t.Errorf("message %q", line)
				}
			}
			return
		}
		seen := map[string]bool{}
		for _, p := range plugins {
			if CheckName(p.Name) != nil || seen[p.Name] || len(p.Command) == 0 || len(p.Written) != len(p.Command) || !p.Equal(p) {
				t.Errorf("accepted %+v", p)
			}
			if p.Command[0] != OwnBinary && !filepath.IsAbs(p.Command[0]) {
				t.Errorf("command %q", p.Command)
			}
			if p.Limits.Memory < minMemory || p.Restart.Backoff < minBackoff || p.Restart.MaxBackoff < p.Restart.Backoff || p.Restart.QuarantineAfter < 1 {
				t.Errorf("accepted %+v", p)
			}
			if p.Config != nil && (p.Config[0] != '{' || len(p.Config) > maxFilled) {
				t.Errorf("config %s", p.Config)
			}
			seen[p.Name] = true
		}
	})
}
