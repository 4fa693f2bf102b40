package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
)

func TestGenerate(t *testing.T) {
	form := regexp.MustCompile(`^(pnt_|pnk_)([0-9A-Za-z]+)([0-9A-Za-z]{6})$`)
	seen := map[string]bool{}
	digits := map[rune]int{}
	for i := range 2000 {
		prefix := TokenPrefix
		if i%2 == 1 {
			prefix = KeyPrefix
		}
		s := Generate(prefix)
		m := form.FindStringSubmatch(s)
		if m == nil || m[1] != prefix {
			t.Fatalf("%q has not the form of a secret", s)
		}
		if bits := float64(len(m[2])) * math.Log2(62); bits < 128 {
			t.Fatalf("%q holds %.0f random bits, fewer than 128", s, bits)
		}
		sum, ok := new(big.Int).SetString(swapCase(m[3]), 62)
		if !ok || sum.Uint64() != uint64(crc32.ChecksumIEEE([]byte(m[1]+m[2]))) {
			t.Fatalf("%q ends with a wrong checksum", s)
		}
		if seen[s] {
			t.Fatalf("%q was made twice", s)
		}
		seen[s] = true
		for _, c := range m[2] {
			digits[c]++
		}
		if err := CheckOwnToken(s); err != nil {
			t.Fatalf("%q is no token: %v", s, err)
		}
	}
	for _, c := range base62 { // 774 of each are expected
		if n := digits[c]; n < 600 || n > 950 {
			t.Errorf("digit %c came %d times in 48000", c, n)
		}
	}
}

// swapCase turns our order of digits (upper case first) into math/big's.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func TestHash(t *testing.T) {
	want := sha256.Sum256([]byte("secret"))
	if got := Hash("secret"); string(got) != string(want[:]) {
		t.Errorf("got %x, want %x", got, want)
	}
	expires := time.Unix(42, 0)
	n := NewCredential("pnt_0123456789abcd", expires)
	if string(n.Hash) != string(Hash("pnt_0123456789abcd")) || n.Hint != "abcd" || !n.ExpiresAt.Equal(expires) {
		t.Errorf("got %+v", n)
	}
}

func TestCheckOwnToken(t *testing.T) {
	for _, c := range []struct{ name, token, want string }{
		{"ok", "0123456789abcdef", ""},
		{"okSpaceInside", "correct horse battery", ""},
		{"okUnicode", "żółćżółćżółćżółć", ""},
		{"okLongest", strings.Repeat("x", MaxOwnToken), ""},
		{"errEmpty", "", "found 0 characters, expected at least 16"},
		{"errShort", "0123456789abcde", "found 15 characters, expected at least 16"},
		{"errShortUnicode", "żółćżółć", "found 8 characters, expected at least 16"},
		{"errLong", strings.Repeat("x", MaxOwnToken+1), "found 513 bytes, expected at most 512"},
		{"errSpaceBefore", " 0123456789abcdef", "white space"},
		{"errNewlineBehind", "0123456789abcdef\n", "white space"},
		{"errWideSpace", "0123456789abcdef\u00a0", "white space"},
		{"errControl", "01234567\x0089abcdef", "control character"},
		{"errDelete", "01234567\x7f89abcdef", "control character"},
		{"errC1", "01234567\u008589abcdef", "control character"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckOwnToken(c.token)
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
		})
	}
}

