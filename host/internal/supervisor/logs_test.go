package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// allLines are logs that no rate limit thins.
func allLines() *logs {
	l := newLogs(0, nil)
	l.limit = rate.NewLimiter(rate.Inf, 0)
	return l
}

func texts(lines []plugin.Line) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line.Text
	}
	return out
}

func TestDrain(t *testing.T) {
	t.Parallel()
	full, over := strings.Repeat("x", maxLine-len("…")), strings.Repeat("x", maxLine+1)
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":      {"", nil},
		"one":          {"a\n", []string{"a"}},
		"noEnd":        {"a", []string{"a"}},
		"two":          {"a\nb\n", []string{"a", "b"}},
		"empty":        {"\n\na\n", []string{"", "", "a"}},
		"crlf":         {"a\r\nb\r\n", []string{"a", "b"}},
		"notUTF8":      {"a\xffb\n", []string{"a\uFFFDb"}},
		"longest":      {full + "\n", []string{full}},
		"long":         {over + "\nnext\n", []string{full + "…", "next"}},
		"megabytes":    {strings.Repeat("y", 3<<20) + "\nnext\n", []string{strings.Repeat("y", maxLine-len("…")) + "…", "next"}},
		"drainBorder":  {strings.Repeat("z", drainSize) + "\nnext", []string{strings.Repeat("z", maxLine-len("…")) + "…", "next"}},
		"cutCharacter": {strings.Repeat("ü", maxLine) + "\n", []string{strings.Repeat("ü", (maxLine-len("…"))/2) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := allLines()
			l.drain(streamStdout, strings.NewReader(c.in))
			lines, _ := l.read(0, maxLines)
			got := texts(lines)
			if len(got) != len(c.want) {
				t.Fatalf("found %d lines, expected %d", len(got), len(c.want))
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("line %d: found %d bytes %q, expected %d bytes %q", i, len(got[i]), clip(got[i]), len(c.want[i]), clip(c.want[i]))
				}
			}
		})
	}
}

// A flood is read to its end in no more memory than one line, and says how much
// of it was dropped.
func TestDrainFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in no time
		l := newLogs(0, nil)
		const n = 50_000
		l.drain(streamStderr, io.LimitReader(repeat("a line like any other\n"), n*22))
		if lines, _ := l.read(0, maxLines); len(lines) != lineBurst {
			t.Errorf("%d lines kept, want %d", len(lines), lineBurst)
		}
		time.Sleep(2 * time.Second / lineRate) // the limit lets the next line pass
		l.add(streamStderr, "after the flood")
		lines, _ := l.read(0, maxLines)
		var dropped, kept int
		var notes []string
		for _, line := range lines {
			if line.Stream == streamHost {
				notes = append(notes, line.Text)
			} else {
				kept++
			}
		}
		if len(notes) == 1 {
			if _, err := fmt.Sscanf(notes[0], "%d lines dropped: more than 100 a second", &dropped); err != nil {
				t.Errorf("found note %q", notes[0])
			}
		}
		if kept != lineBurst+1 || kept+dropped != n+1 {
			t.Errorf("%d lines kept of %d, and told %q", kept, n+1, notes)
		}
	})
}

// repeat is an endless stream of the text.
type repeat string

func (r repeat) Read(p []byte) (int, error) {
	n := 0
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	if n == 0 {
		n = copy(p, r)
	}
	return n, nil
}

