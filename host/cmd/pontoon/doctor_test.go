package main

import (
	"encoding/json"
	"io/fs"
	"maps"
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
		"empty":     "",
	} {
		writeFile(t, db, broken)
		if f := diagnose(t, env, 1)["database check"]; f.Result != checkFail {
			t.Errorf("%s: %+v", name, f)
		}
	}
	writeFile(t, db, string(good))
	if found := checkDatabase(t.Context(), h.data, time.Nanosecond); found[2].Result != checkWarn || !strings.Contains(found[2].Detail, "cut off") {
		t.Errorf("without patience: %+v", found)
	}

	diagnosed(t, diagnose(t, []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + t.TempDir()}, 0), "database", checkWarn, "not there yet")
}
