package ledger_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pontoon-bridge/pontoon/"

// imports lists each package of the module with what it imports, without its tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[path] = strings.Fields(rest)
	}
	if len(all) < 40 {
		t.Fatalf("found %d packages, expected those of the module", len(all))
	}
	return all
}

// The domain imports the standard library alone. The engine is imported by what
// belongs to it, by cmd, which wires the host, and by hosttest, which does so for tests.
func TestImports(t *testing.T) {
	const (
		domain = module + "host/internal/ledger"
		engine = domain + "/sqlite"
	)
	wires := []string{module + "host/cmd/pontoon", module + "host/internal/hosttest"}
	users := 0
	for path, imported := range imports(t) {
		for _, i := range imported {
			if first, _, _ := strings.Cut(i, "/"); path == domain && strings.Contains(first, ".") {
				t.Errorf("the domain imports %s", i)
			}
			if i != engine && !strings.HasPrefix(i, engine+"/") {
				continue
			}
			users++
			if path != engine && !strings.HasPrefix(path, engine+"/") && !slices.Contains(wires, path) {
				t.Errorf("%s imports the engine: let it declare an interface, and cmd wire it", path)
			}
		}
	}
	if users < 2 {
		t.Errorf("found %d imports of the engine, expected cmd's", users)
	}
}
