package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The doctor finds what keeps a host from starting, in the words of the host, and finds
// nothing where one starts. It says of no thing that it is well and that it is not.
func TestDoctorAgreesWithServe(t *testing.T) {
	h := startHost(t)
	h.stop()
	gone := func(names ...string) func(string) error {
		return func(data string) error {
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(data, name)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	in := func(name, text string) func(string) error {
		return func(data string) error {
			if err := gone(name)(data); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(data, name), []byte(text), 0o600)
		}
	}
	directory := func(name string) func(string) error {
		return func(data string) error {
			if err := gone(name)(data); err != nil {
				return err
			}
			return os.Mkdir(filepath.Join(data, name), 0o700)
		}
	}
	keys := []string{"admin.key", "master.key", "attachments.key"}
	for name, c := range map[string]struct {
		change func(data string) error
		about  string // what the doctor finds wrong; "" = nothing
	}{
		"ok":                 {gone(), ""},
		"noAdminKey":         {gone("admin.key"), ""},
		"noKeys":             {gone(keys...), ""},
		"nothing":            {gone(append(keys, "pontoon.db")...), ""},
		"errNoDatabase":      {gone("pontoon.db"), "database"},
		"errEmptyDatabase":   {in("pontoon.db", ""), "database"},
		"errDirectory":       {directory("pontoon.db"), "database"},
		"errNotADatabase":    {in("pontoon.db", strings.Repeat("x", 8192)), "database check"},
		"errEmptyAdminKey":   {in("admin.key", ""), "admin key"},
		"errAdminDirectory":  {directory("admin.key"), "admin key"},
		"errMasterKey":       {in("master.key", "hello"), "master key"},
		"errAttachmentsKey":  {in("attachments.key", ""), "attachments"},
		"errAttachmentsFile": {in("attachments", ""), "attachments"},
		"errRestoreCutOff": {func(data string) error {
			return os.Rename(filepath.Join(data, "pontoon.db"), filepath.Join(data, "before-restore-1"))
		}, "database"},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(data, os.DirFS(h.data)); err != nil {
				t.Fatal(err)
			}
			for _, key := range append(keys, "pontoon.db") { // a copy has other modes
				if err := os.Chmod(filepath.Join(data, key), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.change(data); err != nil {
				t.Fatal(err)
			}
			env := []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + data}
			if c.about == "" {
				diagnose(t, env, 0)
				(&host{t: t, data: data}).start("127.0.0.1:0")
				return
			}
			found := diagnose(t, env, 1)
			for _, what := range slices.Sorted(maps.Keys(found)) {
				if f := found[what]; (f.Result == checkFail) != (what == c.about) {
					t.Errorf("%s: %+v", what, f)
				}
			}
			if f := found["database"]; c.about == "database check" && f.Result != "" {
				t.Errorf("the database is broken, and %+v", f)
			}
			r := runCommand(t, nil, "", "serve", "--data", data, "--listen", "127.0.0.1:0")
			if detail := found[c.about].Detail; r.code == 0 || !strings.Contains(r.err, detail) && c.about != "database check" {
				t.Errorf("the doctor finds %q, the host ends with %d: %s", detail, r.code, r.err)
			}
		})
	}
	nowhere := "/proc/pontoon/data"
	diagnosed(t, diagnose(t, []string{"PONTOON_URL=http://127.0.0.1:1", "PONTOON_DATA=" + nowhere}, 1), "data directory", checkFail, "nor can be made")
	if r := runCommand(t, nil, "", "serve", "--data", nowhere, "--listen", "127.0.0.1:0"); r.code == 0 {
		t.Errorf("a host starts in %s", nowhere)
	}
}
