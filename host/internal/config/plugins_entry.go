package config

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// Bounds of an entry's values.
const (
	maxWords = 256 // of a command
	maxNames = 256 // of environment variables
	maxAgent = 256 // bytes, as for the lists of a channel

	minBackoff    = 100 * time.Millisecond // shorter would be a busy loop
	maxBackoff    = time.Hour              // longer looks like one that is dead
	maxQuarantine = 1000

	minMemory = 16 << 20 // no runtime starts in less
	maxMemory = 1 << 40  // more is a slip

	minProcesses = 8 // a Go program has as many threads at its start
	maxProcesses = 100_000
)

// plugin reads one entry, and returns where its name is.
func (l *loader) plugin(v value) (Plugin, position) {
	p := Plugin{
		Enabled: true, Restart: DefaultRestart(), Limits: Limits{Memory: DefaultMemory, Processes: DefaultProcesses},
		Sandbox: Sandbox{Mode: SandboxAuto},
		Dir:     l.dir, Source: fmt.Sprintf("%s:%d", l.file, v.line),
	}
	l.left, l.secrets, l.hidden = maxFilled, nil, nil
	found := l.fields(v, []field{
		{"name", func(v value) { l.name(v, &p) }},
		{"command", func(v value) { l.command(v, &p) }},
		{"sha256", func(v value) { l.sum(v, &p) }},
		{"enabled", func(v value) { l.boolean(v, &p.Enabled) }},
		{"accept_capabilities", func(v value) { l.capabilities(v, &p) }},
		{"agent", func(v value) { l.agent(v, &p) }},
		{"queue", func(v value) {
			if q := false; l.boolean(v, &q) {
				p.Policy.Queue = &q
			}
		}},
		{"retention_days", func(v value) {
			if n := 0; l.count(v, &n, 0, MaxRetentionDays) {
				p.Policy.Retention = &n
			}
		}},
		{"config", func(v value) { l.config(v, &p) }},
		{"env", func(v value) { l.env(v, &p) }},
		{"sandbox", func(v value) { l.sandbox(v, &p.Sandbox.Mode) }},
		{"read", func(v value) { l.paths(v, &p.Sandbox.Read) }},
		{"write", func(v value) { l.paths(v, &p.Sandbox.Write) }},
		{"connect", func(v value) { l.connect(v, &p.Sandbox.Connect) }},
		{"user", func(v value) { l.user(v, &p.Sandbox.User) }},
		{"restart", func(v value) { l.restart(v, &p.Restart) }},
		{"limits", func(v value) { l.limits(v, &p.Limits) }},
	})
	for _, key := range []string{"name", "command"} {
		if _, ok := found[key]; !ok && found != nil {
			l.report(v.position, fmt.Sprintf("found a plugin without %s, which every plugin needs", key))
		}
	}
	l.sandboxed(p, found)
	p.Secrets, p.Hidden = l.secrets, l.hidden
	return p, found["name"]
}

func (l *loader) name(v value, p *Plugin) {
	name, ok := l.text(v, NameRule)
	if !ok {
		return
	}
	if err := CheckName(name); err != nil {
		l.report(v.position, err.Error())
		return
	}
	p.Name = name
}

func (l *loader) command(v value, p *Plugin) {
	const expected = "a list of the program and its arguments, such as [./my-adapter, --verbose]"
	if v.kind != list || len(v.items) == 0 {
		if v.kind == list {
			l.report(v.position, "found an empty list, expected "+expected)
		} else {
			l.wrong(v, expected)
		}
		return
	}
	if len(v.items) > maxWords {
		l.report(v.items[maxWords].position, fmt.Sprintf("found %d words, at most %d are allowed", len(v.items), maxWords))
		return
	}
	for _, item := range v.items {
		if item.kind != text {
			l.wrong(item, "text: quote it")
			return
		}
		l.open = true
		word, ok := l.fill(item)
		l.open = false
		if !ok {
			return
		}
		if strings.ContainsRune(word, 0) {
			l.report(item.position, "found a NUL character, which no command can have")
			return
		}
		p.Written, p.Command = append(p.Written, item.text), append(p.Command, word)
	}
	l.program(v.items[0], p)
}

