// Package program finds what a plugin's command runs, checks that nobody else
// could have written it, hashes it, and copies it to where it is run from, so
// that the very bytes that were hashed are the ones that run.
package program

import "github.com/pontoon-bridge/pontoon/host/internal/config"

// Program is what is to be run, after Stage.
type Program struct {
	Path string   // absolute
	Args []string // argv, Args[0] included
	Dir  string   // working directory
	Sum  string   // what was hashed: 64 hex digits; "" if not pinned
}

// Stage checks the plugin's program and, if it is pinned, copies the bytes that
// it hashed into the fresh directory dir (0700), from where they are to be run.
// self is the path of the running host, which the command name "pontoon" means.
func Stage(p config.Plugin, self, dir string, requireSum bool) (Program, error) {
	return Program{}, nil
}

// Verify is Stage without a copy: nil if the program may run. found says what
// was found, for people.
func Verify(p config.Plugin, self string, requireSum bool) (found string, err error) { return "", nil }

// Hash is the sum for plugins.yaml of the program at path.
func Hash(path string) (sum string, err error) { return "", nil }
