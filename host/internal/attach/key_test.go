package attach

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestRotate(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	first := h.get(o)
	for i := range maxKeys - 1 {
		if err := h.Rotate(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Parse(first); err != nil {
			t.Errorf("after %d rotations: %v", i+1, err)
		}
	}
	second := h.get(o)
	if err := h.Rotate(); err != nil {
		t.Fatal(err)
	}
	_, err := h.Parse(first)
	refused(t, err, ErrForged, "the token of an unknown key", first)
	if r := do(t, "GET", first, nil, nil); r.status != http.StatusForbidden {
		t.Errorf("found %d, expected 403", r.status)
	}
	if _, err := h.Parse(second); err != nil {
		t.Error(err)
	}
	// The next start has the same keys.
	again := open(t, h.dir, Options{Base: func() string { return h.url }})
	if _, err := again.Parse(second); err != nil {
		t.Error(err)
	}
	if _, err := again.Parse(first); err == nil {
		t.Error("a dropped key came back")
	}
	if keys := readKeys(t, h.dir); len(keys) != maxKeys || keys[maxKeys-1].ID != h.keys.newest().ID {
		t.Errorf("found %d keys on the disk, expected %d, the newest last", len(keys), maxKeys)
	}
}

func TestConcurrentRotate(t *testing.T) {
	h := newHost(t, Options{})
	o := h.put(t, "text", Claim{})
	var wg sync.WaitGroup
	for range maxKeys - 1 {
		wg.Go(func() {
			if err := h.Rotate(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := h.Parse(h.get(o)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys := readKeys(t, h.dir); len(keys) != maxKeys {
		t.Errorf("found %d keys, expected %d", len(keys), maxKeys)
	}
}

func readKeys(t *testing.T, dir string) []key {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	var keys []key
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// What a crash left of a rotation is cleared away.
func TestLeftKeyFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, newKeyFile), "half")
	open(t, dir, Options{})
	if _, err := os.Stat(filepath.Join(dir, newKeyFile)); !os.IsNotExist(err) {
		t.Errorf("found %v, expected it gone", err)
	}
}

func TestKeyFileRefused(t *testing.T) {
	const secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	one := `{"id":"a","secret":"` + secret + `"}`
	for name, c := range map[string]struct{ content, want string }{
		"ok":          {"[" + one + "]", ""},
		"errEmpty":    {"", "found no JSON list of {id, secret} (remove it"},
		"errObject":   {one, "found no JSON list"},
		"errNone":     {"[]", "found 0 keys, expected 1 to 4"},
		"errNull":     {"null", "found 0 keys"},
		"errMany":     {"[" + strings.Repeat(one+",", 4) + one + "]", "found 5 keys"},
		"errTwice":    {"[" + one + "," + one + "]", "key 2: found an id that is empty, too long or there twice"},
		"errNoID":     {`[{"secret":"` + secret + `"}]`, "key 1: found an id"},
		"errShort":    {`[{"id":"a","secret":"c2VjcmV0"}]`, "key 1: found a secret of 6 bytes, expected at least 32"},
		"errNoBase64": {`[{"id":"a","secret":"` + secret + `!"}]`, "found no JSON list"},
		"errHuge":     {strings.Repeat(" ", maxJSON+1), "found more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, KeyFile), c.content)
			s, err := Open(dir, Options{})
			if err == nil {
				_ = s.Close()
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret[:8])):
				t.Errorf("found %v, expected %q", err, c.want)
			}
			if b, err := os.ReadFile(filepath.Join(dir, KeyFile)); err != nil || string(b) != c.content {
				t.Errorf("the file was changed to %q, %v", b, err)
			}
		})
	}
}
