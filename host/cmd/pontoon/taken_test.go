package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host that can't listen leaves nothing behind: else its next start is no first one,
// and does not say again which keys it made.
func TestTakenPortLeavesNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	dir := filepath.Join(t.TempDir(), "data")
	r := runCommand(t, nil, "", "serve", "--data", dir, "--listen", ln.Addr().String())
	if r.code == 0 || !strings.Contains(r.err, ln.Addr().String()) {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory is there: %v", err)
	}
}
