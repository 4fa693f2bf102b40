package wire

import "strings"

// Typo is a field of a frame that the host ignores, and that looks like one that it reads.
type Typo struct{ Found, Meant string }

func (t Typo) String() string {
	return t.Found + ": found an unknown field, which is ignored; is " + t.Meant + " meant?"
}

// What of a frame is looked at: more would be no slip.
const (
	maxTypos    = 8
	longestTypo = 64
)

// Typos lists the fields of an adapter's frame that look like one of protocol 1.1, such as
// conversationId; of register also those of its profile. The frame must be one that was
// decoded.
func Typos(frame []byte) (found []Typo) {
	s := string(frame)
	for name, value := range members(s[space(s, 0):]) {
		if i := keyIndex(name); i == keyProfile && value[0] == '{' {
			for inner := range members(value) {
				found = appendTypo(found, "profile.", inner, profileKeys[:])
			}
		} else if i < 0 {
			found = appendTypo(found, "", name, keyNames[:keyResumed])
		}
	}
	return found
}

func appendTypo(found []Typo, prefix, name string, known []string) []Typo {
	if len(found) == maxTypos || len(name) > longestTypo {
		return found
	}
	plain := squashed(name)
	for _, k := range known {
		if k == name {
			return found
		}
		if meant := squashed(k); plain == meant || len(meant) >= 5 && isClose(plain, meant) {
			return append(found, Typo{prefix + name, prefix + k})
		}
	}
	return found
}

// squashed is a name without what spellings of it differ in.
func squashed(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// isClose reports whether one letter was added, left out or mistaken, or two next to each
// other changed places.
func isClose(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i == len(a) || a[i+1:] == b[i+1:] ||
			i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}
