package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pontoon-bridge/pontoon/host/internal/period"
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

// flagError says what a flag's value should be, where pflag tells what Go's parser
// said.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	expected, known := map[string]string{"bool": "true or false", "int": "a whole number", "duration": "a duration such as 90m or 24h"}[invalid.GetFlag().Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s: found %.40q, expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected)
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
	if text == "" {
		return nil
	}
	if _, err := period.Parse(text); err != nil {
		return fmt.Errorf("--%s: found %.40q, %w", flag, text, err)
	}
	return nil
}

// seconds is a duration that is kept in whole seconds; 0 = it was not given.
func seconds(flag, text string) (int, error) {
	if err := duration(flag, text); err != nil || text == "" {
		return 0, err
	}
	const most = 365 * 24 * time.Hour
	d, _ := period.Parse(text)
	if d > most || d%time.Second != 0 {
		return 0, fmt.Errorf("--%s: found %.40q, expected whole seconds, at most 365d", flag, text)
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
