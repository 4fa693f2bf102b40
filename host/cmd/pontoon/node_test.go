package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// installs are the directories of nodePackages, by name.
var installs sync.Map // of func() (string, error)

// nodePackages is a copy of testdata/NAME with the packages that its lock file
// names, installed once for all tests. Their install scripts don't run.
func nodePackages(t testing.TB, name string) (dir string) {
	t.Helper()
	install, _ := installs.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir := filepath.Join(testDir, "node", name)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		return dir, nil
	}))
	dir, err := install.(func() (string, error))()
	if err != nil {
		t.Fatalf("install testdata/%s, which needs node with npm: %v", name, err)
	}
	return dir
}
