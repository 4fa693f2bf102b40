package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// NameRule says what a channel's name must be.
const NameRule = "up to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit; no kind's name and no UUID"

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	// reservedNames can't be names of channels: they are, or will be, kinds.
	reservedNames = []string{"bridge", "plugin", "agui", "bridle"}
)

// CheckName checks the name of a channel, and so of a plugin. The error says
// what was found and what is expected.
func CheckName(name string) error {
	_, isUUID := uuid.Parse(name)
	if !nameForm.MatchString(name) || slices.Contains(reservedNames, name) || isUUID == nil {
		return fmt.Errorf("found %s, expected %s", quote(name), NameRule)
	}
	return nil
}

// SecretNameRule says what the name of a secret in the secret store must be, so
// that ${NAME} finds it.
const SecretNameRule = "up to 128 letters of a-z and A-Z, digits and '_', the first no digit, not beginning with " + masterKey

// maxSecretName is how many characters it has at most.
const maxSecretName = 128

// CheckSecretName says what is wrong with the name of a secret. It does not show
// what was found, which may be the secret itself.
func CheckSecretName(name string) error {
	if !envForm.MatchString(name) || len(name) > maxSecretName || strings.HasPrefix(name, masterKey) {
		return fmt.Errorf("found %d characters that are no name of a secret, expected %s", len([]rune(name)), SecretNameRule)
	}
	return nil
}

// maxShown keeps an error line readable, whatever the file holds.
const maxShown = 80

// quote shows what somebody wrote: on one line, and not all of it if it is long.
func quote(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("%q…", s[:maxShown])
	}
	return fmt.Sprintf("%q", s)
}
