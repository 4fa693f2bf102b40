package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

// pasted is a snippet that a page shows, run as it says.
type pasted struct {
	process
}

// paste takes the snippet of a language from the page, saves it and types the
// commands that stand below it.
func paste(t *testing.T, p *browser.Tab, language, file string) *pasted {
	t.Helper()
	var text, run string
	p.JS(&text, "document.getElementById(%s).textContent", browser.Quote("snippet-"+language))
	p.JS(&run, "document.getElementById(%s).textContent", browser.Quote("run-"+language))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &pasted{process{t: t, cmd: exec.Command("sh", "-ec", run), exited: make(chan struct{})}}
	s.cmd.Dir = dir
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what the commands start ends with them
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait() // it is killed
	}()
	t.Cleanup(s.kill)
	return s
}

func (s *pasted) kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-s.exited
}

// says waits for a line of its output.
func (s *pasted) says(line string) {
	s.t.Helper()
	deadline := time.Now().Add(9 * wait) // it may have to fetch packages first, on a machine with much to do
	for !strings.Contains("\n"+s.out.String(), "\n"+line+"\n") {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q is not printed; it printed %q and %q", line, s.out.String(), s.errs.String())
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// TestConsoleJourney: who has never been here comes by the link that the host
// printed, makes a channel, pastes a program, sees it attach, tests it, changes
// its token and deletes it.
func TestConsoleJourney(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.setUp()
	var unused string
	p.Shows("From here to the first message")
	p.Accessible("overview-first")
	p.Press("Make the first channel")
	p.Shows("You get a token")
	p.Type("name", "Not A Name")
	p.Press("Make the channel")
	p.Is("the fault stands beside its field", "document.getElementById('name').matches('[aria-invalid=true]:focus') && document.getElementById('name-error').innerText.includes('a-z, 0-9')")
	p.Is("what was typed is kept", "document.getElementById('name').value === 'Not A Name'")
	p.Accessible("channel-refused")
	p.Type("name", "demo")
	p.Press("Make the channel")
	p.Shows("demo is ready")
	p.Shows("Waiting for the adapter")
	p.Accessible("channel-created")

	p.JS(nil, "window.sameDocument = true")
	python := paste(t, p, "Python", "adapter.py")
	python.says("attached to demo")
	p.Shows("Attached.")
	p.Is("the page was not loaded again", "window.sameDocument")
	p.Shows("terminal by websocket")
	python.types("hello")
	python.says("echo: hello")
	p.Accessible("channel-attached")

	p.Press("Send a test message")
	p.Is("the channel's page", "location.pathname === '/console/channels/demo' && document.getElementById('conversation_id').value === ''")
	p.Shows("The latest is terminal:me.")
	p.Type("conversation_id", "terminal:me")
	p.Press("Send a test message")
	p.Shows("Confirmed: the platform took it.")
	python.says("Test message from Pontoon.")
	p.Accessible("channel-tested")
	p.Go(h.url + "/console/conversations?channel=demo")
	p.Press("terminal:me")
	p.Shows("echo: hello")
	p.Shows("Operator ada")
	p.Go(h.url + "/console/audit?action=message")
	p.Shows("message.test")
	p.Shows("terminal:me")
	p.Go(h.url + "/console/connections?channel=demo")
	p.Shows("attached")

	p.Go(h.url + "/console/channels/demo")
	p.Press("Rotate the token")
	p.Shows("New token of demo")
	p.Is("the old one goes on", "[...document.querySelectorAll('time[data-left]')].some(e => /^in 2[34] h|^in 1 d/.test(e.innerText))")
	p.Accessible("channel-rotated")
	p.Press("Done: back to demo")
	p.Shows("Adapters may claim")
	p.JS(&unused, "[...document.querySelectorAll('tbody tr')].find(r => r.querySelector('.badge')?.innerText === 'live' && r.querySelector('.button.bad')).querySelector('th code').innerText.slice(-4)")
	p.Press("Revoke …\nthe token ending " + unused) // the second line is for who does not see the row
	p.Shows("Nobody is attached with it now.")
	p.Accessible("token-revoke")
	p.Press("Revoke the token")
	p.Shows("The token is revoked. Nobody was attached with it.")
	p.Is("it is revoked, and the adapter's own is not", "[...document.querySelectorAll('tbody .badge')].map(b => b.innerText).sort().join() === 'ending,revoked' && document.querySelectorAll('.button.bad.small').length === 1")
	p.Is("the adapter stays", "document.querySelector('#health').innerText.includes('terminal')")
	p.Press("Disable …")
	p.Shows("Attached now: terminal by websocket")
	p.Press("Disable demo")
	p.Shows("Whoever was attached has been cut off")
	python.stderr("the host wants no new connection")
	p.Press("Enable")
	p.Shows("Adapters may attach.")
	p.Type("confirm", "dem")
	p.Press("Delete demo")
	p.Shows(`expected "demo", letter by letter`)
	p.Type("confirm", "demo")
	p.Press("Delete demo")
	p.Shows("Channel demo is deleted")
	p.Quiet()
	if got := h.cli("channel", "list"); strings.Contains(got, "demo") {
		t.Errorf("the channel is still there:\n%s", got)
	}
}

// stderr waits for text in its error output.
func (s *pasted) stderr(text string) {
	s.t.Helper()
	eventually(s.t, text+" on stderr", func() bool { return strings.Contains(s.errs.String(), text) })
}

// TestConsoleSnippets: every snippet runs as it is pasted.
func TestConsoleSnippets(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.console("channels/new")
	p.Type("name", "demo")
	p.Press("Make the channel")
	p.Shows("demo is ready")
	for _, l := range []struct{ language, file, attached string }{{"Node", "adapter.mjs", "attached to demo"}, {"Go", "main.go", "attached"}} {
		s := paste(t, p, l.language, l.file)
		s.says(l.attached)
		s.types("hello")
		s.says("echo: hello")
		if l.language == "Go" {
			var curl string
			p.JS(&curl, "document.getElementById('snippet-curl').textContent")
			cmd := exec.Command("sh", "-ec", curl)
			cmd.Dir = t.TempDir() // anywhere
			cmd.Env = baseEnv
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), `"state":`) {
				t.Fatalf("curl: %v\n%s", err, out)
			}
			s.says("Hello from curl")
		}
		s.kill()
		eventually(t, "it has gone", func() bool { return !strings.Contains(h.cli("adapters"), "demo") })
	}
}

