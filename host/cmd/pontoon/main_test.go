package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
	"github.com/pontoon-bridge/pontoon/host/internal/torture"
	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// wait bounds everything that a test waits for.
const wait = await.Limit

// eventually waits for a condition; what says which.
var eventually = await.Until

// baseEnv is what every program gets of our environment: what finds other
// programs, and no second of waiting at its end for the race detector's sake.
var baseEnv = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=20"}

// testDir is where what all tests share is.
var testDir string

// The programs under test, built once.
var pontoonBinary, ircBinary, helloBinary, filesBinary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pontoon-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		testDir = dir
		build := []string{"build", "-race"}
		if flag := os.Getenv("PONTOON_RACE"); flag != "" { // how the Makefile builds with it
			build = append(build, flag)
		}
		if torture.Long() { // 5,000 adapters want the machine
			build = []string{"build"}
		}
		for binary, pkg := range map[*string]string{
			&pontoonBinary: ".", &ircBinary: "../../../adapters/irc", &helloBinary: examples + "hello", &filesBinary: examples + "files",
		} {
			out := filepath.Join(dir, filepath.Base(pkg), "program")
			*binary = out
			if text, err := exec.Command("go", slices.Concat(build, []string{"-ldflags=-s -w", "-o", out, pkg})...).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, text)
				return 1
			}
		}
		browser.Axe = axe
		return browser.Main(m)
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

// process is a program that runs beside the test.
type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	in        io.WriteCloser
	out, errs buffer
	read      int           // how much of out has been expected
	exited    chan struct{} // closed when it has been waited for
	anyEnd    bool          // its exit status does not count
}

// startProcess starts a program with nothing of our environment but what
// finds other programs. It is told to stop when t ends and must exit with 0.
func startProcess(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Env = slices.Concat(baseEnv, []string{"HOME=" + t.TempDir()}, env)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // its status is read from cmd.ProcessState
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		if code := p.waitExit(); code != 0 && !p.anyEnd {
			t.Errorf("%s %s: exit status %d, expected 0; stderr:\n%s", name, strings.Join(args, " "), code, p.errs.String())
		}
		if strings.Contains(p.errs.String(), "DATA RACE") {
			t.Errorf("%s: %s", name, p.errs.String())
		}
	})
	return p
}

func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended

// waitExit returns the exit status; -1 after a signal that killed it.
func (p *process) waitExit() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(wait):
		p.signal(syscall.SIGKILL)
		<-p.exited
		p.t.Errorf("%s does not end; stderr:\n%s", p.cmd.Path, p.errs.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// host is a running `pontoon serve`.
type host struct {
	*process
	t              *testing.T
	data, url, key string
	args           []string
	wrap           []string                 // a program that starts the host, with its arguments
	outside        func(path string) string // where a path of the host's is for the test; nil = the same
	operated       bool                     // somebody was set up in the console
}

var listensOn = regexp.MustCompile(`listens on (\S+)\n`)

// startHost starts a host with a data directory of its own.
func startHost(t *testing.T, args ...string) *host {
	t.Helper()
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), args: args}
	h.start("127.0.0.1:0")
	return h
}

