package secrets

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// sealedWith is a database in which n values are sealed with the key.
func sealedWith(n int, with *Key) func(*Key) (int, error) {
	return func(k *Key) (int, error) {
		if k != nil && n > 0 && k.ID() != with.ID() {
			return n, fmt.Errorf("agent/x %w", ErrKey)
		}
		return n, nil
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	s := Source{File: t.TempDir() + "/master.key"}
	first, made, err := s.Choose(sealedWith(0, nil))
	if err != nil || !made {
		t.Fatalf("first start: %v, %v", made, err)
	}
	again, made, err := s.Choose(sealedWith(3, first))
	if err != nil || made || again.ID() != first.ID() {
		t.Fatalf("second start: %v, %v", made, err)
	}
	other := generate(t)
	if _, _, err := s.Choose(sealedWith(3, other)); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), s.File) || !strings.Contains(err.Error(), "put the right key there") {
		t.Errorf("wrong key: %v", err)
	}
	env := Source{Env: hex.EncodeToString(other.master), File: s.File}
	if got, _, err := env.Choose(sealedWith(3, other)); err != nil || got.ID() != other.ID() {
		t.Errorf("environment: %v, %v", got, err)
	}
	if _, _, err := env.Choose(sealedWith(3, first)); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "unset it if the key is in "+s.File) {
		t.Errorf("wrong environment: %v", err)
	}
	failed := errors.New("disk failed")
	if _, _, err := s.Choose(func(*Key) (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("failed: %v", err)
	}
	if err := os.Remove(s.File); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Choose(sealedWith(3, first))
	if err == nil || !strings.Contains(err.Error(), "found no "+s.File) || !strings.Contains(err.Error(), "3 secrets") || !strings.Contains(err.Error(), "pontoon secret forget") {
		t.Errorf("no key: %v", err)
	}
	if _, err := os.Stat(s.File); !os.IsNotExist(err) {
		t.Errorf("a key was made that opens nothing: %v", err)
	}
}

// A change of keys may be cut off anywhere.
func TestChooseAfterACut(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (s Source, former, next *Key) {
		t.Helper()
		s = Source{File: t.TempDir() + "/master.key"}
		former, _, err := s.Choose(sealedWith(0, nil))
		if err != nil {
			t.Fatal(err)
		}
		if next, err = s.Prepare(); err != nil {
			t.Fatal(err)
		}
		return s, former, next
	}
	stays := func(t *testing.T, s Source, k *Key) {
		t.Helper()
		for range 2 {
			got, made, err := s.Choose(sealedWith(1, k))
			if err != nil || made || got.ID() != k.ID() {
				t.Fatalf("chose %v, %v, %v, expected %v", got, made, err, k)
			}
		}
		if got, err := ReadFile(s.File); err != nil || got.ID() != k.ID() {
			t.Errorf("the file holds %v, %v", got, err)
		}
		if _, err := os.Stat(s.Next()); !os.IsNotExist(err) {
			t.Errorf("left: %v", err)
		}
	}
	t.Run("before anything was sealed", func(t *testing.T) {
		s, former, _ := begin(t)
		stays(t, s, former)
	})
	t.Run("after all was sealed", func(t *testing.T) {
		s, former, next := begin(t)
		stays(t, s, next)
		if got, err := ReadFile(s.Former(former)); err != nil || got.ID() != former.ID() {
			t.Errorf("the former key: %v, %v", got, err)
		}
	})
	t.Run("between the two files", func(t *testing.T) {
		s, former, next := begin(t)
		if err := os.Rename(s.File, s.Former(former)); err != nil {
			t.Fatal(err)
		}
		stays(t, s, next)
	})
	t.Run("prepared twice", func(t *testing.T) {
		s, former, next := begin(t)
		if again, err := s.Prepare(); err != nil || again.ID() == next.ID() {
			t.Errorf("%v, %v", again, err)
		}
		stays(t, s, former)
	})
}