// TestConsoleNoScripts: channels are made, changed and deleted without JavaScript.
func TestConsoleNoScripts(t *testing.T) {
	t.Parallel()
	h := startHost(t)
	p := h.console("channels")
	p.Scripts(false)
	p.Go(h.url + "/console/channels/new")
	p.Type("name", "No")
	p.Press("Make the channel")
	p.Is("the fault stands beside its field", "document.getElementById('name').getAttribute('aria-describedby') === 'name-hint name-error'")
	p.Type("name", "plain")
	p.Press("Make the channel")
	p.Shows("plain is ready")
	p.Is("the token can be selected", "document.getElementById('secret').textContent.startsWith('pnt_')")
	p.Is("no button that does nothing", "![...document.querySelectorAll('[data-copy]')].some(e => e.checkVisibility())")
	p.JS(nil, "document.querySelectorAll('.tabs > input')[2].click()")
	p.Is("tabs turn", "document.getElementById('snippet-Go').checkVisibility() && !document.getElementById('snippet-Python').checkVisibility()")

	p.Go(h.url + "/console/channels/plain/edit")
	p.Type("queue_limits.length", "many")
	p.Type("allow_users", "ann\nbob")
	p.Press("Save")
	p.Shows("expected a whole number")
	p.Is("what was typed is kept", "document.getElementById('allow_users').value === 'ann\\nbob'")
	p.Type("queue_limits.length", "7")
	p.JS(nil, "document.querySelector('[name=queue]').click()")
	p.Press("Save")
	p.Shows("Saved.")
	p.Shows("2 users")
	var ch struct {
		Queue  bool     `json:"queue"`
		Users  []string `json:"allow_users"`
		Limits struct {
			Length int `json:"length"`
		} `json:"queue_limits"`
	}
	h.must(&ch, "GET", "/channels/plain", "")
	if !ch.Queue || len(ch.Users) != 2 || ch.Limits.Length != 7 {
		t.Errorf("got %+v", ch)
	}
	p.Type("confirm", "plain")
	p.Press("Delete plain")
	p.Shows("Channel plain is deleted")
	p.Quiet()
}
