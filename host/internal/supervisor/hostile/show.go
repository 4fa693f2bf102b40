//go:build unix

package main

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// sideShows misbehave beside an adapter that serves.
var sideShows = map[string]func(options){
	"ok":     func(options) {},
	"escape": escape,
	"panic":  func(options) { panic("hostile: panics while it serves") },
	"exit-later": func(options) {
		os.Exit(4)
	},
	"alloc":        func(options) { allocate(1 << 30) },
	"line":         func(o options) { flood(1, bytes.Repeat([]byte("x"), 1<<20), o.megabytes) },
	"flood-stdout": func(o options) { flood(1, manyLines(), o.megabytes) },
	"flood-stderr": func(o options) { flood(2, manyLines(), o.megabytes) },
	"crafted":      func(options) { craft() },
	"stop": func(options) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	},
	"spin": func(options) {
		for range 2 * runtime.NumCPU() {
			go func() {
				for { //nolint:staticcheck // to be busy is the point
				}
			}()
		}
	},
	"grandchild": func(o options) {
		startFamily(o)
		os.Exit(0)
	},
	"close-outputs": func(options) {
		_, _ = syscall.Close(1), syscall.Close(2)
	},
}

// allocate touches every page, so that it counts.
func allocate(size int) {
	b := make([]byte, size)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(time.Minute)
	runtime.KeepAlive(b)
}

// flood writes below os.Stdout, which a plugin library may have redirected.
func flood(fd int, chunk []byte, times int) {
	f := os.NewFile(uintptr(fd), "flood")
	for range times {
		if _, err := f.Write(chunk); err != nil {
			return
		}
	}
	_, _ = f.WriteString("\nflood is over\n")
	runtime.KeepAlive(f)
}

// manyLines is about 1 MiB.
func manyLines() []byte { return bytes.Repeat([]byte("hostile: a line like any other\n"), 34_000) }

// craft writes what was known to panic or confuse those who parse a plugin's
// log, or a terminal that shows it.
func craft() {
	deep := strings.Repeat(`{"@message":`, 5_000)
	lines := []string{
		`{"@message":1}`, `{"@level":[]}`, `{"@timestamp":{}}`, `{"@message":null,"@level":null,"@timestamp":null}`,
		`{"@message":"x","@level":"info","@timestamp":"not a time"}`, `{"@module":7,"@message":"x"}`, `{}`, `[]`, `null`, `{`, deep,
		"[TRACE] x", "[ERROR", "panic: \xff\xfe", "\x00\x00\x00", "\xc3\x28 not UTF-8", "\x1b[2J\x1b[31mred\x1b]0;title\x07",
		"a\rb\rc", "line separator \u2028 and \u2029", "\ufeffBOM", strings.Repeat("long ", 1<<18), "", "\r", "\x1b", "end of craft",
	}
	for _, fd := range []int{1, 2} {
		f := os.NewFile(uintptr(fd), "craft")
		for _, line := range lines {
			_, _ = f.WriteString(line + "\n")
		}
		runtime.KeepAlive(f)
	}
}