// program finds what the first word of the command means. Messages show the
// word as written: what is filled in may be a secret.
func (l *loader) program(written value, p *Plugin) {
	word := p.Command[0]
	refuse := func(why string) {
		l.report(written.position, fmt.Sprintf("found %s, %s", quote(written.text), why))
	}
	switch {
	case word == OwnBinary:
		return
	case word == "":
		refuse("expected a program")
		return
	case strings.ContainsRune(word, '/') || strings.ContainsRune(word, filepath.Separator):
		if !filepath.IsAbs(word) {
			word = filepath.Join(l.dir, word)
		}
	default:
		path, err := exec.LookPath(word)
		if errors.Is(err, exec.ErrDot) {
			refuse("which PATH has only in the working directory, expected a path with a slash")
			return
		}
		if err != nil {
			refuse("which is not in PATH, expected a program there, or a path with a slash")
			return
		}
		p.Lookup, word = word, path
	}
	abs, err := filepath.Abs(word)
	if err != nil {
		refuse("which has no absolute path")
		return
	}
	p.Command[0] = abs
	switch info, err := os.Stat(abs); {
	case errors.Is(err, os.ErrNotExist):
		refuse("which does not exist, expected a program; a relative path counts from the directory of this file")
	case err != nil:
		refuse("which can't be looked at: " + cause(err))
	case !info.Mode().IsRegular():
		refuse("which is " + describe(info.Mode()) + ", expected a program")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		refuse(fmt.Sprintf("which is not executable (mode %s): chmod +x it", modeOf(info)))
	}
}

// cause is the error without the path, which may hold what was filled in.
func cause(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return "unknown error"
}

var sumForm = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func (l *loader) sum(v value, p *Plugin) {
	const expected = "64 hexadecimal digits (pontoon plugin hash prints them)"
	if v.kind == number || v.kind == strange { // a sum may look like one
		v.kind = text
	}
	sum, ok := l.text(v, expected)
	if ok && !sumForm.MatchString(sum) {
		l.report(v.position, fmt.Sprintf("found %s (%d characters), expected %s", quote(sum), len([]rune(sum)), expected))
		return
	}
	p.SHA256 = strings.ToLower(sum)
}

func (l *loader) capabilities(v value, p *Plugin) {
	known := wire.CapNamesFor(wire.V11.String()) // whichever protocol the plugin will speak
	if v.kind != list {
		l.wrong(v, "a list of "+strings.Join(known, ", "))
		return
	}
	p.Policy.Accept = []string{}
	for _, item := range v.items {
		name, ok := l.text(item, "one of "+strings.Join(known, ", "))
		if !ok {
			continue
		}
		if !slices.Contains(known, name) {
			l.report(item.position, fmt.Sprintf("found unknown capability %s, expected one of %s", quote(name), strings.Join(known, ", ")))
		} else if !slices.Contains(p.Policy.Accept, name) {
			p.Policy.Accept = append(p.Policy.Accept, name)
		}
	}
}

func (l *loader) agent(v value, p *Plugin) {
	agent, ok := l.text(v, "the name of an agent, such as echo")
	if !ok {
		return
	}
	if agent == "" || len(agent) > maxAgent || strings.ContainsFunc(agent, unicode.IsControl) {
		l.report(v.position, fmt.Sprintf("found %s (%d bytes), expected the name of an agent, 1 to %d bytes", quote(agent), len(agent), maxAgent))
		return
	}
	p.Policy.Agent = &agent
}

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedEnv begin the names of what the host itself tells a plugin.
var reservedEnv = []string{"PLUGIN_", "PONTOON_PLUGIN", masterKey}

// masterKey begins the names of what opens the host's secrets.
const masterKey = secrets.EnvKey

