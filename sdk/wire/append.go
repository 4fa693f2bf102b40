package wire

import (
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// asIs are the ASCII characters that a JSON string holds as they are.
var asIs = func() (table [256]bool) {
	for c := range utf8.RuneSelf {
		table[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return table
}()

// AppendString appends s as a JSON string: unescaped UTF-8 except for what JSON
// demands; invalid bytes become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if asIs[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// StringLen is the number of bytes that AppendString adds for s.
func StringLen(s string) int {
	n := 2
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case asIs[c]:
			n++
		case c >= utf8.RuneSelf:
			r, w := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && w == 1 {
				n += 3
			} else {
				n += w
			}
			i += w
			continue
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n += 2
		default:
			n += 6
		}
		i++
	}
	return n
}

// key appends `,"name":` (without the comma right after an opening brace).
func key(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func field(dst []byte, name, value string) []byte {
	return AppendString(key(dst, name), value)
}

func fieldIf(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return field(dst, name, value)
}

func intIf(dst []byte, name string, value int64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendInt(key(dst, name), value, 10)
}

func boolField(dst []byte, name string, value bool) []byte {
	return strconv.AppendBool(key(dst, name), value)
}

func boolIf(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return boolField(dst, name, true)
}

func stringsField(dst []byte, name string, values []string) []byte {
	dst = append(key(dst, name), '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, v)
	}
	return append(dst, ']')
}

func rawField(dst []byte, name string, value Raw) []byte {
	dst = key(dst, name)
	if value == "" {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

func open(dst []byte, t Type) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, t...)
	return append(dst, '"')
}
