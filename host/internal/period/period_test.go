package period

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "0": 0, "90m": 90 * time.Minute, "24h": day, "30d": 30 * day, "1d12h": 36 * time.Hour, "0d": 0, "1d0.5s": day + time.Second/2, "32767d": 32767 * day,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q is %s, %v, expected %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "30", "-1h", "-1d", "1d-1h", "1.5d", "1d2d", "d1h", "soon", "30days", "12h1d", "99999999d", "32767d2562047h", "+1d", " 1d"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %s, expected an error", text, got)
		}
	}
}
