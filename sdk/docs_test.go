package sdk

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// Go code of the documentation is code of the repository, which is compiled: a whole
// example, or a declaration of the SDK.
func TestGoOfDocsIsCompiled(t *testing.T) {
	pages := matches(t, "../README.md", "../docs/*.md", "../adapters/*/README.md", "*/README.md")
	var sources []byte
	for _, path := range matches(t, "../docs/examples/*/*.go", "*.go", "agent/*.go") {
		sources = append(append(sources, read(t, path)...), 0)
	}
	found := 0
	for _, page := range pages {
		for _, block := range goBlock.FindAllSubmatch(read(t, page), -1) {
			found++
			code := block[1]
			if bytes.HasPrefix(code, []byte("// Command ")) {
				code = append([]byte{0}, append(code, 0)...) // the whole file, not a part
			}
			if !bytes.Contains(append([]byte{0}, sources...), code) {
				t.Errorf("%s shows Go that is in no file of docs/examples or of the SDK:\n%s", page, block[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d blocks of Go in %s", found, strings.Join(pages, ", "))
	}
}

func matches(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, more...)
	}
	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
