package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// maxRunDir keeps paths of sockets within the 107 bytes that a unix socket's
// address holds: what go-plugin and its servers add takes up to 60.
const maxRunDir = 45

// runDir makes the directory, fresh and empty, that plugins run from: their
// sockets and the staged copies of their programs. It is in the data directory,
// which no other host uses, unless the path would be too long for a socket.
// What a host that was killed left behind is swept.
func runDir(data, group string) (string, error) {
	dir := filepath.Join(data, "run")
	if len(dir) > maxRunDir {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("pontoon-%d-%s", os.Getuid(), group))
	}
	// Never through a link that somebody else put there: RemoveAll removes the
	// link itself, and Mkdir fails if anything is there again.
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("sweep plugins' directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("plugins' directory: %w", err)
	}
	return dir, nil
}

// groupOf names what belongs to the hosts of one data directory.
func groupOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:6])
}

// clean removes the directory at the end.
func (s *Supervisor) clean() {
	if err := os.RemoveAll(s.run); err != nil {
		s.Log.Warn("plugins' directory not removed", "error", err)
	}
}
