package hosttest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Tests alone import this package: no program has it in it.
func TestImportedByTestsAlone(t *testing.T) {
	const self = "github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}{{if .TestImports}}
t {{join .TestImports " "}}{{end}}{{if .XTestImports}}
t {{join .XTestImports " "}}{{end}}`, "github.com/pontoon-bridge/pontoon/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	tests := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 || !slices.Contains(words[1:], self) {
			continue
		}
		if words[0] != "t" {
			t.Errorf("%s imports it", words[0])
		} else {
			tests++
		}
	}
	if tests == 0 {
		t.Error("found no package whose tests import it")
	}
}
