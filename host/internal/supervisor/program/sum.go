package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
)

// Sum is what plugins.yaml pins.
type Sum struct {
	Hex   string // 64 digits
	Tree  bool   // of a directory with all below, not of one file
	Of    string // that directory, or the file
	Files int
	Bytes int64
}

// Hash is the sum for plugins.yaml of the program at path: of a directory, or of
// a script whose directory holds other files, that of the tree; else of the file
// alone, as sha256sum prints it. It refuses what Stage refuses.
func Hash(path string) (Sum, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Sum{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Sum{}, err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return Sum{}, refuseKind(path, info.Mode())
	}
	if err := config.CheckPrivate(path, true); err != nil {
		return Sum{}, err
	}
	if info.IsDir() {
		return hashTree(path)
	}
	sum, err := sumFile(path, nil)
	if err != nil {
		return Sum{}, err
	}
	if script, err := isScript(path); err != nil || !script {
		return sum, err
	}
	alone, err := isAlone(path)
	if err != nil || alone {
		return sum, err
	}
	tree, err := hashTree(filepath.Dir(path))
	if err != nil {
		return Sum{}, fmt.Errorf("%w; a script is pinned with its directory: give it one of its own, or pin the file alone (sha256sum) if it needs no others", err)
	}
	return tree, nil
}

// hashTree refuses the directory of plugins.yaml, which changes with the sum.
func hashTree(dir string) (Sum, error) {
	if _, err := os.Lstat(filepath.Join(dir, config.DefaultPlugins)); err == nil {
		return Sum{}, fmt.Errorf("%s holds %s, and would change with the sum that is written there", dir, config.DefaultPlugins)
	}
	return sumTree(dir, nil)
}

// isAlone reports whether the file's directory holds nothing else that counts.
func isAlone(path string) (bool, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer func() { _ = dir.Close() }()
	for {
		entries, err := dir.ReadDir(64)
		for _, e := range entries {
			if e.Name() != filepath.Base(path) && (!e.IsDir() || !left(e.Name())) {
				return false, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// binaries are how programs begin that find no siblings by themselves: ELF, PE,
// and Mach-O in both byte orders, also of several machines in one.
var binaries = [][]byte{
	[]byte("\x7fELF"), []byte("MZ"),
	[]byte("\xfe\xed\xfa\xce"), []byte("\xce\xfa\xed\xfe"), []byte("\xfe\xed\xfa\xcf"), []byte("\xcf\xfa\xed\xfe"),
	[]byte("\xca\xfe\xba\xbe"), []byte("\xbe\xba\xfe\xca"),
}

// isScript reports whether the file names its interpreter or is text.
func isScript(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	head = head[:n]
	for _, b := range binaries {
		if bytes.HasPrefix(head, b) {
			return false, nil
		}
	}
	if bytes.HasPrefix(head, []byte("#!")) {
		return true, nil
	}
	for range utf8.UTFMax - 1 { // the end may be within a character
		if !utf8.Valid(head) && len(head) > 0 {
			head = head[:len(head)-1]
		}
	}
	return utf8.Valid(head) && !bytes.ContainsRune(head, 0), nil
}

// sumFile hashes one file and copies it, by its own name, into into unless that
// is nil.
func sumFile(path string, into *os.Root) (Sum, error) {
	from, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return Sum{}, err
	}
	defer func() { _ = from.Close() }()
	c := copier{from: from, into: into}
	sum, _, err := c.file(filepath.Base(path))
	return Sum{Hex: hex.EncodeToString(sum), Of: path, Files: 1, Bytes: c.bytes}, err
}

// treeDomain begins what the sum of a tree is of. No file that begins so is
// taken: its own sum could be that of a tree.
const treeDomain = "pontoon tree 1\n"

// sumTree hashes all files below dir and copies them into into unless that is
// nil. The sum is the SHA-256 of treeDomain and then, for each file in the order
// of the bytes of its path, "x " if it is executable, else "- "; the hexadecimal
// SHA-256 of the file, " ", its path with slashes, and a NUL. Directories count
// only by the files in them; those that are left out (left) don't count.
func sumTree(dir string, into *os.Root) (Sum, error) {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return Sum{}, err
	}
	defer func() { _ = from.Close() }()
	c := copier{from: from, into: into}
	paths, err := c.list()
	if err != nil {
		return Sum{}, err
	}
	h := sha256.New()
	_, _ = io.WriteString(h, treeDomain) // a hash never fails
	for _, path := range paths {
		sum, executable, err := c.file(path)
		if err != nil {
			return Sum{}, err
		}
		mark := '-'
		if executable {
			mark = 'x'
		}
		_, _ = fmt.Fprintf(h, "%c %x %s\x00", mark, sum, filepath.ToSlash(path))
	}
	return Sum{Hex: hex.EncodeToString(h.Sum(nil)), Tree: true, Of: dir, Files: len(paths), Bytes: c.bytes}, nil
}
