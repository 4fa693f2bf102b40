package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// examples is where the examples are that readers run.
const examples = "../../../docs/examples/"

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

// terminal starts a host with a channel and returns what an adapter needs of it.
func terminal(t *testing.T) (env []string) {
	t.Helper()
	h := startHost(t)
	return []string{"USER=alice", "PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + h.channel("terminal", "")}
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
	linesOf(t, examples+"hello/main.go", 40)
	p := startProcess(t, terminal(t), helloBinary)
	p.types("hello")
	p.prints("echo: hello")
	p.types("!buttons")
	p.prints("Pick one:\n[Yes] [No] [Help]")
	p.types("Yes")
	p.prints("echo: yes")
	p.types("!caps")
	p.prints("caps: text,ack")
	p.signal(syscall.SIGINT)
	p.waitExit()
}

// What protocol 1.1 adds to a terminal: files, and answers while they are made.
func TestFiles(t *testing.T) {
	t.Parallel()
	linesOf(t, examples+"files/main.go", 90)
	notes := filepath.Join(t.TempDir(), "notes.txt")
	writeFile(t, notes, "some notes")
	h := startHost(t)
	env := []string{"PONTOON_URL=" + h.url, "PONTOON_TOKEN=" + h.channel("terminal", "")}
	p := startProcess(t, env, filesBinary)
	p.types("/file " + notes)
	p.prints("echo: a file: notes.txt")
	p.types("!stream one")
	p.prints("… echo: one\necho: one")
	p.types("!image")
	p.prints("A pontoon bridge\n" + h.url + "/assets/echo.png\n[vision]")
	p.types("/file " + notes + ".none")
	p.types("/help")
	eventually(t, "the help", func() bool { return strings.Contains(p.out.String(), "/notify") })
	p.signal(syscall.SIGINT)
	p.waitExit()
	var list struct {
		Messages []struct {
			Text  string
			Parts []struct{ FileName, MimeType string }
		}
	}
	h.json(&list, "messages", "terminal")
	found := false
	for _, m := range list.Messages {
		found = found || m.Text == "a file: notes.txt" && len(m.Parts) == 2 && m.Parts[1].FileName == "notes.txt" && m.Parts[1].MimeType == "text/plain"
	}
	if !found {
		t.Errorf("the host has %+v", list.Messages)
	}
}

// pythonWith is a Python that has packages, as pip takes them.
func pythonWith(t *testing.T, packages ...string) string {
	t.Helper()
	venv := filepath.Join(t.TempDir(), "venv")
	python := filepath.Join(venv, "bin", "python")
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		append([]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...),
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("this test needs python3 with venv and pip, and a package index: %v: %v\n%s", args, err, out)
		}
	}
	return python
}

// The reference adapter in Python, with the one package that it needs.
func TestReferenceAdapter(t *testing.T) {
	t.Parallel()
	program := examples + "reference_adapter.py"
	linesOf(t, program, 80)
	python := pythonWith(t, "websockets==15.0.1")
	env := terminal(t)
	p := startProcess(t, env, python, program)
	p.types("hello")
	p.prints("echo: hello")
	p.types("ünïcödé 🌉")
	p.prints("echo: ünïcödé 🌉")
	p.types("!card")
	p.prints("Every element\n**Markdown** with a [link](https://example.org/)\n──────────\n[#1 Help] [#2 Say no]\nA list item [#3 Open]\n" +
		"Choose a colour [#4 Red] [#5 Blue]\nA note")
	p.types("#5")
	p.prints("echo: colour:blue")
	p.types("!buttons")
	p.prints("Pick one: [#1 Yes] [#2 No] [#3 Help]")
	p.types("#1")
	p.prints("echo: yes")
	p.types("!update")
	p.prints("echo: first version\n(edited)\necho: second version")
	p.types("last words") // answered although the input ends behind it
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	p.prints("echo: last words")
	p.waitExit()
	if p.errs.String() != "" {
		t.Errorf("stderr: %s", p.errs.String())
	}

	refused := startProcess(t, []string{env[1], "PONTOON_TOKEN=pnt_thatisnotatoken"}, python, program)
	refused.anyEnd = true
	if code := refused.waitExit(); code != 1 || refused.errs.String() != "the host refused this adapter: invalid token\n" {
		t.Errorf("refused: exit status %d, stderr %q", code, refused.errs.String())
	}
}
