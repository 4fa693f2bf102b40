package console

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
)

// beside opens a host's database beside it.
func beside(t *testing.T, dir string) *sql.DB {
	t.Helper()
	d, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.File)+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// copyChannel writes n channels like one that is there.
func copyChannel(t *testing.T, dir, name string, n int) {
	t.Helper()
	d := beside(t, dir)
	var columns string
	if err := d.QueryRowContext(t.Context(), "SELECT group_concat(name) FROM pragma_table_info('channel') WHERE name NOT IN ('id', 'uid', 'name')").Scan(&columns); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(t.Context(), fmt.Sprintf(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
		INSERT INTO channel (uid, name, %s) SELECT uid || '-' || n, name || '-' || printf('%%05d', n), %s FROM channel, i WHERE name = ?`, columns, columns), n, name); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(t.Context(), `INSERT INTO credential (kind, id, channel, name, scopes, channels, hash, hint, created_at)
		SELECT 'channel_token', 1000000 + id, id, '', '[]', '[]', randomblob(32), 'copy', created_at FROM channel WHERE name LIKE ? || '-%'`, name); err != nil {
		t.Fatal(err)
	}
}

// TestManyChannels: with thousands of channels every number is that of all, and every one
// of them is found by paging, by its name and by its agent.
func TestManyChannels(t *testing.T) {
	v := visit(t)
	const many = 5000
	v.Channel("red")
	v.Must(nil, "POST", "/agents", `{"name":"clerk","kind":"websocket"}`)
	copyChannel(t, v.Dir, "red", many)
	last := v.Channel("yellow", hosttest.WithAgent("clerk"))
	v.Attach(t, last)
	all := fmt.Sprint(many + 2)
	for path, want := range map[string]string{
		"":                      "of " + all + " that may be attached",
		"channels?q=05000":      "red-05000",
		"channels?q=ELLO":       "yellow",
		"channels?agent=clerk":  "yellow",
		"channels?trouble=true": "agent away",
		"channels?q=nonsense":   "No channel is like that",
		"agents":                "1 channel",
		"agents/clerk":          "1 channel",
		"agents/echo":           fmt.Sprint(many+2) + " channels",
		"conversations":         "The page Channels finds names",
		"dead":                  "The page Channels finds names",
		"metrics":               "The page Channels finds names",
		"access":                "One name a line",
		"channels/" + last.Name: "yellow",
	} {
		v.open(path)
		began := time.Now()
		v.open(path)
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Logf("%q took %s", path, took)
		}
		if v.status != 200 || !strings.Contains(v.words(), want) {
			t.Errorf("%q does not say %q: %.500s", path, want, v.words())
		}
	}
	v.open("")
	if !strings.Contains(v.words(), "yellow agent away") {
		t.Errorf("the overview does not list the one that wants somebody:\n%s", v.words())
	}
	seen, pages := map[string]bool{}, 0
	for path := "channels?q=red-004"; path != ""; pages++ {
		v.open(path)
		path = ""
		for n := range v.root.Descendants() {
			switch {
			case n.Data != "a":
			case attr(n, "rel") == "next":
				path = strings.TrimPrefix(attr(n, "href"), Path)
			case n.Parent != nil && n.Parent.Data == "th":
				seen[textOf(n)] = true
			}
		}
	}
	if len(seen) != 100 || pages < 2 || !seen["red-00400"] || !seen["red-00499"] {
		t.Errorf("%d pages show %d channels", pages, len(seen))
	}
	// A key of channels beyond those that a menu would hold.
	v.open("access")
	v.send("access", map[string]string{"name": "far", "scope": "read", "channels": "red-05000\nyellow"})
	var made struct {
		Keys []struct {
			Name     string
			Channels []struct{ Name string }
		}
	}
	v.Must(&made, "GET", "/keys", "")
	if len(made.Keys) != 1 || fmt.Sprint(made.Keys[0].Channels) != "[{red-05000} {yellow}]" {
		t.Errorf("made %+v", made)
	}
}