// gateOf makes a gate whose clock is *now, with one channel of token "valid…".
func gateOf(t *testing.T, now *time.Time) (*Gate, *sqlite.Store, ledger.Channel) {
	t.Helper()
	s, err := sqlite.Open(context.Background(), blank.Dir(t, t.TempDir()), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewGate(s, func() time.Time { return *now }), s, addChannel(t, s, "one", validToken, time.Time{})
}

const validToken = "valid-valid-valid-valid"

func addChannel(t *testing.T, s *sqlite.Store, name, token string, expires time.Time) ledger.Channel {
	t.Helper()
	secret := NewCredential(token, expires)
	c, err := s.CreateChannel(context.Background(), ledger.Channel{ID: uuid.NewString(), Name: name, Kind: "bridge", Enabled: true, Agent: "echo"}, &secret, change)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var change = ledger.Change{Actor: "test", Action: "test", Detail: json.RawMessage("{}")}

func TestAdmit(t *testing.T) {
	ctx := context.Background()
	now := time.Now().Truncate(time.Second)
	g, s, c := gateOf(t, &now)

	grant, err := g.Admit(ctx, validToken)
	if err != nil || grant.Channel.Key != c.Key || grant.Channel.Name != "one" || grant.Token == 0 || !grant.ExpiresAt.IsZero() {
		t.Fatalf("got %+v, %v", grant, err)
	}
	for _, token := range []string{"", "unknown-unknown-unknown", validToken + " ", strings.ToUpper(validToken), string(Hash(validToken)), strings.Repeat("x", 1<<18)} {
		refused(t, g, token)
	}

	addChannel(t, s, "two", "short-lived-short-lived", now.Add(time.Minute))
	grant, err = g.Admit(ctx, "short-lived-short-lived")
	if err != nil || !grant.ExpiresAt.Equal(now.Add(time.Minute)) {
		t.Fatalf("got %+v, %v", grant, err)
	}
	now = now.Add(time.Minute)
	refused(t, g, "short-lived-short-lived") // from its expiry on

	c.Enabled = false
	if c, err = s.UpdateChannel(ctx, c, change); err != nil {
		t.Fatal(err)
	}
	refused(t, g, validToken)
	c.Enabled = true
	if c, err = s.UpdateChannel(ctx, c, change); err != nil {
		t.Fatal(err)
	}
	if grant, err = g.Admit(ctx, validToken); err != nil {
		t.Fatalf("enabled again: %v", err)
	}

	if _, err := s.RotateCredential(ctx, ledger.OfChannel(c.Key), NewCredential("second-second-second", time.Time{}), now.Add(time.Minute), change); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{validToken, "second-second-second"} { // both, while they overlap
		if _, err := g.Admit(ctx, token); err != nil {
			t.Fatalf("%s: %v", token, err)
		}
	}
	if err := s.RevokeCredential(ctx, ledger.OfChannel(c.Key), grant.Token, change); err != nil {
		t.Fatal(err)
	}
	refused(t, g, validToken)

	if err := s.DeleteChannel(ctx, c, change); err != nil {
		t.Fatal(err)
	}
	refused(t, g, "second-second-second")

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := g.Admit(canceled, validToken); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("storage that does not answer is %v", err)
	}
}

func refused(t *testing.T, g *Gate, token string) {
	t.Helper()
	grant, err := g.Admit(context.Background(), token)
	if !errors.Is(err, ErrInvalid) || err.Error() != ErrInvalid.Error() || grant.Token != 0 || grant.Channel.Name != "" { // in the same words, whatever is wrong
		t.Errorf("%.40q: got %+v, %v, want ErrInvalid", token, grant, err)
	}
}

func TestServeWritesDownUse(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	g, s, c := gateOf(t, &now)
	if _, err := g.Admit(context.Background(), validToken); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // what was collected is still written
	if err := g.Serve(ctx); err != nil {
		t.Fatal(err)
	}
	tokens, err := s.Credentials(context.Background(), ledger.OfChannel(c.Key), 0, 10)
	if err != nil || len(tokens) != 1 || !tokens[0].LastUsedAt.Equal(now) {
		t.Errorf("got %+v, %v, want a use at %v", tokens, err, now)
	}
}

func TestOpenKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, KeyFile)
	made, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	checkMode(t, path)
	key, err := ReadKey(dir)
	if err != nil || !strings.HasPrefix(key, KeyPrefix) {
		t.Fatalf("got %q, %v", key, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	checkMode(t, path) // others' rights are taken away again
	for _, k := range []*Keys{made, opened} {
		if !k.Valid(key) {
			t.Error("the key in the file is not valid")
		}
		for _, wrong := range []string{"", key + " ", key[:len(key)-1], Generate(KeyPrefix)} {
			if k.Valid(wrong) {
				t.Errorf("%q is valid", wrong)
			}
		}
	}
}

func checkMode(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has mode %v", info.Mode())
	}
}

func TestOwnKeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, KeyFile)
	for _, short := range []string{"", "\n", "0123456789abcde\n"} {
		if err := os.WriteFile(path, []byte(short), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), "expected at least 16") {
			t.Errorf("%q: got %v", short, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != short {
			t.Errorf("the refused file was changed to %q, %v", b, err)
		}
	}
	if err := os.WriteFile(path, []byte("  0123456789abcdef\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeys(dir)
	if err != nil || !k.Valid("0123456789abcdef") {
		t.Errorf("an operator's own key: %v", err)
	}
	if _, err := OpenKeys(filepath.Join(dir, "absent")); err == nil {
		t.Error("a key was made where no directory is")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); err == nil {
		t.Error("a directory was taken for a key")
	}
}
