// Package auth makes and checks the host's credentials: tokens of channels, keys
// of agents and the operator's key. Secrets are kept as SHA-256, compared in constant time,
// and never logged.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pontoon-bridge/pontoon/host/internal/ledger"
)

// ErrInvalid is the one answer to every credential that opens nothing.
var ErrInvalid = errors.New("invalid token")

// Dead is the ErrInvalid of a credential that is known and opens nothing any more. It is
// for the operator: who showed it learns no more than of any other.
type Dead struct {
	Credential ledger.Credential
	Why        string // revoked, expired, or whyDisabled
}

// whyDisabled is the Why of a credential whose owner is disabled.
const whyDisabled = "disabled"

func (d *Dead) Error() string { return ErrInvalid.Error() }

// Unwrap says that it is an ErrInvalid.
func (d *Dead) Unwrap() error { return ErrInvalid }

// Refused is a line of the history of connections with why a credential opened nothing:
// err is the gate's, noun what the credential is called.
func Refused(line ledger.Connection, noun string, err error) ledger.Connection {
	dead := new(Dead)
	if !errors.As(err, &dead) {
		line.Why = "the " + noun + " is none of this host's"
		return line
	}
	line.Owner, line.Credential, line.Why = dead.Credential.Owner, dead.Credential.ID, "the "+noun+" is "+dead.Why
	if dead.Why == whyDisabled {
		owner := "channel"
		if line.Owner.Kind == ledger.AgentKey {
			owner = "agent"
		}
		line.Why = "the " + owner + " is disabled"
	}
	return line
}

// Prefixes say what a secret is for, to people and to secret scanners.
const (
	TokenPrefix    = "pnt_"
	AgentKeyPrefix = "pna_"
	KeyPrefix      = "pnk_"
	SessionPrefix  = "pns_"
	SetupPrefix    = "pnl_"
)

const (
	secretDigits   = 24 // of base62: 142 bits
	checksumDigits = 6  // of base62: a CRC-32
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Bounds of a token that an operator brings.
const (
	MinOwnToken = 16  // characters
	MaxOwnToken = 512 // bytes
)

// Generate makes a secret: the prefix, 142 random bits in base62, and a CRC-32
// of what is before it, so that a mistyped one can be told from a wrong one.
func Generate(prefix string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for range secretDigits {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			panic("auth: no randomness: " + err.Error()) // crypto/rand never fails on a supported system
		}
		b.WriteByte(base62[n.Int64()])
	}
	sum := crc32.ChecksumIEEE([]byte(b.String()))
	var digits [checksumDigits]byte
	for i := checksumDigits - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	b.Write(digits[:])
	return b.String()
}

// Hash is what is stored of a secret.
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// CheckOwnToken says what is wrong with a token that an operator brings.
func CheckOwnToken(token string) error {
	switch {
	case strings.TrimSpace(token) != token:
		return errors.New("found white space at an end, expected none")
	case utf8.RuneCountInString(token) < MinOwnToken:
		return fmt.Errorf("found %d characters, expected at least %d", utf8.RuneCountInString(token), MinOwnToken)
	case len(token) > MaxOwnToken:
		return fmt.Errorf("found %d bytes, expected at most %d", len(token), MaxOwnToken)
	}
	for _, c := range token {
		if c < 0x20 || c == 0x7f || c > 0x7e && c < 0xa0 {
			return errors.New("found a control character, expected printable text")
		}
	}
	return nil
}

// KeyFile is the operator's key in the data directory.
const KeyFile = "admin.key"

// Keys checks the operator's key.
type Keys struct{ hash []byte }

// OpenKeys reads the key file in dir, or makes it, readable by its owner only.
func OpenKeys(dir string) (*Keys, error) {
	path := filepath.Join(dir, KeyFile)
	key, err := ReadKey(dir)
	if errors.Is(err, os.ErrNotExist) {
		key = Generate(KeyPrefix)
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("make admin key: %w", err)
		}
		return &Keys{Hash(key)}, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, fmt.Errorf("protect admin key: %w", err)
		}
	}
	return &Keys{Hash(key)}, nil
}

// ReadKey reads the key file in dir.
func ReadKey(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return "", fmt.Errorf("read admin key: %w", err)
	}
	key := strings.TrimSpace(string(b))
	if len(key) < MinOwnToken {
		return "", fmt.Errorf("read admin key: %s holds %d characters, expected at least %d (remove it to have one made)", KeyFile, len(key), MinOwnToken)
	}
	return key, nil
}

// Valid reports whether the key is the operator's.
func (k *Keys) Valid(key string) bool {
	return subtle.ConstantTimeCompare(Hash(key), k.hash) == 1
}
