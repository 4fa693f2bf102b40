package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host whose database is taken away under it ends by itself, with an error that
// names the file. Once it said that it is not ready it never says that it is.
func TestServeEndsWithoutItsDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(data string) error
		code int
	}{
		"directoryDeleted": {os.RemoveAll, exitLost},
		"databaseDeleted":  {func(data string) error { return os.Remove(filepath.Join(data, "pontoon.db")) }, exitLost},
		"databaseEmptied":  {func(data string) error { return replaced(filepath.Join(data, "pontoon.db")) }, exitLost},
		"logDeleted":       {func(data string) error { return os.Remove(filepath.Join(data, "pontoon.db-wal")) }, 1}, // the next start has all
	} {
		t.Run(name, func(t *testing.T) {
			h := startHost(t)
			h.anyEnd = true
			if err := c.lose(h.data); err != nil {
				t.Fatal(err)
			}
			refused := false
			eventually(t, "the host has ended", func() bool {
				switch status, _, err := readyz(h.url); {
				case err == nil && status == http.StatusServiceUnavailable:
					refused = true
				case err == nil && refused:
					t.Errorf("ready again: %d", status)
				}
				select {
				case <-h.exited:
					return true
				default:
					return false
				}
			})
			if code := h.waitExit(); code != c.code {
				t.Errorf("exit status %d, expected %d", code, c.code)
			}
			said := lines(h.errs.String())
			if last := said[len(said)-1]; !strings.Contains(last, filepath.Join(h.data, "pontoon.db")) {
				t.Errorf("ended with %q, expected the database's name", last)
			}
		})
	}
}

// replaced puts an empty file in the place of another one.
func replaced(path string) error {
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// A second host is kept out of a data directory whose lock somebody removed, and a
// host does not begin empty where there were messages.
func TestServeKeepsWhatIsThere(t *testing.T) {
	h := startHost(t)
	if err := os.Remove(filepath.Join(h.data, "pontoon.lock")); err != nil {
		t.Fatal(err)
	}
	serve := func() result {
		return runCommand(t, nil, "", "serve", "--data", h.data, "--listen", "127.0.0.1:0")
	}
	if r := serve(); r.code == 0 || !strings.Contains(r.err, "in use") {
		t.Errorf("a second host: exit status %d, %s", r.code, r.err)
	}
	h.stop()
	database := filepath.Join(h.data, "pontoon.db")
	for what, lose := range map[string]func() error{
		"an empty database":  func() error { return replaced(database) },
		"a database missing": func() error { return os.Remove(database) },
	} {
		if err := lose(); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if r := serve(); r.code != exitLost || !strings.Contains(r.err, database) || !strings.Contains(r.err, "admin.key") {
			t.Errorf("%s: exit status %d, %s", what, r.code, r.err)
		}
		if r := runCommand(t, nil, "", "doctor", "--data", h.data, "--url", "http://127.0.0.1:1"); r.code != 1 || !strings.Contains(r.out, "the database is lost") {
			t.Errorf("%s: doctor ends with %d: %s", what, r.code, r.out)
		}
	}
}