func (h *host) start(listen string) {
	h.t.Helper()
	words := slices.Concat(h.wrap, []string{pontoonBinary, "serve", "--data", h.data, "--listen", listen}, h.args)
	h.process = startProcess(h.t, nil, words[0], words[1:]...)
	eventually(h.t, "the host listens", func() bool {
		select {
		case <-h.exited:
			h.t.Fatalf("host ended: %s", h.errs.String())
		default:
		}
		found := listensOn.FindStringSubmatch(h.out.String())
		if found == nil {
			return false
		}
		h.url = found[1]
		resp, err := http.Get(h.url + "/readyz")
		if err != nil {
			return strings.HasPrefix(h.url, "https") // whoever asked for TLS looks on
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	name := filepath.Join(h.data, "admin.key")
	if h.outside != nil {
		name = h.outside(name)
	}
	key, err := os.ReadFile(name)
	if err != nil {
		h.t.Fatal(err)
	}
	h.key = strings.TrimSpace(string(key))
}

// stop ends the host as an operator would.
func (h *host) stop() {
	h.t.Helper()
	h.signal(syscall.SIGTERM)
	if code := h.waitExit(); code != 0 {
		h.t.Fatalf("host: exit status %d, expected 0; stderr:\n%s", code, h.errs.String())
	}
}

// kill ends it as a crash would.
func (h *host) kill() {
	h.t.Helper()
	h.anyEnd = true
	h.signal(syscall.SIGKILL)
	h.waitExit()
}

// again starts it on the same data and address.
func (h *host) again() {
	h.t.Helper()
	_, address, _ := strings.Cut(h.url, "://")
	h.start(address)
}

// result is what a command left behind.
type result struct {
	out, err string
	code     int
}

// runCommand runs a command to its end. Only env is in its environment.
func runCommand(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	return runCommandIn(t, t.TempDir(), env, stdin, args...)
}

func runCommandIn(t *testing.T, dir string, env []string, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait) // a host that should have refused would run on
	defer cancel()
	cmd := exec.CommandContext(ctx, pontoonBinary, args...)
	cmd.Env = slices.Concat(baseEnv, env)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &errs, strings.NewReader(stdin)
	var exit *exec.ExitError
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("pontoon %s does not end:\n%s%s", strings.Join(args, " "), out.String(), errs.String())
	}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// env is how commands find the host.
func (h *host) env() []string { return []string{"PONTOON_URL=" + h.url, "PONTOON_DATA=" + h.data} }

// cli runs a command that must succeed and say nothing on stderr.
func (h *host) cli(args ...string) string {
	h.t.Helper()
	r := runCommand(h.t, h.env(), "", args...)
	if r.code != 0 || r.err != "" {
		h.t.Fatalf("pontoon %s: exit status %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// json runs a command with --json into v; its output must be one value.
func (h *host) json(v any, args ...string) {
	h.t.Helper()
	out := h.cli(append(args, "--json")...)
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(v); err != nil {
		h.t.Fatalf("pontoon %s --json: %v in\n%s", strings.Join(args, " "), err, out)
	}
	if _, err := d.Token(); err != io.EOF {
		h.t.Fatalf("pontoon %s --json: more than one JSON value:\n%s", strings.Join(args, " "), out)
	}
}

// request calls the API with the host's key and returns status and body.
func (h *host) request(method, path, body string) (int, string) {
	h.t.Helper()
	status, text, err := h.try(method, path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	return status, text
}

// try is request for other goroutines than the test's.
func (h *host) try(method, path, body string) (int, string, error) {
	req, err := http.NewRequest(method, h.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// must is request for what must succeed; v may be nil.
func (h *host) must(v any, method, path, body string) {
	h.t.Helper()
	status, text := h.request(method, path, body)
	if status >= 300 {
		h.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		h.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

// channel makes a channel and returns its token. extra are further fields.
func (h *host) channel(name, extra string) string {
	h.t.Helper()
	var made struct{ Token string }
	h.must(&made, "POST", "/channels", `{"name":"`+name+`"`+extra+`}`)
	return made.Token
}

// row is a message of history, as far as tests look at it.
type row struct {
	ID           string
	Direction    string
	Conversation string `json:"conversation_id"`
	Author       string
	Text         string
	State        string
	Reason       string
	ReplyTo      string `json:"reply_to"`
}

// history walks a channel's messages, newest first.
func (h *host) history(channel string) []row {
	h.t.Helper()
	var all []row
	for cursor := ""; ; {
		var page struct {
			Messages []row
			Next     string `json:"next_cursor"`
		}
		h.must(&page, "GET", "/channels/"+channel+"/messages?limit=500&cursor="+cursor, "")
		all = append(all, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// frame is one frame in either direction.
type frame map[string]any

// peer is an adapter on a bare WebSocket.
type peer struct {
	t      *testing.T
	conn   *websocket.Conn
	frames chan frame // closed with the connection
	code   int        // close code, once frames is closed
}

// dial opens a WebSocket without registering.
func (h *host) dial(query string, header http.Header) *peer {
	h.t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(h.url, "http")+wire.Path+query, header)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	p := &peer{t: h.t, conn: conn, frames: make(chan frame, 4096)}
	go p.read()
	h.t.Cleanup(func() { _ = conn.Close() })
	return p
}

func (p *peer) read() {
	defer close(p.frames)
	for {
		var f frame
		if err := p.conn.ReadJSON(&f); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				p.code = closed.Code
			}
			return
		}
		p.frames <- f
	}
}

// attach registers with the token and these capabilities.
func (h *host) attach(token string, caps ...string) *peer {
	h.t.Helper()
	p := h.dial("", http.Header{"X-Bridge-Token": {token}})
	p.send(frame{"type": "register", "platform": "test", "capabilities": caps})
	if ack := p.next("register_ack"); ack["ok"] != true {
		h.t.Fatalf("register_ack: %v", ack)
	}
	return p
}

func (p *peer) send(f frame) {
	p.t.Helper()
	if err := p.conn.WriteJSON(f); err != nil {
		p.t.Fatal(err)
	}
}

// say sends a message of alice.
func (p *peer) say(conversation, text string) {
	p.t.Helper()
	p.send(frame{"type": "message", "conversation_id": conversation, "user_id": "alice", "text": text})
}

// next returns the next frame, which must be of this type.
func (p *peer) next(kind string) frame {
	p.t.Helper()
	select {
	case f, ok := <-p.frames:
		if !ok {
			p.t.Fatalf("connection closed with %d, expected a frame of type %s", p.code, kind)
		}
		if f["type"] != kind {
			p.t.Fatalf("found frame %v, expected type %s", f, kind)
		}
		return f
	case <-time.After(wait):
		p.t.Fatalf("no frame of type %s", kind)
	}
	return nil
}

// ask says something and checks the text that answers it.
func (p *peer) ask(conversation, text, answer string) {
	p.t.Helper()
	p.say(conversation, text)
	if f := p.next("send"); f["text"] != answer {
		p.t.Fatalf("%q is answered with %q, expected %q", text, f["text"], answer)
	}
}

// closed checks the code that the host closes with; frames before it don't count.
func (p *peer) closed(code int) {
	p.t.Helper()
	timeout := time.After(wait)
	for {
		select {
		case _, ok := <-p.frames:
			if ok {
				continue
			}
			if p.code != code {
				p.t.Fatalf("closed with %d, expected %d", p.code, code)
			}
			return
		case <-timeout:
			p.t.Fatalf("not closed, expected %d", code)
		}
	}
}

// refused checks that the token opens nothing.
func (h *host) refused(token string) {
	h.t.Helper()
	p := h.dial("", http.Header{"X-Bridge-Token": {token}})
	p.send(frame{"type": "register"})
	if ack := p.next("register_ack"); ack["ok"] != false || ack["error"] != wire.RefusedInvalidToken {
		h.t.Fatalf("register_ack: %v", ack)
	}
	p.closed(int(wire.CloseRefused))
}

// lines reads a stream line by line.
func lines(text string) []string {
	var all []string
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

// oneLine checks that text is one line that holds want.
func oneLine(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("found %q, expected one line with %q", text, want)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
