package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/pontoon-bridge/pontoon/host/internal/plugin"
)

// Bounds of what is kept of a plugin's output.
const (
	maxLines  = 1000     // per plugin
	maxLine   = 4 << 10  // bytes; the rest of a longer line is cut off
	drainSize = 64 << 10 // one read
	lineRate  = 100      // lines a second that are kept …
	lineBurst = 500      // … and at once: a stack trace is long
)

// The streams that lines come from.
const (
	streamStdout = "stdout"
	streamStderr = "stderr"
	streamHost   = "host"
)

// logs keeps the newest lines of one plugin over all its lives.
type logs struct {
	limit  *rate.Limiter
	onLine func(plugin.Line) // called for every kept line of the plugin's own

	mu      sync.Mutex    // guards what follows
	lines   []plugin.Line // a ring once it is full; the line of seq is at (seq-base-1) % maxLines
	base    int64         // seqs begin behind it
	last    int64         // seq of the newest
	dropped int           // by the rate limit, since the last kept line
	words   lastWords
	changed chan struct{}
	hider   *strings.Replacer // nil = nothing is hidden
}

// newLogs is empty. Seqs begin behind base: with the time as such, they ascend
// over restarts of the host too, and who followed the one before misses nothing.
func newLogs(base int64, onLine func(plugin.Line)) *logs {
	return &logs{limit: rate.NewLimiter(lineRate, lineBurst), onLine: onLine, base: base, last: base, changed: make(chan struct{})}
}

// hide takes secrets out of all that is kept from now on.
func (l *logs) hide(secrets []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hider = newHider(secrets)
}

// clean is the text without secrets.
func (l *logs) clean(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cleaned(text)
}

// cleaned is clean for who holds the mutex.
func (l *logs) cleaned(text string) string {
	if l.hider == nil {
		return text
	}
	return l.hider.Replace(text)
}

// add keeps a line of the plugin, unless it writes too many.
func (l *logs) add(stream, text string) {
	l.mu.Lock()
	text = l.cleaned(text)
	if stream == streamStderr {
		l.words.hear(text)
	}
	if !l.limit.Allow() {
		l.dropped++
		l.mu.Unlock()
		return
	}
	l.noteDropped()
	line := l.keep(stream, text)
	l.mu.Unlock()
	if l.onLine != nil {
		l.onLine(line)
	}
}

// note keeps a line of the host's own.
func (l *logs) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteDropped()
	l.keep(streamHost, l.cleaned(text))
}

// noteDropped tells of lines that the rate limit took. The mutex must be held.
func (l *logs) noteDropped() {
	if l.dropped > 0 {
		l.keep(streamHost, fmt.Sprintf("%d lines dropped: more than %d a second", l.dropped, lineRate))
		l.dropped = 0
	}
}

// keep appends a line. The mutex must be held.
func (l *logs) keep(stream, text string) plugin.Line {
	l.last++
	line := plugin.Line{Seq: l.last, At: time.Now(), Stream: stream, Text: text}
	if len(l.lines) < maxLines {
		l.lines = append(l.lines, line)
	} else {
		l.lines[(l.last-l.base-1)%maxLines] = line
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return line
}

// read returns up to n of the newest lines after seq, oldest first, and what is
// closed when there are more.
func (l *logs) read(after int64, n int) ([]plugin.Line, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	have := min(max(l.last-after, 0), int64(len(l.lines)), int64(max(n, 0)))
	out := make([]plugin.Line, 0, have)
	for seq := l.last - have + 1; seq <= l.last; seq++ {
		out = append(out, l.lines[(seq-l.base-1)%maxLines])
	}
	return out, l.changed
}

// signs begin a line of the Go runtime that tells why the process ends.
var signs = []string{"panic: ", "fatal error: ", "SIGSEGV: ", "SIGBUS: ", "SIGILL: ", "SIGFPE: ", "SIGABRT: ", "SIGQUIT: ", "SIGTRAP: "}

// lastWords is what a process said that tells most of why it ended: the line of
// a panic, else the last one. The rate limit does not count here: a stack trace
// is longer than it.
type lastWords struct{ telling, last string }

func (w *lastWords) hear(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	w.last = text
	if w.telling != "" {
		return
	}
	if slices.ContainsFunc(signs, func(sign string) bool { return strings.HasPrefix(text, sign) }) {
		w.telling = text
	}
}

// begin forgets the last words of the process before.
func (l *logs) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.words = lastWords{}
}

// lastWords are those of the process since begin; "" if it said nothing.
func (l *logs) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.words.telling != "" {
		return l.words.telling
	}
	return l.words.last
}

// tell reports whether the last words tell why the process ended.
func (l *logs) tell() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words.telling != ""
}

// drain reads until the stream ends and keeps its lines. It never stops
// reading, whatever is written: a full pipe would block the plugin.
func (l *logs) drain(stream string, r io.Reader) {
	in := bufio.NewReaderSize(r, drainSize)
	var line []byte
	cut := false
	for {
		piece, err := in.ReadSlice('\n')
		if room := maxLine - len(line); len(piece) > room && len(piece) > 0 {
			cut = cut || len(trimEnd(piece)) > room
			piece = piece[:room]
		}
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || err == nil {
			l.add(stream, lineText(line, cut))
		}
		line, cut = line[:0], false
		if err != nil {
			return
		}
	}
}

// lineText makes text of what was written, whatever it was.
func lineText(b []byte, cut bool) string {
	s := string(trimEnd(b))
	if cut {
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) { // don't cut a character in two
			s = s[:len(s)-1]
		}
		s = s[:max(0, len(s)-len("…"))]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxLine-len("…") {
		s, cut = strings.ToValidUTF8(s[:maxLine-len("…")], ""), true
	}
	if cut {
		s += "…"
	}
	return s
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}
