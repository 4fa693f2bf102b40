package sdk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an author's program may weigh, built by a plain `go build`, and how many
// modules it may be made of beside the author's own.
const (
	mostBytes   = 10_000_000
	mostModules = 3
)

// Authors who don't want plugins must not pay for gRPC.
func TestAuthorsLinkLittle(t *testing.T) {
	for name, source := range map[string]string{"adapter": hello, "agent": "../docs/examples/agent"} {
		t.Run(name, func(t *testing.T) {
			modules := map[string]bool{}
			for _, line := range strings.Fields(golang(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", source)) {
				modules[line] = true
			}
			for module := range modules {
				if strings.Contains(module, "grpc") || strings.Contains(module, "go-plugin") || strings.Contains(module, "protobuf") {
					t.Errorf("%s is linked", module)
				}
			}
			if len(modules) > mostModules {
				t.Errorf("made of %d modules, expected at most %d: %v", len(modules), mostModules, modules)
			}
			binary := filepath.Join(t.TempDir(), name)
			golang(t, "build", "-o", binary, source)
			info, err := os.Stat(binary)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d modules, %d bytes", len(modules), info.Size())
			if info.Size() > mostBytes {
				t.Errorf("has %d bytes, expected at most %d", info.Size(), mostBytes)
			}
		})
	}
}

// golang runs the go command as an author does: with no flags of the tests but the one
// that packages are in the build cache with.
func golang(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
