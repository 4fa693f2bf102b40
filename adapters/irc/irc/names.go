package irc

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// casemap is how a network compares names: ISUPPORT's CASEMAPPING.
type casemap string

// fold is the form of s under which two names are the same.
func (c casemap) fold(s string) string {
	switch c {
	case "ascii":
		return foldTo(s, 'Z')
	case "strict-rfc1459":
		return foldTo(s, ']')
	case "", "rfc1459":
		return foldTo(s, '^')
	}
	return strings.ToLower(s) // rfc7613, rfc8265 and what comes after them
}

// foldTo lowers the bytes from A to last by 32: after Z come [ \ ] ^, which
// Scandinavian keyboards once had for upper-case letters.
func foldTo(s string, last byte) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= last {
			b[i] = c + 32
		}
	}
	return string(b)
}

func (c casemap) equal(a, b string) bool { return c.fold(a) == c.fold(b) }

// maxName bounds a nick or channel name in bytes: far over any server's limit,
// far under what would leave no room for text.
const maxName = 128

// defaultChannelTypes are the first characters of channel names where the server named none.
const defaultChannelTypes = "#&"

// isChannel says whether name starts like a channel; types is ISUPPORT's CHANTYPES.
func isChannel(name, types string) bool {
	return name != "" && strings.IndexByte(types, name[0]) >= 0
}

// validChannel says whether name can stand as the one target of a command.
func validChannel(name, types string) bool {
	return len(name) > 1 && isChannel(name, types) && validTarget(name)
}

// validNick says whether name can stand as the one target of a command and
// can't be taken for a channel, a server, a mask or a list. It is wider than RFC 2812:
// networks differ in the characters beyond ASCII.
func validNick(name string) bool {
	if !validTarget(name) || name[0] == '-' || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	for _, r := range name {
		if !isNickRune(r) {
			return false
		}
	}
	return true
}

func validTarget(name string) bool {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return false
	}
	for _, r := range name {
		if r == ',' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return true
}

// isNickRune says whether r can be part of a nick, so that it does not end one.
func isNickRune(r rune) bool {
	return r == '-' || strings.ContainsRune("[]\\`_^{|}", r) || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) || r > unicode.MaxASCII && unicode.IsSymbol(r)
}

// addressed looks for nick in text. If text starts by addressing it ("nick: ",
// "nick, ", "@nick "), rest is what follows; otherwise rest is text. ok says
// whether nick was addressed or named as a whole word anywhere.
func addressed(text, nick string, c casemap) (rest string, ok bool) {
	lead := strings.TrimLeftFunc(text, unicode.IsSpace)
	at := strings.HasPrefix(lead, "@")
	if tail, is := cutName(strings.TrimPrefix(lead, "@"), nick, c); is {
		cut := strings.TrimLeft(tail, ":,")
		if at || len(cut) < len(tail) {
			return strings.TrimSpace(cut), true
		}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isNickRune(r) {
			i += size
			continue
		}
		end := i
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if !isNickRune(r) {
				break
			}
			end += size
		}
		if c.equal(text[i:end], nick) {
			return text, true
		}
		i = end
	}
	return text, false
}

// cutName cuts a leading name off text, if it is a whole word.
func cutName(text, name string, c casemap) (rest string, ok bool) {
	if name == "" || len(text) < len(name) || !c.equal(text[:len(name)], name) {
		return text, false
	}
	rest = text[len(name):]
	if r, _ := utf8.DecodeRuneInString(rest); rest != "" && isNickRune(r) {
		return text, false
	}
	return rest, true
}
