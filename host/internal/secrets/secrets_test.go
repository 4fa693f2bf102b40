package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func generate(t testing.TB) *Key {
	t.Helper()
	k, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealOpen(t *testing.T) {
	t.Parallel()
	k, other := generate(t), generate(t)
	const place = "agent/1/secret"
	for _, secret := range []string{"", "x", strings.Repeat("long ", 1000), "\x00\xff"} {
		sealed, err := k.Seal([]byte(secret), place)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := k.Seal([]byte(secret), place); err != nil || again == sealed {
			t.Errorf("%.10q: sealed twice the same, %v", secret, err)
		}
		if secret != "" && len(secret) > 4 && strings.Contains(sealed, secret) {
			t.Errorf("%.10q shows", secret)
		}
		if got, err := k.Open(sealed, place); err != nil || string(got) != secret {
			t.Errorf("%.10q: opened %.10q, %v", secret, got, err)
		}
		if _, err := k.Open(sealed, "agent/2/secret"); !errors.Is(err, ErrForge) || !strings.Contains(err.Error(), "agent/2/secret") {
			t.Errorf("moved: %v", err)
		}
		if _, err := other.Open(sealed, place); !errors.Is(err, ErrKey) {
			t.Errorf("other key: %v", err)
		}
		forged := strings.Replace(sealed, k.ID(), other.ID(), 1)
		if _, err := other.Open(forged, place); !errors.Is(err, ErrForge) {
			t.Errorf("other key under another's id: %v", err)
		}
		for i := len("v1."); i < len(sealed); i++ {
			b := []byte(sealed)
			b[i] ^= 1
			if _, err := k.Open(string(b), place); err == nil {
				t.Fatalf("opened with byte %d changed", i)
			}
		}
	}
	for _, s := range []string{"", "v1", "v1.", "v1.." + k.ID(), "v2." + k.ID() + ".AAAA", "clear text", "v1." + k.ID() + ".!"} {
		if _, err := k.Open(s, place); !errors.Is(err, ErrForm) && !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := k.Open("v1."+k.ID()+".AAAA", place); !errors.Is(err, ErrForge) {
		t.Errorf("too short: %v", err)
	}
	if _, err := k.Seal(make([]byte, MaxSecret+1), place); err == nil {
		t.Error("sealed more than is allowed")
	}
}

func TestKeyShowsNothing(t *testing.T) {
	t.Parallel()
	k := generate(t)
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k)} {
		if shown != "master key "+k.ID() {
			t.Errorf("shown as %s", shown)
		}
	}
	if strings.Contains(hex.EncodeToString(k.master), k.ID()) {
		t.Error("the id is a part of the key")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	k := generate(t)
	for _, text := range []string{
		hex.EncodeToString(k.master), strings.ToUpper(hex.EncodeToString(k.master)) + "\n", base64.StdEncoding.EncodeToString(k.master),
		base64.RawStdEncoding.EncodeToString(k.master), base64.URLEncoding.EncodeToString(k.master), " " + base64.RawURLEncoding.EncodeToString(k.master),
	} {
		if got, err := Parse(text); err != nil || got.ID() != k.ID() {
			t.Errorf("%d characters: %v, %v", len(text), got, err)
		}
	}
	for _, text := range []string{"", "password", hex.EncodeToString(k.master)[1:], hex.EncodeToString(k.master) + "00", strings.Repeat("z", 64), base64.StdEncoding.EncodeToString(k.master[:31])} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), Wanted) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%d characters: %v", len(text), err)
		}
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{}
	from := SourceIn(dir, "", func(name string) string { return env[name] })
	if _, err := from.Read(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), from.File) {
		t.Fatalf("no file: %v", err)
	}
	k := generate(t)
	if err := k.Write(from.File); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "master.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if got, err := from.Read(); err != nil || got.ID() != k.ID() {
		t.Errorf("read %v, %v", got, err)
	}
	if err := generate(t).Write(from.File); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written over: %v", err)
	}
	other := generate(t)
	env[EnvKey] = base64.StdEncoding.EncodeToString(other.master)
	if got, err := SourceIn(dir, "", func(name string) string { return env[name] }).Read(); err != nil || got.ID() != other.ID() {
		t.Errorf("environment: %v, %v", got, err)
	}
	env[EnvKey] = "canary of a wrong key"
	if _, err := SourceIn(dir, "", func(name string) string { return env[name] }).Read(); err == nil ||
		!strings.HasPrefix(err.Error(), EnvKey+": ") || strings.Contains(err.Error(), "canary") {
		t.Errorf("wrong environment: %v", err)
	}
	if err := os.Chmod(from.File, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Read(); err == nil || !strings.Contains(err.Error(), "mode 0640, expected 0600") {
		t.Errorf("readable by others: %v", err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{large, dir} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k := generate(f)
	sealed, err := k.Seal([]byte("secret"), "place")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed, "place")
	f.Add("v1."+k.ID()+".", "")
	f.Fuzz(func(t *testing.T, text, place string) {
		got, err := k.Open(text, place)
		if err == nil && (text != sealed || place != "place" || !bytes.Equal(got, []byte("secret"))) {
			t.Errorf("opened %q at %q, which nobody sealed", text, place)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(strings.Repeat("0f", KeyBytes))
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, KeyBytes)))
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := Parse(text); (err == nil) != (k != nil) || err == nil && len(k.master) != KeyBytes {
			t.Errorf("%q: %v, %v", text, k, err)
		}
	})
}
