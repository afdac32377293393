// Package jsonread reads what encoding/json writes of structs, by hand and to the
// letter. In a process that has just started, encoding/json first looks at every
// type by reflection, which takes longer than all else that an Open does with the
// text.
//
// A field that is given twice counts as it is given last. Otherwise it is stricter
// than encoding/json: names of fields are compared as they are, and null is a value
// only where the caller asks for it and for a list.
package jsonread

import (
	"encoding/json"
	"fmt"
	"math"
)

// Reader reads a text from start to end. Methods take the next value, and return
// the zero value once anything was wrong; End tells what.
type Reader struct {
	data []byte
	at   int
	err  error
}

// New returns a reader of data.
func New(data []byte) *Reader { return &Reader{data: data} }

// End returns the first error: also if something is left.
func (r *Reader) End() error {
	if c := r.peek(); c != 0 || r.at < len(r.data) {
		r.fail("something behind the value")
	}
	return r.err
}

// Fail notes what the caller finds wrong with a value.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("before byte %d: %w", r.at, err)
	}
}

func (r *Reader) fail(format string, args ...any) { r.Fail(fmt.Errorf(format, args...)) }

// peek returns the first byte of what comes next, 0 if nothing does.
func (r *Reader) peek() byte {
	for r.err == nil && r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it comes next.
func (r *Reader) take(c byte) bool {
	if r.peek() != c || r.err != nil {
		return false
	}
	r.at++
	return true
}

func (r *Reader) expect(c byte) {
	if !r.take(c) {
		r.fail("no %q", c)
	}
}

// word consumes a word of letters if it comes next.
func (r *Reader) word(w string) bool {
	if r.peek() == 0 || len(r.data)-r.at < len(w) || string(r.data[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

// Null takes null if it comes next.
func (r *Reader) Null() bool { return r.word("null") }

// Object calls field with the name of each field, whose value it has to take. It
// returns false for a name that it does not know, which is an error.
func (r *Reader) Object(field func(name string) bool) {
	r.expect('{')
	for more := !r.take('}'); more && r.err == nil; more = r.more('}') {
		name := r.String()
		r.expect(':')
		if r.err == nil && !field(name) {
			r.fail("unknown field %q", name)
		}
	}
}

// Array calls element before each element, which it has to take. It reports whether
// there is a list at all.
func (r *Reader) Array(element func()) bool {
	if r.Null() {
		return false
	}
	r.expect('[')
	for more := !r.take(']'); more && r.err == nil; more = r.more(']') {
		element()
	}
	return r.err == nil
}

// more takes what follows an element: false at the end.
func (r *Reader) more(end byte) bool {
	if r.take(end) {
		return false
	}
	r.expect(',')
	return true
}

// List takes a list whose elements are taken by element.
func List[T any](r *Reader, element func(*T)) []T {
	list := []T{}
	take := func() {
		var e T
		element(&e)
		list = append(list, e)
	}
	if !r.Array(take) {
		return nil
	}
	return list
}

// String takes a string.
func (r *Reader) String() string {
	start := r.at
	if plain, ok := r.skipString(); r.err == nil {
		text := r.data[start:r.at]
		if ok {
			return string(text[plain : len(text)-1])
		}
		var s string
		if err := json.Unmarshal(text, &s); err != nil {
			r.Fail(err)
		}
		return s
	}
	return ""
}

// skipString takes a string, and reports where it begins behind what is taken and
// whether it stands as it is.
func (r *Reader) skipString() (begin int, plain bool) {
	before := r.at
	r.expect('"')
	begin, plain = r.at-before, true
	for ; r.err == nil && r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return begin, plain
		case c == '\\':
			r.at++
			plain = false
		case c < ' ' || c > '~':
			plain = false
		}
	}
	r.fail("a string without end")
	return begin, false
}

// Uint takes a number from 0 to max.
func (r *Reader) Uint(max uint64) uint64 {
	r.peek()
	start, n := r.at, uint64(0)
	for ; r.err == nil && r.at < len(r.data); r.at++ {
		d := uint64(r.data[r.at] - '0')
		if d > 9 {
			break
		}
		if d > max || n > (max-d)/10 {
			r.fail("a number above %d", max)
			return 0
		}
		n = 10*n + d
	}
	if digits := r.at - start; digits == 0 || digits > 1 && r.data[start] == '0' {
		r.fail("no number")
	}
	if r.err != nil {
		return 0
	}
	return n
}

// Int takes a number that an int64 can have.
func (r *Reader) Int() int64 {
	if r.take('-') {
		if c := r.peekHere(); c < '0' || c > '9' {
			r.fail("no number")
			return 0
		}
		return -int64(r.Uint(1 << 63))
	}
	return int64(r.Uint(math.MaxInt64))
}

// peekHere is peek without space before.
func (r *Reader) peekHere() byte {
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

// Bool takes true or false.
func (r *Reader) Bool() bool {
	if r.word("true") {
		return true
	}
	if !r.word("false") {
		r.fail("neither true nor false")
	}
	return false
}

// Raw takes any value, and returns its text.
func (r *Reader) Raw() []byte {
	r.peek()
	start := r.at
	r.skip()
	if r.err != nil { // at may be behind the end
		return nil
	}
	text := r.data[start:r.at:r.at]
	if !json.Valid(text) {
		r.fail("no value")
		return nil
	}
	return text
}

// skip goes to the end of a value, which need not be one.
func (r *Reader) skip() {
	for depth := 0; r.err == nil; {
		switch c := r.peek(); c {
		case 0:
			r.fail("a value without end")
		case '"':
			r.skipString()
		case '{', '[':
			r.at++
			depth++
		case '}', ']':
			r.at++
			depth--
		case ',', ':':
			r.at++
		default:
			r.skipLetters()
		}
		if depth <= 0 {
			return
		}
	}
}

// skipLetters goes to the end of a number or word.
func (r *Reader) skipLetters() {
	for r.at++; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']', '"':
			return
		}
	}
}
