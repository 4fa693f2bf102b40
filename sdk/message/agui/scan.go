package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Objects and arrays are split, not decoded: a message may hold megabytes of
// base64, which encoding/json would read anew at each level. What is split was
// found valid before; what was not is an error, or splits somehow.

var errSplit = errors.New("found no JSON")

// readObject splits a JSON object; null is none. The values are those of raw,
// without a copy.
func readObject(raw []byte) (object, error) {
	s := splitter{raw: raw}
	if c := s.next(); c != '{' {
		return nil, fmt.Errorf("found %s, expected an object", found(raw))
	}
	s.at++
	o := object{}
	if s.next() == '}' {
		return o, nil
	}
	for {
		name := s.value()
		if !isText(name) || s.next() != ':' {
			return nil, errSplit
		}
		s.at++
		value := s.value()
		if len(value) == 0 {
			return nil, errSplit
		}
		o[str(name)] = value
		switch s.next() {
		case ',':
			s.at++
		case '}':
			return o, nil
		default:
			return nil, errSplit
		}
	}
}

// readArray splits a JSON array.
func readArray(raw []byte) ([]json.RawMessage, error) {
	s := splitter{raw: raw}
	if c := s.next(); c != '[' {
		return nil, fmt.Errorf("found %s, expected an array", found(raw))
	}
	s.at++
	list := []json.RawMessage{}
	if s.next() == ']' {
		return list, nil
	}
	for {
		value := s.value()
		if len(value) == 0 {
			return nil, errSplit
		}
		list = append(list, value)
		switch s.next() {
		case ',':
			s.at++
		case ']':
			return list, nil
		default:
			return nil, errSplit
		}
	}
}

// splitter walks over JSON.
type splitter struct {
	raw []byte
	at  int
}

// next skips white space and is the byte there; 0 = the end.
func (s *splitter) next() byte {
	for ; s.at < len(s.raw); s.at++ {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value is the value that comes next; empty if there is none.
func (s *splitter) value() json.RawMessage {
	c := s.next()
	start := s.at
	switch c {
	case '"':
		s.text()
	case '{', '[':
		s.nested()
	default:
		for s.at < len(s.raw) && bytes.IndexByte([]byte(",]}: \t\r\n"), s.raw[s.at]) < 0 {
			s.at++
		}
	}
	return s.raw[start:s.at:s.at]
}

// text skips a string, on whose first quote it is.
func (s *splitter) text() {
	for i := s.at + 1; i < len(s.raw); i++ {
		n := bytes.IndexAny(s.raw[i:], `"\`)
		if n < 0 {
			break
		}
		if i += n; s.raw[i] == '"' {
			s.at = i + 1
			return
		}
		i++ // what is escaped
	}
	s.at = len(s.raw)
}

// nested skips an object or array with all in it.
func (s *splitter) nested() {
	depth := 0
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case '"':
			s.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}
