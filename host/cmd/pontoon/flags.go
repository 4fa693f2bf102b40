package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pontoon-bridge/pontoon/sdk/wire"
)

// checkFlags is the usage error of the first flag that is wrong; nil = none is. What
// a command line alone can tell is not left to a host to refuse.
func checkFlags(found ...error) error {
	if i := slices.IndexFunc(found, func(err error) bool { return err != nil }); i >= 0 {
		return usageError{found[i]}
	}
	return nil
}

// oneOf says what is wrong with a flag that has one of a few values.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	last := len(allowed) - 1
	return fmt.Errorf("--%s: found %.40q, expected %s or %s", flag, value, strings.Join(allowed[:last], ", "), allowed[last])
}

// between says what is wrong with a number.
func between(flag string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("--%s: found %d, expected %d to %d", flag, n, least, most)
	}
	return nil
}

// duration says what is wrong with how long something lasts; "" = it was not given.
func duration(flag, text string) error {
	if d, err := time.ParseDuration(text); text != "" && (err != nil || d < 0) {
		return fmt.Errorf("--%s: found %.40q, expected a duration such as 90m or 24h", flag, text)
	}
	return nil
}

// seconds is a duration that is kept in whole seconds.
func seconds(flag string, d time.Duration) (int, error) {
	const most = 365 * 24 * time.Hour
	if d < 0 || d > most || d%time.Second != 0 {
		return 0, fmt.Errorf("--%s: found %s, expected whole seconds, from 0s to %s", flag, d, most)
	}
	return int(d / time.Second), nil
}

// capabilities says which of them there is not.
func capabilities(flag string, names []string) error {
	newest := wire.V11.String() // whichever protocol the adapter will speak
	if _, unknown := wire.ParseCapsFor(newest, names); len(unknown) > 0 {
		return fmt.Errorf("--%s: found %.40q, expected some of %s", flag, unknown[0], strings.Join(wire.CapNamesFor(newest), ", "))
	}
	return nil
}
