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
	o := object{}
	err := eachField(raw, func(name string, value json.RawMessage) error {
		o[name] = value
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// eachField calls take for each field of a JSON object, in their order. A name may
// come more than once: the last one counts.
func eachField(raw []byte, take func(name string, value json.RawMessage) error) error {
	s := splitter{raw: raw}
	if c := s.next(); c != '{' {
		return fmt.Errorf("found %s, expected an object", found(raw))
	}
	s.at++
	if s.next() == '}' {
		return nil
	}
	for {
		name := s.value()
		if !isText(name) || s.next() != ':' {
			return errSplit
		}
		s.at++
		value := s.value()
		if len(value) == 0 {
			return errSplit
		}
		if err := take(str(name), value); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
		case '}':
			return nil
		default:
			return errSplit
		}
	}
}

// readArray splits a JSON array.
func readArray(raw []byte) ([]json.RawMessage, error) {
	list := []json.RawMessage{}
	err := eachItem(raw, func(value json.RawMessage) error {
		list = append(list, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// eachItem calls take for each value of a JSON array, in their order.
func eachItem(raw []byte, take func(value json.RawMessage) error) error {
	s := splitter{raw: raw}
	if c := s.next(); c != '[' {
		return fmt.Errorf("found %s, expected an array", found(raw))
	}
	s.at++
	if s.next() == ']' {
		return nil
	}
	for {
		value := s.value()
		if len(value) == 0 {
			return errSplit
		}
		if err := take(value); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
		case ']':
			return nil
		default:
			return errSplit
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
