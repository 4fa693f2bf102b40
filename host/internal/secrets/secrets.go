// Package secrets keeps secrets from whoever reads the database or a backup of it:
// it seals them with a master key that is in neither.
package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeyBytes is the size of a master key.
const KeyBytes = 32

// MaxSecret bounds what is sealed in one piece.
const MaxSecret = 1 << 20

// version is the form of what is sealed: AES-256-GCM with a random nonce before
// the text, by a key that is derived from the master key.
const version = "v1"

// What is derived from a master key is for one purpose only.
const (
	keyPurpose = "pontoon secrets at rest, v1"
	idPurpose  = "pontoon master key id, v1"
	idBytes    = 8
)

// Errors of Open. None holds anything of the secret or of the key.
var (
	ErrForm  = errors.New("is not sealed in a form that this program knows")
	ErrKey   = errors.New("is sealed with another master key")
	ErrForge = errors.New("was changed, or moved from another place")
)

// Key seals and opens. It is safe for concurrent use, and shows nothing of itself
// when it is printed.
type Key struct {
	master []byte
	id     string
	aead   cipher.AEAD
}

// NewKey makes a key of a master key of KeyBytes bytes.
func NewKey(master []byte) (*Key, error) {
	if len(master) != KeyBytes {
		return nil, fmt.Errorf("found %d bytes, expected %d", len(master), KeyBytes)
	}
	derived, err := hkdf.Key(sha256.New, master, nil, keyPurpose, KeyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	id, err := hkdf.Key(sha256.New, master, nil, idPurpose, idBytes)
	if err != nil {
		return nil, fmt.Errorf("derive key id: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	return &Key{master: append([]byte(nil), master...), id: hex.EncodeToString(id), aead: aead}, nil
}

// Generate makes a random key.
func Generate() (*Key, error) {
	var master [KeyBytes]byte
	_, _ = rand.Read(master[:]) // never fails: it would end the program
	return NewKey(master[:])
}

// ID names the key, and says nothing of it.
func (k *Key) ID() string { return k.id }

// String and GoString are the id: whoever logs a key logs no key.
func (k *Key) String() string   { return "master key " + k.id }
func (k *Key) GoString() string { return k.String() }

// Seal makes text of a secret that only Open with the same place makes a secret
// of again.
func (k *Key) Seal(secret []byte, place string) (string, error) {
	if len(secret) > MaxSecret {
		return "", fmt.Errorf("seal %s: found %d bytes, expected at most %d", place, len(secret), MaxSecret)
	}
	return version + "." + k.id + "." + base64.RawURLEncoding.EncodeToString(k.aead.Seal(nil, nil, secret, k.bind(place))), nil //nolint:gosec // G407: it makes its own nonce (cipher.NewGCMWithRandomNonce)
}

// Open is the reverse of Seal. Errors wrap ErrForm, ErrKey or ErrForge, and name
// the place.
func (k *Key) Open(sealed, place string) ([]byte, error) {
	form, rest, _ := strings.Cut(sealed, ".")
	id, text, ok := strings.Cut(rest, ".")
	if !ok || form != version {
		return nil, fmt.Errorf("%s %w", place, ErrForm)
	}
	if id != k.id {
		return nil, fmt.Errorf("%s %w: with %.16q, not with %s", place, ErrKey, id, k.id)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", place, ErrForm)
	}
	secret, err := k.aead.Open(nil, nil, raw, k.bind(place))
	if err != nil {
		return nil, fmt.Errorf("%s %w", place, ErrForge)
	}
	return secret, nil
}

// bind is what a sealed text is bound to: it can't be moved to another place.
func (k *Key) bind(place string) []byte { return []byte(version + "." + k.id + "." + place) }
