// Package examples_test runs the examples as a reader would: against the host's
// binary, as processes of their own.
package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wait bounds everything that a test waits for.
const wait = 20 * time.Second

// The programs that take part, built once.
var pontoonBinary, helloBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pontoon-examples-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		pontoonBinary, helloBinary = filepath.Join(dir, "pontoon"), filepath.Join(dir, "hello")
		for out, pkg := range map[string]string{pontoonBinary: "../../host/cmd/pontoon", helloBinary: "./hello"} {
			if text, err := exec.Command("go", "build", "-race", "-o", out, pkg).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, text)
				return 1
			}
		}
		return m.Run()
	}())
}

// buffer collects the output of a process while it runs.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// process is a program that runs beside the test and is typed at.
type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	in        io.WriteCloser
	out, errs buffer
	read      int           // how much of out has been expected
	exited    chan struct{} // closed when it has been waited for
}

// start starts a program; it is told to stop when t ends, and must exit with 0.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=alice", "GORACE=atexit_sleep_ms=20"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // its status is read from cmd.ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		p.ends(0)
	})
	return p
}

// ends waits for the exit and checks its status.
func (p *process) ends(code int) {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(wait):
		_ = p.cmd.Process.Kill()
		<-p.exited
		p.t.Errorf("%s does not end", p.cmd.Path)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%s: exit status %d, expected %d; stderr:\n%s", p.cmd.Path, got, code, p.errs.String())
	}
}

// types writes a line.
func (p *process) types(line string) {
	p.t.Helper()
	p.t.Log("> " + line)
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("type %q: %v; stderr:\n%s", line, err, p.errs.String())
	}
}

// prints waits until the text comes as the next output.
func (p *process) prints(text string) {
	p.t.Helper()
	text += "\n"
	deadline := time.Now().Add(wait)
	for {
		got := p.out.String()[p.read:]
		if strings.HasPrefix(got, text) {
			p.read += len(text)
			p.t.Log(text)
			return
		}
		if !strings.HasPrefix(text, got) || time.Now().After(deadline) {
			p.t.Fatalf("printed %q, expected %q; stderr:\n%s", got, text, p.errs.String())
		}
		time.Sleep(10 * time.Millisecond) // between two polls
	}
}

var listensOn = regexp.MustCompile(`listens on (\S+)\n`)

// startHost starts a host with one channel and returns what an adapter needs of
// it: its url and the channel's token.
func startHost(t *testing.T) (env []string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	h := start(t, nil, pontoonBinary, "serve", "--data", data, "--listen", "127.0.0.1:0")
	deadline := time.Now().Add(wait)
	for !listensOn.MatchString(h.out.String()) {
		if time.Now().After(deadline) {
			t.Fatalf("the host does not listen: %s", h.errs.String())
		}
		time.Sleep(10 * time.Millisecond) // between two polls
	}
	url := listensOn.FindStringSubmatch(h.out.String())[1]
	out, err := exec.Command(pontoonBinary, "channel", "create", "terminal", "--json", "--url", url, "--data", data).Output()
	if err != nil {
		t.Fatalf("channel create: %v", err)
	}
	var made struct{ Token string }
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	return []string{"PONTOON_URL=" + url, "PONTOON_TOKEN=" + made.Token}
}

// linesOf reads an example, which must have at most so many lines.
func linesOf(t *testing.T, path string, most int) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n"); n > most {
		t.Errorf("%s has %d lines, at most %d are allowed", path, n, most)
	}
	return string(b)
}

func TestHello(t *testing.T) {
	t.Parallel()
	linesOf(t, "hello/main.go", 40)
	p := start(t, startHost(t), helloBinary)
	p.types("hello")
	p.prints("echo: hello")
	p.types("!buttons")
	p.prints("Pick one:\n[Yes] [No] [Help]")
	p.types("Yes")
	p.prints("echo: yes")
	p.types("!caps")
	p.prints("caps: text")
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The README shows the example as it is.
func TestHelloInReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := linesOf(t, "hello/main.go", 40)
	for _, block := range goBlock.FindAllSubmatch(readme, -1) {
		if string(block[1]) == code {
			return
		}
	}
	t.Error("README.md has no go block that equals docs/examples/hello/main.go")
}
