package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxPlugins = 256
	// maxProblems is what one looks at before reading the file again.
	maxProblems = 10
)

// Lookup is where ${NAME} finds what it stands for: in the environment, and if
// that has none of the name, in the secret store.
type Lookup struct {
	Env    func(name string) (value string, set bool)
	Secret func(name string) (value string, set bool, err error) // nil = there is none; the error holds no value
}

// LoadPlugins reads plugins.yaml. The error joins what is wrong, in the file's order, at most 10 lines of FILE:LINE:COLUMN: what was
// found, what is expected; none holds a value of a config or of the
// environment. That of a file that is not there wraps fs.ErrNotExist.
func LoadPlugins(file string, from Lookup) ([]Plugin, error) {
	src, err := readPlugins(file)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("find the directory of %s: %w", file, err)
	}
	return parsePlugins(src, file, dir, from)
}

// readPlugins reads the file if nobody else could have written it.
func readPlugins(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read plugins: %s is %s, expected a file", file, describe(info.Mode()))
	}
	if err := CheckPrivate(file, false); err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	defer func() { _ = f.Close() }()
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	if len(src) > maxFile {
		return nil, fmt.Errorf("read plugins: %s is over %d bytes, which is all that is allowed", file, maxFile)
	}
	return src, nil
}

func describe(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m.IsRegular():
		return "a file"
	}
	return "no regular file"
}

// loader turns the text of a file into plugins.
type loader struct {
	file, dir string
	from      Lookup
	problems  []problem
	left      int      // bytes that ${…} may still add
	secrets   []string // names of the secret store that the entry uses
	hidden    []string // values of the entry that nobody may see
	open      bool     // what is filled in now can be seen by others
}

func parsePlugins(src []byte, file, dir string, from Lookup) ([]Plugin, error) {
	l := &loader{file: file, dir: dir, from: from}
	var plugins []Plugin
	if root, ok := (reader{l.report}).read(src); ok && root.kind != null {
		l.fields(root, []field{{"plugins", func(v value) { plugins = l.plugins(v) }}})
	}
	if len(l.problems) == 0 {
		return plugins, nil
	}
	slices.SortStableFunc(l.problems, func(a, b problem) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.column - b.column
	})
	var all []error
	for _, p := range l.problems[:min(len(l.problems), maxProblems)] {
		all = append(all, fmt.Errorf("%s:%d:%d: %s", file, p.line, p.column, p.what))
	}
	return nil, errors.Join(all...)
}

func (l *loader) report(at position, what string) {
	// Each costs a line of the file at least, and so does not add up to much.
	l.problems = append(l.problems, problem{at, what})
}

func (l *loader) plugins(v value) []Plugin {
	items := l.list(v)
	if len(items) > maxPlugins {
		l.report(items[maxPlugins].position, fmt.Sprintf("found %d plugins, at most %d are allowed", len(items), maxPlugins))
		return nil
	}
	var plugins []Plugin
	lines := map[string]int{}
	for _, item := range items {
		p, name := l.plugin(item)
		if line, twice := lines[p.Name]; twice {
			l.report(name, fmt.Sprintf("found name %s again, first in line %d: expected a name of its own", quote(p.Name), line))
		} else if p.Name != "" {
			lines[p.Name] = name.line
		}
		plugins = append(plugins, p)
	}
	return plugins
}

// field is a key that a mapping may have, and what takes its value.
type field struct {
	key  string
	take func(value)
}

// fields hands the values of a mapping to its fields, in the file's order, and
// returns where each key is.
func (l *loader) fields(v value, known []field) map[string]position {
	if v.kind != mapping {
		l.wrong(v, "a mapping of "+keys(known))
		return nil
	}
	found := map[string]position{}
	for _, p := range v.pairs {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == p.key })
		if i < 0 {
			l.report(p.position, fmt.Sprintf("found unknown key %s, expected one of %s", quote(p.key), keys(known)))
			continue
		}
		found[p.key] = p.position
		known[i].take(p.value)
	}
	return found
}

func keys(known []field) string {
	var names []string
	for _, f := range known {
		names = append(names, f.key)
	}
	return strings.Join(names, ", ")
}

// wrong reports a value of another kind than expected. It does not show the
// value: it may be a secret that is out of place.
func (l *loader) wrong(v value, expected string) {
	found := v.kind
	switch v.kind {
	case refused:
		return
	case boolean:
		found = kind(v.text)
	}
	l.report(v.position, fmt.Sprintf("found %s, expected %s", found, expected))
}

func (l *loader) list(v value) []value {
	if v.kind != list && v.kind != null {
		l.wrong(v, "a list")
	}
	return v.items
}

func (l *loader) boolean(v value, dst *bool) bool {
	if v.kind != boolean {
		if v.kind == text { // yes, no, on, off of older YAML
			l.wrong(v, "true or false, without quotes")
		} else {
			l.wrong(v, "true or false")
		}
		return false
	}
	*dst = strings.EqualFold(v.text, "true")
	return true
}

// text returns text that holds no ${…}, which only command and config know.
func (l *loader) text(v value, expected string) (string, bool) {
	switch {
	case v.kind == number || v.kind == strange || v.kind == boolean:
		l.wrong(v, expected+": quote it")
		return "", false
	case v.kind != text:
		l.wrong(v, expected)
		return "", false
	case strings.Contains(v.text, "${"):
		l.report(v.position, "found ${…}, which is filled in only in command and config, expected "+expected)
		return "", false
	}
	return v.text, true
}
