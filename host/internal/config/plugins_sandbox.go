package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sandbox is what an entry says of how its process is kept from the rest of the machine.
type Sandbox struct {
	Mode    SandboxMode
	Read    []string // files and directories, absolute, that it may read beside what every program needs
	Write   []string // likewise, and write
	Connect []uint16 // TCP ports that it may connect to; nil = any, empty = none
	User    string   // whom it runs as, a name or a number; "" = whom the host does
}

// SandboxMode is how much of a sandbox an entry wants.
type SandboxMode string

// The modes.
const (
	SandboxAuto    SandboxMode = "auto"    // as much as the machine can do
	SandboxRequire SandboxMode = "require" // no start where it can't do all of it
	SandboxOff     SandboxMode = "off"     // none
)

func (s Sandbox) equal(o Sandbox) bool {
	return s.Mode == o.Mode && s.User == o.User && slices.Equal(s.Read, o.Read) && slices.Equal(s.Write, o.Write) &&
		(s.Connect == nil) == (o.Connect == nil) && slices.Equal(s.Connect, o.Connect)
}

const (
	maxPaths = 64   // that an entry may name each to read and to write
	maxPorts = 256  // that it may connect to
	maxPath  = 4096 // bytes, as for the kernel
)

func (l *loader) sandbox(v value, dst *SandboxMode) {
	const expected = "auto, require or off"
	mode, ok := l.text(v, expected)
	if !ok {
		return
	}
	switch *dst = SandboxMode(mode); *dst {
	case SandboxAuto, SandboxRequire, SandboxOff:
	default:
		l.report(v.position, fmt.Sprintf("found %s, expected %s", quote(mode), expected))
	}
}

// paths reads a list of files and directories; a relative one counts from the
// directory of the file.
func (l *loader) paths(v value, dst *[]string) {
	const expected = "the path of a file or directory, such as /srv/irc"
	items := l.list(v)
	if len(items) > maxPaths {
		l.report(items[maxPaths].position, fmt.Sprintf("found %d paths, at most %d are allowed", len(items), maxPaths))
		return
	}
	for _, item := range items {
		path, ok := l.text(item, expected)
		if !ok {
			continue
		}
		if path == "" || len(path) > maxPath || strings.ContainsRune(path, 0) {
			l.report(item.position, fmt.Sprintf("found %d bytes that are no path, expected %s", len(path), expected))
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.dir, path)
		}
		if path = filepath.Clean(path); !slices.Contains(*dst, path) {
			*dst = append(*dst, path)
		}
	}
}

func (l *loader) connect(v value, dst *[]uint16) {
	if v.kind != list {
		l.wrong(v, "a list of TCP ports, such as [443, 6697]")
		return
	}
	if len(v.items) > maxPorts {
		l.report(v.items[maxPorts].position, fmt.Sprintf("found %d ports, at most %d are allowed", len(v.items), maxPorts))
		return
	}
	*dst = []uint16{}
	for _, item := range v.items {
		port, err := strconv.ParseUint(item.text, 10, 16)
		switch {
		case item.kind == number && err == nil && port > 0:
			if p := uint16(port); !slices.Contains(*dst, p) {
				*dst = append(*dst, p)
			}
		case item.kind == number:
			l.report(item.position, fmt.Sprintf("found %s, expected a TCP port from 1 to 65535", quote(item.text)))
		default:
			l.wrong(item, "a TCP port from 1 to 65535: ports alone can be named, not hosts")
		}
	}
}

var userForm = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9._-]{0,31}|[0-9]{1,10})$`)

func (l *loader) user(v value, dst *string) {
	const expected = "the name or number of a user of this machine, such as pontoon-irc"
	if v.kind == number {
		v.kind = text
	}
	user, ok := l.text(v, expected)
	if ok && !userForm.MatchString(user) {
		l.report(v.position, fmt.Sprintf("found %s, expected %s", quote(user), expected))
		return
	}
	*dst = user
}

// sandboxed refuses what an entry says of a sandbox that it does not want.
func (l *loader) sandboxed(p Plugin, found map[string]position) {
	if p.Sandbox.Mode != SandboxOff {
		return
	}
	for _, key := range []string{"read", "write", "connect"} {
		if at, ok := found[key]; ok {
			l.report(at, fmt.Sprintf("found %s beside sandbox: off, which keeps a plugin from nothing: expected one of them", key))
		}
	}
}
