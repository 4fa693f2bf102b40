//go:build unix

// Command hostile is a plugin that misbehaves on demand: what a supervisor must
// survive. Tests alone run it.
//
//	hostile MODE [struck=FILE] [once] [elsewhere=HOST:PORT] [megabytes=N] [mark=TEXT]
//	hostile escape data=DIR neighbour=PLUGIN outside=DIR abstract=NAME socket=PATH setuid=PROGRAM elsewhere=HOST:PORT
//	hostile without-landlock PROGRAM [ARGUMENT…]
//
// struck is the file that notes when it first misbehaved, as Unix nanoseconds;
// FILE.done is there once it has done what it wanted and lives.
// With once it behaves if that file is there. elsewhere is an address that the
// host must not dial. megabytes is what a flood writes, 100 unless told. mark
// does nothing but show in the process list.
//
// The config of a plugin that behaves is {"port_file": FILE}: FILE gets the
// address of a line port, by which a test makes it talk (see behave.go).
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options is what the command line says.
type options struct {
	mode      string
	struck    string
	elsewhere string
	megabytes int
	mark      string

	// What mode escape is told of the host.
	data, neighbour, outside, abstract, socket, setuid string
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "hostile: found no MODE, expected one of", modes())
		os.Exit(2)
	}
	if os.Args[1] == "without-landlock" {
		os.Exit(withoutLandlock(os.Args[2:]))
	}
	o := options{mode: os.Args[1], megabytes: 100}
	told := map[string]*string{
		"struck": &o.struck, "elsewhere": &o.elsewhere, "mark": &o.mark, "data": &o.data, "neighbour": &o.neighbour,
		"outside": &o.outside, "abstract": &o.abstract, "socket": &o.socket, "setuid": &o.setuid,
	}
	once := false
	for _, arg := range os.Args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case told[name] != nil:
			*told[name] = value
		case name == "once":
			once = true
		case name == "megabytes":
			o.megabytes, _ = strconv.Atoi(value) // 0 = no flood: the test will notice
		default:
			fmt.Fprintf(os.Stderr, "hostile: found argument %q\n", arg)
			os.Exit(2)
		}
	}
	if _, err := os.Stat(o.struck); once && err == nil {
		o.mode = "ok"
	}
	os.Exit(o.run())
}

// run is the plugin's whole life; the result is its exit status.
func (o options) run() int {
	if o.mode == sleeper {
		return sleep()
	}
	if f, ok := beginnings[o.mode]; ok {
		return f(o)
	}
	if lie, ok := lies[o.mode]; ok {
		return o.serveRaw(lie, streams{})
	}
	if s, ok := streamModes[o.mode]; ok {
		return o.serveRaw(nil, s)
	}
	if f, ok := sideShows[o.mode]; ok {
		behave(func() {
			time.Sleep(strikeAfter)
			o.strike()
			f(o)
			o.finish()
		})
	}
	fmt.Fprintf(os.Stderr, "hostile: found mode %q, expected one of %v\n", o.mode, modes())
	return 2
}

// strikeAfter is when it misbehaves, from when it serves.
const strikeAfter = 500 * time.Millisecond

// strike notes when it misbehaved first.
func (o options) strike() {
	if o.struck == "" {
		return
	}
	if _, err := os.Stat(o.struck); err == nil {
		return
	}
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := os.WriteFile(o.struck, []byte(now), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
}

// finish notes that it did what it wanted to do, in FILE.done.
func (o options) finish() {
	if o.struck == "" {
		return
	}
	if err := os.WriteFile(o.struck+".done", nil, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
}

func modes() []string {
	var all []string
	for name := range beginnings {
		all = append(all, name)
	}
	for name := range lies {
		all = append(all, name)
	}
	for name := range streamModes {
		all = append(all, name)
	}
	for name := range sideShows {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// beginnings never get as far as to serve, or begin with something else.
var beginnings = map[string]func(options) int{
	"privileges": privileges,
	"read":       readKey,
	"hoard":      hoard,
	"exit0":      func(o options) int { o.strike(); return 0 },
	"exit3":      func(o options) int { o.strike(); return 3 },
	"panic-at-start": func(o options) int {
		o.strike()
		panic("hostile: panics at start")
	},
	"hs-nothing": func(o options) int { o.strike(); return sleep() },
	"hs-closed": func(o options) int {
		o.strike()
		_ = os.Stdout.Close()
		return sleep()
	},
	"hs-garbage": func(o options) int {
		o.strike()
		_, _ = os.Stdout.Write([]byte("\x00\xff\x1b[31m|||\x00|\xc3\x28\n"))
		return sleep()
	},
	"hs-megabytes": func(o options) int {
		o.strike()
		_, _ = os.Stdout.WriteString("1|1|unix|" + strings.Repeat("/x", 4<<20) + "\n")
		return sleep()
	},
	"hs-partial": func(o options) int { // as a crash in the middle of the line
		o.strike()
		_, _ = os.Stdout.WriteString("1|1|unix|/")
		return 0
	},
	"fork-start": func(o options) int {
		o.strike()
		startFamily(o)
		behave(nil)
		return 0
	},
	"fork-exit": func(o options) int {
		o.strike()
		startFamily(o)
		return 0
	},
	"ignore-term": func(o options) int {
		ignoreTerm()
		o.strike()
		return o.serveRaw(nil, streams{})
	},
}
