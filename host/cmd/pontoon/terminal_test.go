//go:build linux

package main

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/await"
)

// shell is a terminal that a command runs in, with who sits at it.
type shell struct {
	t      *testing.T
	tty    *os.File // the command's side: as long as it is open the other one tells of no end
	screen *os.File // ours
	cmd    *exec.Cmd
	shown  buffer
	read   chan struct{} // closed at the end of what is shown
}

func openShell(t *testing.T, env []string, args ...string) *shell {
	t.Helper()
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, tty: tty, screen: screen, cmd: exec.Command(pontoonBinary, args...), read: make(chan struct{})}
	s.cmd.Env, s.cmd.Dir = slices.Concat(baseEnv, env), t.TempDir()
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that Ctrl-C is a signal
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.read)
		_, _ = io.Copy(&s.shown, screen) // ends with an error once nobody has the other side
	}()
	return s
}

// expect waits until the screen shows text.
func (s *shell) expect(text string) {
	s.t.Helper()
	eventually(s.t, "the terminal shows "+text, func() bool { return strings.Contains(s.shown.String(), text) })
}

// echoes reports whether what is typed can be seen.
func (s *shell) echoes() bool {
	s.t.Helper()
	mode, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return mode.Lflag&unix.ECHO != 0
}

// answer types at a prompt, once what is typed can't be seen.
func (s *shell) answer(prompt, keys string) {
	s.t.Helper()
	s.expect(prompt)
	eventually(s.t, "nothing is echoed", func() bool { return !s.echoes() })
	if _, err := s.screen.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the command, and returns what was shown and its exit code. The
// terminal must be as it was.
func (s *shell) end() (shown string, code int) {
	s.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.cmd.Wait() // its status is in ProcessState
	}()
	eventually(s.t, "the command ends", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if !s.echoes() {
		s.t.Error("the terminal is left without echo")
	}
	_ = s.tty.Close()
	await.Value(s.t, "the terminal closes", s.read)
	_ = s.screen.Close()
	return s.shown.String(), s.cmd.ProcessState.ExitCode()
}

// asksForSecret: whoever sits at a terminal is asked twice, and nobody sees it. At
// the end the secret has the value.
func (h *host) asksForSecret(t *testing.T, name, value string) {
	t.Helper()
	for what, c := range map[string]struct {
		first, again, shown string
		code                int
	}{
		"ok":           {value + "\n", value + "\n", "Set " + name + ".", 0},
		"errDiffer":    {value + "\n", value + "x\n", "found two that differ, expected the same twice", 1},
		"errInterrupt": {value + "\n", value + "\x03", "", 130},
	} {
		s := openShell(t, h.env(), "secret", "set", name)
		s.answer("Secret: ", c.first)
		s.answer("Again: ", c.again)
		shown, code := s.end()
		if code != c.code || !strings.Contains(shown, c.shown) || strings.Contains(shown, value) {
			t.Errorf("%s: exit code %d, expected %d with %q:\n%s", what, code, c.code, c.shown, shown)
		}
		if code != 0 && strings.Contains(shown, "Set ") {
			t.Errorf("%s: it was set:\n%s", what, shown)
		}
	}
}
