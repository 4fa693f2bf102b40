package supervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/config"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/program"
)

// systemFiles are what programs and interpreters need of the machine, as far as it
// has them, and nothing of /etc that may be secret. Of other processes /proc shows what
// anybody may see.
var systemFiles = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
	"/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hostname",
	"/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/protocols", "/etc/resolv.conf", "/etc/services",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone", "/run/resolvconf", "/run/systemd/resolve",
}

// devices are what anybody may write to, and nobody hears.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// shared are directories that hold what belongs to many. A program that lies in one is
// opened by itself, without what is beside it.
var shared = []string{
	"/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/var", "/var/lib", "/var/tmp",
}

// maxSplit bounds what is opened one by one since the host's own files lie beside it.
const maxSplit = 2000

// sandbox is what the plugin may reach: what every program needs, its own places, and
// what its entry names; of all that nothing that is the host's own.
func (s *Supervisor) sandbox(p config.Plugin, prog program.Program, at places) (child.Sandbox, error) {
	box := child.Sandbox{
		On: p.Sandbox.Mode != config.SandboxOff, Require: p.Sandbox.Mode == config.SandboxRequire,
		AnyPort: p.Sandbox.Connect == nil, Connect: p.Sandbox.Connect, Processes: p.Limits.Processes,
	}
	var err error
	if box.User, err = findUser(p.Sandbox.User); err != nil {
		return box, err
	}
	if err := box.Check(); err != nil || !box.On {
		return box, err
	}
	own, err := s.private()
	if err != nil {
		return box, err
	}
	for _, path := range slices.Concat(systemFiles, s.Files, programFiles(p, prog, at.code)) {
		if err := own.read(&box, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return box, err
		}
	}
	for _, path := range p.Sandbox.Read {
		if err := own.read(&box, path); err != nil {
			return box, fmt.Errorf("read: %w", err)
		}
	}
	for _, path := range p.Sandbox.Write {
		if err := own.write(&box, path); err != nil {
			return box, fmt.Errorf("write: %w", err)
		}
	}
	for _, path := range devices {
		if _, err := os.Stat(path); err == nil {
			box.Write = append(box.Write, path)
		}
	}
	box.Read = append(box.Read, at.code)
	box.Write = append(box.Write, at.sockets, at.temp, at.state)
	return box, nil
}

// programFiles are the program, what its command names, and what lies beside these
// as modules of a script do.
func programFiles(p config.Plugin, prog program.Program, code string) []string {
	files := []string{prog.Path}
	if p.Command[0] == config.OwnBinary {
		return files
	}
	beside := func(path string) {
		dir := filepath.Dir(path)
		if above := filepath.Dir(dir); filepath.Base(dir) == "bin" && isPrefix(above) {
			dir = above
		}
		holdsFile := dir == p.Dir || strings.HasPrefix(p.Dir, dir+"/") // of plugins.yaml, with what others put there
		if !holdsFile && !slices.Contains(shared, dir) && filepath.Dir(dir) != "/home" {
			files = append(files, dir)
		}
	}
	beside(prog.Path)
	if real, err := filepath.EvalSymlinks(prog.Path); err == nil && real != prog.Path {
		files = append(files, real)
		beside(real)
	}
	script := false
	for _, word := range prog.Args[1:] {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(prog.Dir, word)
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(path, code+"/") {
			continue
		}
		files = append(files, path)
		if !script {
			beside(path)
			script = true
		}
	}
	return files
}

// isPrefix reports whether an interpreter in dir/bin has its modules in dir.
func isPrefix(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "pyvenv.cfg")); err == nil {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "lib"))
	return err == nil && info.IsDir() && !strings.HasPrefix(filepath.Base(dir), ".") // as ~/.local is
}

// private is what is the host's own, as it lies on the disk.
type private []string

func (s *Supervisor) private() (private, error) {
	var own private
	paths := []string{s.data, s.run}
	for _, file := range s.Private {
		former, _ := filepath.Glob(file + ".*") // keys that were replaced, and new ones
		paths = append(append(paths, file), former...)
	}
	for _, path := range paths {
		real, err := realPath(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		own = append(own, real)
	}
	return own, nil
}

// realPath is the path without links.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// beneath reports whether path is dir or lies in it.
func beneath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// read opens a path to the sandbox. Landlock can't take anything out of a directory:
// of one that holds what is private the rest is opened, each by itself.
func (own private) read(box *child.Sandbox, path string) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	open, err := own.split(real, maxSplit)
	box.Read = append(box.Read, open...)
	return err
}

func (own private) split(path string, most int) ([]string, error) {
	if slices.ContainsFunc(own, func(p string) bool { return beneath(path, p) }) {
		return nil, nil
	}
	if !slices.ContainsFunc(own, func(p string) bool { return beneath(p, path) }) {
		return []string{path}, nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	entries, err := dir.ReadDir(most + 1)
	_ = dir.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%s: found over %d files and directories beside the host's own, expected fewer: name those that are needed", path, maxSplit)
	}
	var open []string
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			continue // a link may lead to what is private
		}
		more, err := own.split(filepath.Join(path, e.Name()), most-len(open))
		if err != nil {
			return nil, err
		}
		open = append(open, more...)
	}
	return open, nil
}

// write opens a path to the sandbox to write to. What is private can't be beside it:
// who may write to a directory may put another in its place.
func (own private) write(box *child.Sandbox, path string) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	for _, p := range own {
		if beneath(real, p) || beneath(p, real) {
			return fmt.Errorf("found %s, where the host's own %s is, expected a path that holds nothing of the host", path, p)
		}
	}
	box.Write = append(box.Write, real)
	return nil
}

// findUser looks up whom a plugin is to run as; nil = whom the host does.
func findUser(name string) (*child.User, error) {
	if name == "" {
		return nil, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		found, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("user: found %q, expected a user of this machine: %w", name, err)
	}
	uid, err := strconv.Atoi(found.Uid)
	if err != nil {
		return nil, fmt.Errorf("user: %s has no number: %w", name, err)
	}
	gid, err := strconv.Atoi(found.Gid)
	if err != nil {
		return nil, fmt.Errorf("user: the group of %s has no number: %w", name, err)
	}
	return &child.User{Name: found.Username, UID: uid, GID: gid}, nil
}