func TestLogsRing(t *testing.T) {
	t.Parallel()
	l := allLines()
	const n = 2*maxLines + 345
	for i := range n {
		l.add(streamStdout, fmt.Sprint(i))
	}
	for _, c := range []struct {
		after   int64
		n       int
		from, k int // the first text and how many
	}{
		{0, maxLines, n - maxLines, maxLines}, {0, 10, n - 10, 10}, {n - 3, maxLines, n - 3, 3}, {n - 3, 1, n - 1, 1},
		{n, 10, 0, 0}, {n + 50, 10, 0, 0}, {0, 0, 0, 0}, {0, -1, 0, 0}, {5, 1 << 30, n - maxLines, maxLines},
	} {
		lines, _ := l.read(c.after, c.n)
		if len(lines) != c.k {
			t.Errorf("read(%d, %d): %d lines, expected %d", c.after, c.n, len(lines), c.k)
			continue
		}
		for i, line := range lines {
			if line.Text != fmt.Sprint(c.from+i) || line.Seq != int64(c.from+i+1) {
				t.Errorf("read(%d, %d): line %d is %+v", c.after, c.n, i, line)
			}
		}
	}
}

// Who follows misses nothing while others write.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	l := allLines()
	const n = 500 // below maxLines: nothing may be overwritten before it is read
	var wg sync.WaitGroup
	for _, stream := range []string{streamStdout, streamStderr} {
		wg.Go(func() {
			for range n / 2 {
				l.add(stream, "x")
			}
		})
	}
	var seen int64
	deadline := time.After(await.Limit)
	for seen < n {
		lines, more := l.read(seen, maxLines)
		for _, line := range lines {
			if line.Seq != seen+1 {
				t.Fatalf("line %d follows %d", line.Seq, seen)
			}
			seen = line.Seq
		}
		if len(lines) > 0 {
			continue
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%d of %d lines seen", seen, n)
		}
	}
	wg.Wait()
}

// Whatever is written, however it is cut into reads: every kept line is text of
// bounded length on one line, and nothing is invented.
func FuzzDrain(f *testing.F) {
	for _, seed := range []string{
		"", "a\nb", "\r\n\r\n", `{"@message":1}` + "\n", "\x00\x00\n", "\xc3\x28\xff\n", "\x1b[2J\n", strings.Repeat("x", maxLine) + "\n",
		strings.Repeat("ü", maxLine/2) + "\n", strings.Repeat("\xff", maxLine+7), strings.Repeat("x", drainSize) + "\ny",
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		l := allLines()
		l.drain(streamStdout, &slowly{bytes.NewReader(in), 1 + max(size, 0)%(2*drainSize)})
		lines, _ := l.read(0, maxLines)
		if ends := bytes.Count(in, []byte("\n")); int(l.last) != ends && int(l.last) != ends+1 {
			t.Fatalf("%d lines of %d line ends", l.last, ends)
		}
		for _, line := range lines {
			if len(line.Text) > maxLine || !utf8.ValidString(line.Text) || strings.Contains(line.Text, "\n") {
				t.Fatalf("kept %d bytes: %q", len(line.Text), clip(line.Text))
			}
		}
	})
}

// slowly gives at most n bytes a read.
type slowly struct {
	r io.Reader
	n int
}

func (s *slowly) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

// An operator is shown why a process ended, not where its stack was.
func TestLastWords(t *testing.T) {
	for name, tt := range map[string]struct{ said, want string }{
		"nothing":          {"", ""},
		"last line":        {"connecting\nno route to host\n\n", "no route to host"},
		"panic":            {"hello\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: boom"},
		"the first of two": {"fatal error: out of memory\npanic: during panic\n", "fatal error: out of memory"},
		"signal":           {"SIGSEGV: segmentation violation\nPC=0x43927d\ngs     0x0\n", "SIGSEGV: segmentation violation"},
		"beyond the limit": {strings.Repeat("\tstack\n", 2*lineBurst) + "panic: late\nexit status 2\n", "panic: late"},
		"talks of a panic": {"no panic: all is well\nbye\n", "bye"},
		"line without end": {"half a li", "half a li"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogs(0, nil)
			l.drain(streamStdout, strings.NewReader("panic: printed as data\n"))
			l.drain(streamStderr, strings.NewReader(tt.said))
			if got := l.lastWords(); got != tt.want {
				t.Errorf("found %q, expected %q", got, tt.want)
			}
			l.begin()
			if got := l.lastWords(); got != "" {
				t.Errorf("after begin: %q", got)
			}
		})
	}
}
