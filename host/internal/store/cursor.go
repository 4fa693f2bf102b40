package store

import (
	"encoding/base64"
	"strconv"
)

// Cursor is a place in a list as those outside see it: behind the entry n.
func Cursor(n int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 36)))
}

// ParseCursor reads a Cursor; false = it is none.
func ParseCursor(s string) (int64, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 36, 64)
	return n, err == nil && n > 0
}
