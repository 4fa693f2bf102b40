package main

import (
	"database/sql"
	"encoding/json"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// diagnose runs the doctor where no host is at the url, and returns its findings
// by what they are about.
func diagnose(t *testing.T, env []string, code int) map[string]finding {
	t.Helper()
	r := runCommand(t, env, "", "doctor", "--json")
	var v struct{ Checks []finding }
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != code || r.err != "" {
		t.Fatalf("doctor: %v, exit status %d, expected %d: %+v", err, r.code, code, r)
	}
	found := map[string]finding{}
	for _, f := range v.Checks {
		found[f.What] = f
	}
	return found
}

// listing is all that is in a directory, with sizes and times.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			all[path] = info.Mode().String() + info.ModTime().String() + size(info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func diagnosed(t *testing.T, found map[string]finding, what, result, detail string) {
	t.Helper()
	if f := found[what]; f.Result != result || !strings.Contains(f.Detail, detail) {
		t.Errorf("%s: found %+v, expected %s with %q", what, f, result, detail)
	}
}

func TestDoctorOfStorage(t *testing.T) {
	p := newPast(t, 1)
	row, c := p.channel("a")
	p.say(c, 500, strings.Repeat("x", 1000), p.file(row, "some text"))
	h := p.host()
	found := diagnose(t, h.env(), 0)
	diagnosed(t, found, "database check", checkOK, "nothing wrong")
	diagnosed(t, found, "host", checkOK, "ready")
	h.stop()

	env := []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + h.data}
	before := listing(t, h.data)
	found = diagnose(t, env, 0)
	diagnosed(t, found, "database check", checkOK, "nothing wrong")
	diagnosed(t, found, "schema", checkOK, "the newest")
	diagnosed(t, found, "search index", checkOK, "")
	diagnosed(t, found, "database", checkOK, "is free for new messages; log 0 B")
	diagnosed(t, found, "attachments", checkOK, "2 files")
	if f := found["free space"]; f.Detail == "" {
		t.Errorf("free space is not told: %+v", found)
	}
	if after := listing(t, h.data); !maps.Equal(before, after) {
		t.Errorf("the doctor changed something:\n%v\n%v", before, after)
	}

	// Killed in the middle of its work: what is in the log counts.
	h.again()
	h.kill()
	before = listing(t, h.data)
	diagnosed(t, diagnose(t, env, 0), "database check", checkOK, "nothing wrong")
	delete(before, filepath.Join(h.data, "pontoon.db-shm"))
	after := listing(t, h.data)
	delete(after, filepath.Join(h.data, "pontoon.db-shm")) // shared memory, not data
	if !maps.Equal(before, after) {
		t.Errorf("the doctor changed something:\n%v\n%v", before, after)
	}

	for _, name := range []string{"before-restore-1", ".restore-2"} {
		if err := os.Mkdir(filepath.Join(h.data, name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(h.data, name, "x"), "1234")
		diagnosed(t, diagnose(t, env, 0), "leftover", checkWarn, name+", 4 B: ")
		if err := os.RemoveAll(filepath.Join(h.data, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctorOfBrokenDatabase(t *testing.T) {
	p := newPast(t, 1)
	_, c := p.channel("a")
	p.say(c, 500, strings.Repeat("x", 1000))
	h := p.host()
	h.stop()
	env := []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + h.data}
	db := filepath.Join(h.data, "pontoon.db")
	good, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]string{
		"a page":    string(good[:100<<10]) + strings.Repeat("\xa5", 20<<10) + string(good[120<<10:]),
		"cut short": string(good[:len(good)/2]),
		"no header": strings.Repeat("x", 8192),
	} {
		writeFile(t, db, broken)
		if f := diagnose(t, env, 1)["database check"]; f.Result != checkFail {
			t.Errorf("%s: %+v", name, f)
		}
	}
	writeFile(t, db, "")
	diagnosed(t, diagnose(t, env, 1), "database", checkFail, "the database is lost")
	if err := os.Remove(db); err != nil {
		t.Fatal(err)
	}
	diagnosed(t, diagnose(t, env, 1), "database", checkFail, "admin.key")
	writeFile(t, db, string(good))
	if found := checkDatabase(t.Context(), h.data, time.Nanosecond); found[2].Result != checkWarn || !strings.Contains(found[2].Detail, "cut off") {
		t.Errorf("without patience: %+v", found)
	}

	diagnosed(t, diagnose(t, []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + t.TempDir()}, 0), "database", checkWarn, "not there yet")
}

// TestDoctorOfSystem: permissions, the port, the clock, and what failed.
func TestDoctorOfSystem(t *testing.T) {
	h := startHost(t)
	h.channel("a", "")
	p := h.attach(h.channel("b", ""))
	p.ask("room", "one", "echo: one")
	env := h.env()
	diagnosed(t, diagnose(t, env, 0), "dead letters", checkOK, "none")
	diagnosed(t, diagnose(t, env, 0), "permissions", checkOK, "for its owner alone")
	h.stop()
	found := diagnose(t, env, 0)
	diagnosed(t, found, "port", checkOK, "is free")
	if f := found["clock"]; f.Result == checkFail || !strings.Contains(f.Detail, "T") {
		t.Errorf("clock: %+v", f)
	}
	if f := found["file system"]; f.Detail == "" {
		t.Errorf("file system: %+v", found)
	}

	taken, err := net.Listen("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { // it is there, and speaks no HTTP
		for {
			c, err := taken.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	diagnosed(t, diagnose(t, env, 1), "port", checkFail, "is taken by another program")
	_ = taken.Close()

	database := filepath.Join(h.data, "pontoon.db")
	if err := os.Chmod(database, 0o644); err != nil {
		t.Fatal(err)
	}
	diagnosed(t, diagnose(t, env, 1), "permissions", checkFail, "has mode 644, expected 600")
	if err := os.Chmod(database, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.data, 0o755); err != nil {
		t.Fatal(err)
	}
	diagnosed(t, diagnose(t, env, 0), "permissions", checkWarn, "has mode 755, expected 700")

	d, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	// The newest message failed, and came when the clock was a day ahead.
	if _, err := d.Exec("UPDATE message SET id = id + (86400000 << 22), state = 5, reason = 'rejected' WHERE id = (SELECT max(id) FROM message)"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	found = diagnose(t, env, 0)
	diagnosed(t, found, "dead letters", checkWarn, "1: pontoon dead list")
	diagnosed(t, found, "newest message", checkWarn, "ahead of this machine's clock")

	if f := checkClock(func() time.Time { return time.Unix(0, 0) }); f.Result != checkFail {
		t.Errorf("1970: %+v", f)
	}
}
