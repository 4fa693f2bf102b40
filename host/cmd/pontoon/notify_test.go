package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNotify: the host tells the service manager when it serves, that it lives, and
// when it stops.
func TestNotify(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "n") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, "s")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.Close() })
	told := make(chan string, 1000)
	go func() {
		defer close(told)
		b := make([]byte, 4096)
		for {
			n, err := manager.Read(b)
			if err != nil {
				return
			}
			told <- string(b[:n])
		}
	}()
	next := func(want string) {
		t.Helper()
		deadline := time.After(wait)
		for {
			select {
			case got := <-told:
				if strings.HasPrefix(got, want+"\n") || got == want {
					return
				}
				if want != "STOPPING=1" || got != "WATCHDOG=1" {
					t.Fatalf("told %q, want %q", got, want)
				}
			case <-deadline:
				t.Fatalf("not told %q", want)
			}
		}
	}
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), wrap: []string{"env", "NOTIFY_SOCKET=" + at, "WATCHDOG_USEC=300000"}}
	h.start("127.0.0.1:0")
	next("READY=1")
	next("WATCHDOG=1")
	next("WATCHDOG=1")
	h.stop()
	next("STOPPING=1")
}

// TestNobodyToNotify: a socket that is not there is a warning, and no more.
func TestNobodyToNotify(t *testing.T) {
	t.Parallel()
	h := &host{t: t, data: filepath.Join(t.TempDir(), "data"), wrap: []string{"env", "NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")}}
	h.start("127.0.0.1:0")
	h.stop()
	if !strings.Contains(h.errs.String(), "service manager not told") {
		t.Errorf("the log says\n%s", h.errs.String())
	}
}

func TestSecretOf(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	writeFile(t, filepath.Join(dir, "PONTOON_TEST_SECRET"), "from a file\n")
	if got := secretOf("PONTOON_TEST_SECRET"); got != "from a file" {
		t.Errorf("found %q", got)
	}
	writeFile(t, filepath.Join(dir, "PONTOON_TEST_LARGE"), strings.Repeat("x", maxCredential+1))
	for _, name := range []string{"PONTOON_TEST_LARGE", "PONTOON_TEST_NONE"} {
		if got := secretOf(name); got != "" {
			t.Errorf("%s: found %d bytes", name, len(got))
		}
	}
	t.Setenv("PONTOON_TEST_SECRET", "from the environment")
	if got := secretOf("PONTOON_TEST_SECRET"); got != "from the environment" {
		t.Errorf("found %q", got)
	}
}