func (l *loader) env(v value, p *Plugin) {
	items := l.list(v)
	if len(items) > maxNames {
		l.report(items[maxNames].position, fmt.Sprintf("found %d names, at most %d are allowed", len(items), maxNames))
		return
	}
	const expected = "the name of an environment variable, such as HTTPS_PROXY"
	for _, item := range items {
		name, ok := l.text(item, expected)
		if !ok {
			continue
		}
		// The value is not shown.
		if known, _, is := strings.Cut(name, "="); is && envForm.MatchString(known) {
			l.report(item.position, fmt.Sprintf("found %s with a value, expected the name alone: a value comes from the host's environment", quote(known)))
			continue
		}
		if !envForm.MatchString(name) {
			l.report(item.position, fmt.Sprintf("found %d characters that are no name, expected %s", len([]rune(name)), expected))
			continue
		}
		if slices.ContainsFunc(reservedEnv, func(r string) bool { return strings.HasPrefix(name, r) }) {
			l.report(item.position, fmt.Sprintf("found %s, which is the host's own: no name that begins with %s can be passed", quote(name), strings.Join(reservedEnv, " or ")))
			continue
		}
		if !slices.Contains(p.Env, name) {
			p.Env = append(p.Env, name)
		}
	}
}

func (l *loader) restart(v value, r *Restart) {
	if v.kind == null {
		return
	}
	before := len(l.problems)
	found := l.fields(v, []field{
		{"backoff", func(v value) { l.duration(v, &r.Backoff) }},
		{"max_backoff", func(v value) { l.duration(v, &r.MaxBackoff) }},
		{"quarantine_after", func(v value) { l.count(v, &r.QuarantineAfter, 1, maxQuarantine) }},
	})
	if len(l.problems) > before || r.Backoff <= r.MaxBackoff {
		return
	}
	at, ok := found["max_backoff"]
	if !ok {
		at = found["backoff"]
	}
	l.report(at, fmt.Sprintf("found backoff %s and max_backoff %s, expected max_backoff to be no shorter", r.Backoff, r.MaxBackoff))
}

func (l *loader) duration(v value, dst *time.Duration) {
	expected := fmt.Sprintf("a duration from %s to 1h, such as 1s", minBackoff)
	if v.kind == number {
		l.report(v.position, fmt.Sprintf("found %s without a unit, expected %s", quote(v.text), expected))
		return
	}
	s, ok := l.text(v, expected)
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < minBackoff || d > maxBackoff {
		l.report(v.position, fmt.Sprintf("found %s, expected %s", quote(s), expected))
		return
	}
	*dst = d
}

func (l *loader) count(v value, dst *int, least, most int) bool {
	n, err := strconv.Atoi(v.text)
	if v.kind == number && err == nil && n >= least && n <= most {
		*dst = n
		return true
	}
	expected := fmt.Sprintf("a whole number from %d to %d", least, most)
	if v.kind == number {
		l.report(v.position, fmt.Sprintf("found %s, expected %s", quote(v.text), expected))
	} else {
		l.wrong(v, expected)
	}
	return false
}

func (l *loader) limits(v value, limits *Limits) {
	if v.kind != null {
		l.fields(v, []field{
			{"memory", func(v value) { l.memory(v, &limits.Memory) }},
			{"processes", func(v value) { l.count(v, &limits.Processes, minProcesses, maxProcesses) }},
		})
	}
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,15}) ?(|B|KiB|MiB|GiB|KB|MB|GB)$`)

func (l *loader) memory(v value, dst *int64) {
	const expected = "a size from 16MiB to 1024GiB: bytes, or a whole number with KiB, MiB, GiB, KB, MB or GB"
	if v.kind == number || v.kind == strange {
		v.kind = text
	}
	s, ok := l.text(v, expected)
	if !ok {
		return
	}
	if n, ok := parseSize(s); ok && n >= minMemory && n <= maxMemory {
		*dst = n
		return
	}
	l.report(v.position, fmt.Sprintf("found %s, expected %s", quote(s), expected))
}

func parseSize(s string) (int64, bool) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9}[m[2]]
	if err != nil || n > maxMemory/unit {
		return 0, false
	}
	return n * unit, true
}
