package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// What a new hash costs: the second recommendation of RFC 9106.
const (
	hashPasses  = 3
	hashMemory  = 64 << 10 // KiB
	hashThreads = 4
	hashSalt    = 16 // bytes
	hashBytes   = 32
)

// Bounds of what a stored hash may cost.
const (
	maxPasses  = 16
	maxMemory  = 256 << 10 // KiB
	maxThreads = 16
	maxField   = 64 // bytes of salt and hash
)

// Bounds of a password.
const (
	MinPassword = 12   // characters
	MaxPassword = 1024 // bytes
	minVariety  = 5    // different characters
)

// CheckPassword says what is wrong with a password that is to be set.
func CheckPassword(password, name string) error {
	seen := map[rune]bool{}
	for _, r := range password {
		seen[r] = true
	}
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return errors.New("found bytes that are no UTF-8, expected text")
	case n < MinPassword:
		return fmt.Errorf("found %d characters, expected at least %d", n, MinPassword)
	case len(password) > MaxPassword:
		return fmt.Errorf("found %d bytes, expected at most %d", len(password), MaxPassword)
	case len(seen) < minVariety:
		return fmt.Errorf("found %d different characters, expected at least %d", len(seen), minVariety)
	case strings.EqualFold(password, name):
		return errors.New("is the name, expected something that others can't guess")
	}
	return nil
}

// argon is a hash with all that it takes to make it again.
type argon struct {
	passes, memory uint32
	threads        uint8
	salt, sum      []byte
}

func (a argon) of(password string) []byte {
	return argon2.IDKey([]byte(password), a.salt, a.passes, a.memory, a.threads, uint32(len(a.sum))) //nolint:gosec // at most maxField
}

// String is the usual form: $argon2id$v=19$m=65536,t=3,p=4$SALT$HASH.
func (a argon) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, a.memory, a.passes, a.threads,
		base64.RawStdEncoding.EncodeToString(a.salt), base64.RawStdEncoding.EncodeToString(a.sum))
}

// parseArgon reads the usual form. What would cost more than maxMemory and so on
// is refused.
func parseArgon(text string) (argon, error) {
	var a argon
	fields := strings.Split(text, "$")
	if len(fields) != 6 || fields[0] != "" || fields[1] != "argon2id" || fields[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return a, errors.New("expected $argon2id$v=19$m=…,t=…,p=…$SALT$HASH")
	}
	if _, err := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &a.memory, &a.passes, &a.threads); err != nil ||
		fields[3] != fmt.Sprintf("m=%d,t=%d,p=%d", a.memory, a.passes, a.threads) {
		return a, errors.New("parameters: expected m=…,t=…,p=…")
	}
	if a.passes < 1 || a.passes > maxPasses || a.memory < 8 || a.memory > maxMemory || a.threads < 1 || a.threads > maxThreads {
		return a, errors.New("parameters: out of bounds")
	}
	for i, to := range []*[]byte{&a.salt, &a.sum} {
		b, err := base64.RawStdEncoding.Strict().DecodeString(fields[4+i])
		if err != nil || len(b) < 8 || len(b) > maxField || strings.ContainsAny(fields[4+i], "\r\n") { // which the decoder skips
			return a, errors.New("salt or hash: expected 8 to 64 bytes in base64")
		}
		*to = b
	}
	return a, nil
}

// ErrBusy = so many passwords are being checked that this one is not.
var ErrBusy = errors.New("too many log in just now: try again in a moment")

// hasher hashes passwords, a few at a time: each takes 64 MiB.
type hasher struct {
	cost    argon // of what is made; its salt and hash don't count
	slots   chan struct{}
	waiting atomic.Int32
}

const (
	hashersAtOnce = 2
	maxWaiting    = 16
)

func newHasher() *hasher {
	return &hasher{cost: argon{passes: hashPasses, memory: hashMemory, threads: hashThreads}, slots: make(chan struct{}, hashersAtOnce)}
}

// blank is a hash that is still to be made.
func (h *hasher) blank() argon {
	a := h.cost
	a.salt, a.sum = make([]byte, hashSalt), make([]byte, hashBytes)
	return a
}

// enter waits for a place; leave gives it back.
func (h *hasher) enter(ctx context.Context) error {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return ErrBusy
	}
	defer h.waiting.Add(-1)
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hasher) leave() { <-h.slots }

// hash makes what is stored of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	a := h.blank()
	if _, err := rand.Read(a.salt); err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	a.sum = a.of(password)
	return a.String(), nil
}

// matches compares a password with what is stored. stored "" is nobody's: it
// takes as long, and is false.
func (h *hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	a := h.blank()
	if stored != "" {
		var err error
		if a, err = parseArgon(stored); err != nil {
			return false, fmt.Errorf("read password of the operator: %w", err)
		}
	}
	if len(password) > MaxPassword {
		password = password[:MaxPassword+1] // is none, and costs no more than one
	}
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	return subtle.ConstantTimeCompare(a.of(password), a.sum) == 1 && stored != "", nil
}
