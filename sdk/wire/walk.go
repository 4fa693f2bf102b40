package wire

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// The functions of this file walk JSON that is known to be valid, such as a
// value that scan or decodeSlowly found: they check nothing and copy nothing.

// elements are those of an array, with their indices.
func elements(array string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		i := space(array, 1)
		for n := 0; array[i] != ']'; n++ {
			end := endOf(array, i)
			if !yield(n, array[i:end]) {
				return
			}
			i = next(array, end)
		}
	}
}

// members are those of an object in their order, repeated keys included.
func members(object string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		i := space(object, 1)
		for object[i] != '}' {
			end := endOf(object, i)
			name := object[i+1 : end-1]
			if strings.IndexByte(name, '\\') >= 0 {
				name = unescape(object[i:end])
			}
			i = space(object, space(object, end)+1)
			end = endOf(object, i)
			if !yield(name, object[i:end]) {
				return
			}
			i = next(object, end)
		}
	}
}

// unescape reads a string literal; apart from members, so that names without an
// escape stay off the heap.
func unescape(literal string) (s string) {
	_ = json.Unmarshal([]byte(literal), &s) // valid, so it can't fail
	return s
}

// pick puts the value of each named member into the place of its name; absent
// ones stay as they are. Of a repeated key the last counts, as in fields.
func pick(object string, names, into []string) {
	for name, value := range members(object) {
		if i := slices.Index(names, name); i >= 0 {
			into[i] = value
		}
	}
}

// isEmpty reports whether an array or object holds nothing.
func isEmpty(raw string) bool { return space(raw, 1) == len(raw)-1 }

// next is where the next element or the closing bracket is, behind a value.
func next(s string, i int) int {
	if i = space(s, i); s[i] == ',' {
		i = space(s, i+1)
	}
	return i
}

// endOf is the index behind the value that starts at i; of any depth, unlike
// roughEnd.
func endOf(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			if i, _ = stringEnd(s, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
