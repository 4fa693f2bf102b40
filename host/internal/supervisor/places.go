package supervisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pontoon-bridge/pontoon/host/internal/supervisor/child"
)

// stateDir is where plugins keep what is to outlive them, in the data directory, each
// in a directory of its name.
const stateDir = "plugins"

// places are the directories of one life of a plugin.
type places struct {
	code    string // its staged program
	sockets string
	temp    string
	state   string // stays when that life ends
}

// makePlaces makes what one life needs in dir, and the plugin's state.
func (s *Supervisor) makePlaces(dir, name string) (places, error) {
	at := places{
		code: filepath.Join(dir, "c"), sockets: filepath.Join(dir, "s"), temp: filepath.Join(dir, "t"),
		state: filepath.Join(s.data, stateDir, name),
	}
	for _, d := range []string{at.code, at.sockets, at.temp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return at, err
		}
	}
	return at, os.MkdirAll(at.state, 0o700)
}

// give hands the places to the plugin's user. Others can pass through what leads there,
// and see nothing of it.
func (s *Supervisor) give(at places, u *child.User) error {
	if u == nil || u.UID == os.Getuid() {
		return nil
	}
	for _, dir := range []string{at.sockets, at.temp, at.state} { // first: who may not do this changes nothing
		if err := os.Chown(dir, u.UID, u.GID); err != nil {
			return err
		}
	}
	for _, dir := range []string{s.data, filepath.Dir(at.state), s.run, filepath.Dir(at.code)} {
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: what lies there is for its owner alone
			return err
		}
	}
	return show(at.code)
}

// show lets anybody read the staged program. It stays the host's, so that the plugin
// can't change it.
func show(code string) error {
	dir, err := os.OpenRoot(code)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return fs.WalkDir(dir.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return dir.Chmod(path, mode)
	})
}

// environment is all that the process gets of ours: what the entry names, and where it
// may write.
func environment(names []string, at places) []string {
	env := []string{"PONTOON_PLUGIN_STATE=" + at.state}
	if !slices.Contains(names, "TMPDIR") {
		env = append(env, "TMPDIR="+at.temp)
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
