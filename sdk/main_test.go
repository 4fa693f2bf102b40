package sdk

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

func TestEndpoint(t *testing.T) {
	for given, want := range map[string]string{
		"":                               "ws://127.0.0.1:8080" + wire.Path,
		"http://h:1":                     "ws://h:1" + wire.Path,
		"http://h:1/":                    "ws://h:1" + wire.Path,
		"https://h/prefix/":              "wss://h/prefix" + wire.Path,
		"https://h" + wire.Path:          "wss://h" + wire.Path,
		"ws://h:1":                       "ws://h:1" + wire.Path,
		"wss://h/":                       "wss://h" + wire.Path,
		"wss://h/elsewhere?a=b":          "wss://h/elsewhere?a=b",
		"http://[::1]:8080?token=x#frag": "ws://[::1]:8080" + wire.Path + "?token=x",
	} {
		if got, err := endpoint(given); err != nil || got != want {
			t.Errorf("endpoint(%q) = %q, %v, want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"127.0.0.1:8080", "localhost", "ftp://h", "http://", "ws:///x", "http://h/%zz?token=secret", "http://secret@h:port"} {
		if got, err := endpoint(given); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("endpoint(%q) = %q, %v, want an error without the url", given, got, err)
		}
	}
	if got := shown("wss://user:secret@h/p?token=secret"); got != "wss://h/p" {
		t.Errorf("shown = %q", got)
	}
}

func TestOptionsFromFlagsAndEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte("\n {\"a\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want Options
	}{
		"environment": {
			env:  map[string]string{"PONTOON_URL": "http://e", "PONTOON_TOKEN": " t\n", "PONTOON_CONFIG": file},
			want: Options{URL: "http://e", Token: "t", Config: []byte(`{"a": 1}`)},
		},
		"flags win": {
			args: []string{"--url", "http://f", "--token=f", "--config", ` {"b":2}`},
			env:  map[string]string{"PONTOON_URL": "http://e", "PONTOON_TOKEN": "e", "PONTOON_CONFIG": file},
			want: Options{URL: "http://f", Token: "f", Config: []byte(`{"b":2}`)},
		},
		"only a token": {env: map[string]string{"PONTOON_TOKEN": "t"}, want: Options{Token: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := optionsOf("x", c.args, func(k string) string { return c.env[k] }, &logs{})
			if err != nil || got.URL != c.want.URL || got.Token != c.want.Token || !bytes.Equal(got.Config, c.want.Config) {
				t.Errorf("options = %q %q %s, %v", got.URL, got.Token, got.Config, err)
			}
		})
	}
}

func TestExitStatus(t *testing.T) {
	h := newHost(t)
	h.refuse = func(int) string { return "invalid token" }
	bad := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(bad, []byte("{\n\"a\" 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := "--token=" + testToken
	for name, c := range map[string]struct {
		args []string
		want int
		line string
	}{
		"help":                {[]string{"--help"}, 0, "PONTOON_TOKEN"},
		"unknown flag":        {[]string{"--what"}, 2, "-what"},
		"an argument":         {[]string{token, "what"}, 2, `"what"`},
		"no token":            {nil, 2, "PONTOON_TOKEN"},
		"bad url":             {[]string{token, "--url=h"}, 2, "http://"},
		"no such config":      {[]string{token, "--config=/no/such/file"}, 1, "/no/such/file"},
		"broken config":       {[]string{token, "--config=" + bad}, 1, bad + ":2:5: "},
		"config is no object": {[]string{token, "--config={}{}"}, 1, "configuration:1:3"},
		"refused by the host": {[]string{token, "--url=" + h.URL}, 1, "x: host refused to register this adapter: invalid token\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr logs
			got := Start(t.Context(), "test", &plain{}, append([]string{"/bin/x"}, c.args...), func(string) string { return "" }, &stderr)
			if got != c.want || !strings.Contains(stderr.String(), c.line) || strings.Contains(stderr.String(), testToken) {
				t.Errorf("exit %d, want %d with %q and without the token:\n%s", got, c.want, c.line, stderr.String())
			}
		})
	}
}

// A program without the other way to the host must say what it lacks, to an operator
// who sees its last line, and must not be started again.
func TestStartedAsPluginByMistake(t *testing.T) {
	var stderr logs
	cookie := func(name string) string { return map[string]string{transport.CookieKey: transport.CookieValue}[name] }
	got := Start(t.Context(), "test", &plain{}, []string{"/bin/x"}, cookie, &stderr)
	if text := stderr.String(); got != transport.ExitConfig || strings.Count(text, "\n") != 1 || !strings.Contains(text, "pontoon/sdk/plugin") {
		t.Errorf("exit %d, want %d and one line that names the package to import:\n%s", got, transport.ExitConfig, text)
	}
}

const hello = "../docs/examples/hello"

func TestHelloIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(hello, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 40 {
		t.Errorf("the example has %d lines, at most 40 are promised", n)
	}
}

func TestHelloTalksAndStopsOnASignal(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "hello")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, hello).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	h := newHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	program := exec.CommandContext(ctx, binary)
	program.Env = append(os.Environ(), "PONTOON_URL="+h.URL, "PONTOON_TOKEN="+testToken)
	var stderr logs
	program.Stderr = &stderr
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("Hello\n")); err != nil {
		t.Fatal(err)
	}
	p := receive(t, "connection", h.peers)
	if want := `{"type":"message","session_key":"terminal:local:me","user_id":"me","text":"Hello"}`; receive(t, "frame", p.frames) != want {
		t.Errorf("frame is not %s", want)
	}
	p.write(t, send("terminal:local:me", "Hello back"))
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "Hello back" {
		t.Errorf("printed %q, %v", lines.Text(), lines.Err())
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantNormalClose(t, p)
	if err := program.Wait(); err != nil {
		t.Errorf("exit: %v, want 0", err)
	}
	if strings.Contains(stderr.String(), testToken) {
		t.Errorf("the token is in the log:\n%s", stderr.String())
	}
}
