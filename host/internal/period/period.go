// Package period reads how long something lasts, as operators write it.
package period

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Form is what an error should name as expected.
const Form = "a duration such as 90m, 24h or 30d"

const day = 24 * time.Hour

var errForm = errors.New("expected " + Form)

// Parse reads a duration as time.ParseDuration does, and whole days, alone or before
// the rest: 30d, 1d12h. A day is 24 hours. What is negative is an error.
func Parse(text string) (time.Duration, error) {
	var d time.Duration
	days, rest, found := strings.Cut(text, "d")
	if found {
		n, err := strconv.ParseUint(days, 10, 15) // 89 years
		if err != nil {
			return 0, errForm
		}
		d = time.Duration(n) * day
	} else {
		rest = text
	}
	if found && rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || d+more < d {
		return 0, errForm
	}
	return d + more, nil
}
