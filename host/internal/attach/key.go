package attach

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// KeyFile is the signing keys in the data directory: a JSON list, oldest first.
const KeyFile = "attachments.key"

// newKeyFile becomes KeyFile when it is whole.
const newKeyFile = KeyFile + ".new"

const (
	maxKeys     = 4  // that are kept; an older one's urls are refused
	secretBytes = 32 // as long as the hash
)

// key is one signing key.
type key struct {
	ID     string `json:"id"` // the kid of its tokens
	Secret []byte `json:"secret"`
}

func newKey() key {
	id, secret := make([]byte, 8), make([]byte, secretBytes)
	_, _ = rand.Read(id) // never fails
	_, _ = rand.Read(secret)
	return key{ID: hex.EncodeToString(id), Secret: secret}
}

// keyring is the keys in use: the newest signs, all verify.
type keyring struct {
	dir  *os.Root              // the data directory
	keys atomic.Pointer[[]key] // oldest first, never empty; never changed in place

	mu sync.Mutex // guards KeyFile: one rotation at a time
}

// openKeyring reads the key file in dir, or makes it with one key.
func openKeyring(dir *os.Root) (*keyring, error) {
	k := &keyring{dir: dir}
	if err := remove(dir, newKeyFile); err != nil { // of a crash
		return nil, fmt.Errorf("clear %s: %w", newKeyFile, err)
	}
	keys, err := storedKeys(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := k.rotate(); err != nil {
			return nil, err
		}
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	k.keys.Store(&keys)
	if info, err := dir.Lstat(KeyFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := dir.Chmod(KeyFile, 0o600); err != nil {
			return nil, fmt.Errorf("protect %s: %w", KeyFile, err)
		}
	}
	return k, nil
}

// storedKeys reads the key file in dir; fs.ErrNotExist if there is none.
func storedKeys(dir *os.Root) ([]key, error) {
	b, err := readSmall(dir, KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", KeyFile, err)
	}
	keys, err := decodeKeys(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w (remove it to have one made; urls that are out are then refused)", KeyFile, err)
	}
	return keys, nil
}

func decodeKeys(b []byte) ([]key, error) {
	var keys []key
	if json.Unmarshal(b, &keys) != nil { // its error might quote a secret
		return nil, errors.New("found no JSON list of {id, secret}")
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("found %d keys, expected 1 to %d", len(keys), maxKeys)
	}
	seen := map[string]bool{}
	for i, k := range keys {
		switch {
		case k.ID == "" || len(k.ID) > 64 || seen[k.ID]:
			return nil, fmt.Errorf("key %d: found an id that is empty, too long or there twice", i+1)
		case len(k.Secret) < secretBytes:
			return nil, fmt.Errorf("key %d: found a secret of %d bytes, expected at least %d", i+1, len(k.Secret), secretBytes)
		}
		seen[k.ID] = true
	}
	return keys, nil
}

// rotate adds a key that signs from now on, and drops the oldest over maxKeys.
func (k *keyring) rotate() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := append(slices.Clone(k.all()), newKey())
	keys = keys[max(0, len(keys)-maxKeys):]
	b, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(k.dir, newKeyFile, KeyFile, append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", KeyFile, err)
	}
	k.keys.Store(&keys)
	return nil
}

func (k *keyring) all() []key {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// newest is the key that signs.
func (k *keyring) newest() key {
	keys := k.all()
	return keys[len(keys)-1]
}

// byID finds a key that verifies.
func (k *keyring) byID(id string) (key, bool) {
	keys := k.all()
	if i := slices.IndexFunc(keys, func(k key) bool { return k.ID == id }); i >= 0 {
		return keys[i], true
	}
	return key{}, false
}
