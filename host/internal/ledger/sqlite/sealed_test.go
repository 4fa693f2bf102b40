package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
	"github.com/pontoon-bridge/pontoon/host/internal/ledger/sqlite/blank"
	"github.com/pontoon-bridge/pontoon/host/internal/secrets"
)

func newKey(t testing.TB) *secrets.Key {
	t.Helper()
	k, err := secrets.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// with is a store's sealing with a key that nobody asks about.
func with(k Sealer) Sealing {
	return Sealing{
		Key: func(func(Sealer) (int, error)) (Sealer, error) { return k, nil },
		Secret: func(kind, field string) bool {
			return kind != "open" && slices.Contains([]string{"secret", "headers"}, field)
		},
	}
}

func openWith(t testing.TB, dir string, o Sealing) *Store {
	t.Helper()
	s, err := Open(t.Context(), blank.Dir(t, dir), Options{Sealing: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var sealTest = ledger.Change{Actor: "test", Action: "agent.test"}

// holding are the files in dir that hold the text.
func holding(t testing.TB, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSecretsOfAgentsAreSealed(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), newKey(t)
	s := openWith(t, dir, with(key))
	const canary, odd = "canary-of-a-secret", `{"$sealed":"canary-that-looks-sealed"}`
	config := json.RawMessage(`{"headers":` + odd + `,"secret":"` + canary + `","url":"http://seen","x":` + odd + `}`)
	a, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-a", Name: "a", Kind: "k", Config: config, Enabled: true}, nil, sealTest)
	if err != nil || string(a.Config) != string(config) || a.Fault != nil {
		t.Fatalf("made %s, %v, %v", a.Config, a.Fault, err)
	}
	if got, err := s.Agent(t.Context(), "a"); err != nil || string(got.Config) != string(config) {
		t.Errorf("read %s, %v", got.Config, err)
	}
	a.Config = json.RawMessage(strings.Replace(string(config), canary, canary+"-2", 1))
	if got, err := s.UpdateAgent(t.Context(), a, sealTest); err != nil || string(got.Config) != string(a.Config) {
		t.Errorf("changed to %s, %v", got.Config, err)
	}
	if n, err := Try(t.Context(), dir, key); n != 3 || err != nil {
		t.Errorf("%d are sealed, %v", n, err)
	}
	if _, err := Try(t.Context(), dir, newKey(t)); !errors.Is(err, secrets.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	for _, text := range []string{canary, "canary-that-looks-sealed"} {
		if files := holding(t, dir, text); len(files) > 0 {
			t.Errorf("%s is in %v", text, files)
		}
	}
	if holding(t, dir, "http://seen") == nil {
		t.Error("what is no secret is not found either: the search is broken")
	}

	// A value that is moved to another row costs that row only.
	b, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-b", Name: "b", Kind: "k", Config: json.RawMessage(`{"url":"u"}`)}, nil, sealTest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.admin.Exec("UPDATE agent SET config = (SELECT config FROM agent WHERE id = ?) WHERE id = ?", a.Key, b.Key); err != nil {
		t.Fatal(err)
	}
	got, err := s.Agent(t.Context(), "b")
	if err != nil || !errors.Is(got.Fault, secrets.ErrForge) || string(got.Config) != `{"url":"http://seen"}` {
		t.Errorf("moved: %s, %v, %v", got.Config, got.Fault, err)
	}
	if got, err := s.Agent(t.Context(), "a"); err != nil || got.Fault != nil {
		t.Errorf("the other: %v, %v", got.Fault, err)
	}
}

// What an older program stored in clear is nowhere in the file any more: not in
// what was deleted before, not in the log, and not in the copy that was made.
func TestSealAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	const canary = "canary-in-clear"
	for i := range 20 {
		a, err := s.CreateAgent(t.Context(), ledger.Agent{
			ID: fmt.Sprint("id-", i), Name: fmt.Sprint("a", i), Kind: "k", Enabled: true,
			Config: json.RawMessage(fmt.Sprintf(`{"secret":"%s-%d","url":"u"}`, canary, i)),
		}, nil, sealTest)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := s.DeleteAgent(t.Context(), a, sealTest); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied := filepath.Join(dir, "copy.db")
	if err := (Offline{}).Snapshot(t.Context(), dir, copied); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(holding(t, dir, canary)) < 2 {
		t.Fatal("the canary is not in the files: the test shows nothing")
	}
	key := newKey(t)
	for range 2 { // the second time finds all done
		s = openWith(t, dir, with(key))
		if err := s.SealAll(t.Context(), []string{copied}); err != nil {
			t.Fatal(err)
		}
		if files := holding(t, dir, canary); len(files) > 0 {
			t.Fatalf("in clear in %v", files)
		}
		if got, err := s.Agent(t.Context(), "a1"); err != nil || string(got.Config) != `{"secret":"canary-in-clear-1","url":"u"}` {
			t.Errorf("read %s, %v", got.Config, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The copy is as good as it was, with the key.
	back := t.TempDir()
	if err := os.Rename(copied, filepath.Join(back, File)); err != nil {
		t.Fatal(err)
	}
	s = openWith(t, back, with(key))
	if got, err := s.Agent(t.Context(), "a1"); err != nil || string(got.Config) != `{"secret":"canary-in-clear-1","url":"u"}` {
		t.Errorf("from the copy: %s, %v", got.Config, err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), newKey(t)
	s := openWith(t, dir, with(key))
	by := ledger.Change{Actor: "test", Action: "secret.set", Target: "PASSWORD"}
	for i, value := range []string{"canary-first", "canary-second"} {
		made, created, err := s.PutSecret(t.Context(), "PASSWORD", value, by)
		if err != nil || created != (i == 0) || made.Name != "PASSWORD" || made.UpdatedAt.Before(made.CreatedAt) {
			t.Fatalf("%+v, %v, %v", made, created, err)
		}
		if got, err := s.SecretValue(t.Context(), "PASSWORD"); err != nil || got != value {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := s.SecretValue(t.Context(), "OTHER"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if _, err := s.admin.Exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 2)
		INSERT INTO secret (name, sealed, created_at, updated_at) SELECT 'S' || i, '', 0, 0 FROM n`, ledger.MaxSecrets); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutSecret(t.Context(), "MORE", "v", by); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := s.PutSecret(t.Context(), "S1", "w", by); err != nil {
		t.Errorf("change when full: %v", err)
	}
	page, err := s.Secrets(t.Context(), 1, 2)
	if err != nil || len(page) != 2 || page[0].Name != "S0" {
		t.Errorf("%+v, %v", page, err)
	}
	if names, err := SecretNames(t.Context(), dir); err != nil || len(names) != ledger.MaxSecrets || names[0] != "PASSWORD" {
		t.Errorf("%d names, %v", len(names), err)
	}
	if err := errors.Join(s.DeleteSecret(t.Context(), "S1", by)); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSecret(t.Context(), "S1", by); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if files := holding(t, dir, "canary-"); len(files) > 0 {
		t.Errorf("in clear in %v", files)
	}
	if _, _, err := opened(t).PutSecret(t.Context(), "A", "v", by); err == nil {
		t.Error("stored without a key")
	}
}

func TestReseal(t *testing.T) {
	t.Parallel()
	dir, old, key := t.TempDir(), newKey(t), newKey(t)
	s := openWith(t, dir, with(old))
	if _, _, err := s.PutSecret(t.Context(), "A", "of A", sealTest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id", Name: "a", Kind: "k", Config: json.RawMessage(`{"secret":"s"}`)}, nil, sealTest); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	called := 0
	changed := func() error { called++; return nil }
	if _, err := Reseal(t.Context(), dir, newKey(t), key, sealTest, changed); !errors.Is(err, secrets.ErrKey) || called > 0 {
		t.Fatalf("wrong key: %v, called %d", err, called)
	}
	if n, err := Try(t.Context(), dir, old); n != 2 || err != nil {
		t.Fatalf("what failed changed something: %d, %v", n, err)
	}
	if n, err := Reseal(t.Context(), dir, old, key, ledger.Change{Actor: "test", Action: "secret.rotate", Detail: []byte("{}")}, changed); n != 2 || err != nil || called != 1 {
		t.Fatalf("%d, %v, called %d", n, err, called)
	}
	if files := holding(t, dir, old.ID()); len(files) > 0 {
		t.Errorf("sealed with the former key in %v", files)
	}
	s = openWith(t, dir, with(key))
	if got, err := s.SecretValue(t.Context(), "A"); err != nil || got != "of A" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Agent(t.Context(), "a"); err != nil || string(got.Config) != `{"secret":"s"}` {
		t.Errorf("%s, %v", got.Config, err)
	}
	if audit, err := s.Audit(t.Context(), ledger.AuditQuery{}, 0, 1); err != nil || audit[0].Action != "secret.rotate" {
		t.Errorf("%+v, %v", audit, err)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	dir, old, key := t.TempDir(), newKey(t), newKey(t)
	put := func(k Sealer, name string) {
		t.Helper()
		s := openWith(t, dir, with(k))
		_, err := s.CreateAgent(t.Context(), ledger.Agent{ID: "id-" + name, Name: name, Kind: "k", Config: json.RawMessage(`{"secret":"s","url":"u"}`)}, nil, sealTest)
		_, _, serr := s.PutSecret(t.Context(), strings.ToUpper(name), "v", sealTest)
		if err := errors.Join(err, serr, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	put(old, "lost")
	put(key, "kept")
	for range 2 { // the first changes nothing
		if got, err := Forget(t.Context(), dir, key, sealTest, true); err != nil || len(got) != 2 {
			t.Fatalf("dry: %q, %v", got, err)
		}
	}
	got, err := Forget(t.Context(), dir, key, sealTest, false)
	if err != nil || !slices.Equal(got, []string{"agent lost: secret", "secret LOST"}) {
		t.Fatalf("%q, %v", got, err)
	}
	if n, err := Try(t.Context(), dir, key); n != 2 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
	if got, err := Forget(t.Context(), dir, nil, sealTest, false); err != nil || len(got) != 2 {
		t.Errorf("all: %q, %v", got, err)
	}
}

func TestKeyIsChosenAtStart(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), newKey(t)
	refused := errors.New("refused")
	for _, expected := range []int{0, 1} {
		var n int
		var err, wrong error
		o := with(key)
		o.Key = func(try func(Sealer) (int, error)) (Sealer, error) {
			n, err = try(nil)
			_, wrong = try(newKey(t))
			return key, err
		}
		s := openWith(t, dir, o)
		if n != expected || errors.Is(wrong, secrets.ErrKey) != (expected > 0) {
			t.Errorf("%d are sealed, expected %d; another key: %v", n, expected, wrong)
		}
		if _, _, err := s.PutSecret(t.Context(), "A", "v", sealTest); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(context.WithoutCancel(t.Context()), dir, Options{Sealing: Sealing{Key: func(func(Sealer) (int, error)) (Sealer, error) { return nil, refused }}})
	if !errors.Is(err, refused) {
		t.Errorf("opened: %v", err)
	}
	openWith(t, dir, with(key)) // nothing is held
}
