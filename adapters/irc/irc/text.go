package irc

import (
	"strings"
	"unicode/utf8"
)

// nearlyFull is from where on a line may have been cut by a server.
const nearlyFull = 400

// decode makes what arrived valid UTF-8. A line whose only fault is a rune that
// the server cut in two at its end loses that rune; any other is read as
// Windows-1252, which is what old clients send.
func decode(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	for cut := 1; cut < utf8.UTFMax && cut < len(line); cut++ {
		head, tail := line[:len(line)-cut], line[len(line)-cut:]
		if utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) && utf8.Valid(head) && (len(line) >= nearlyFull || utf8.RuneCount(head) < len(head)) {
			return string(head)
		}
	}
	var b strings.Builder
	b.Grow(len(line) + len(line)/2)
	for _, c := range line {
		if 0x80 <= c && c <= 0x9f {
			b.WriteRune(windows1252[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

// windows1252 is what 0x80–0x9F mean there; the rest is Latin-1.
var windows1252 = [32]rune{
	'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
	utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
}

// plain strips IRC formatting (colours with their digits, bold and the like)
// and every other control character but the tab.
func plain(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == 0x03: // colour: up to two digits, then perhaps a comma and up to two more
			i++
			n := digits(s[i:], 2, isDecimal)
			i += n
			if n > 0 && i < len(s) && s[i] == ',' {
				if n := digits(s[i+1:], 2, isDecimal); n > 0 {
					i += 1 + n
				}
			}
		case c == 0x04: // colour by six hexadecimal digits
			i++
			if digits(s[i:], 6, isHex) == 6 {
				i += 6
				if i < len(s) && s[i] == ',' && digits(s[i+1:], 6, isHex) == 6 {
					i += 7
				}
			}
		case c < ' ' && c != '\t' || c == 0x7f:
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
func isDecimal(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool {
	return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// digits counts the leading bytes of s that are digits, up to limit.
func digits(s string, limit int, is func(byte) bool) int {
	n := 0
	for n < len(s) && n < limit && is(s[n]) {
		n++
	}
	return n
}

// brief makes a server's words fit for a log line or an error.
func brief(s string) string {
	s = plain(s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
