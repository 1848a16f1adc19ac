package protocol

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
)

// Limits of bodies.
const (
	maxBody      = 64 << 20 // bytes; a frame holds less, a decompressed registration may come near
	maxBodyDepth = 64
	// What a body may take in memory: slackMemory and so many bytes for each of its own.
	// Real bodies take one or two; a list of empty objects would take a hundred.
	slackMemory   = 1 << 20
	memoryPerByte = 8
)

// ParseJSON reads a body into v, a pointer to a struct of this package (or to a slice or
// map of such; into an any for bodies of unknown shape). It takes what Java's reader
// takes: single quotes, names without quotes, comments, bare numbers and whole objects
// as keys, objects as keys in their text form or as lists of pairs, numbers as strings
// and strings as numbers, names of enums in any case and their ordinals. Unknown members
// are skipped; members that are absent or null keep what v had, or their default.
//
// The error is a [*BodyError]. Depth is bounded, and so is the memory that v takes, by a
// multiple of len(b). v does not alias b.
func ParseJSON(b []byte, v any) error {
	if len(b) > maxBody {
		return &BodyError{Why: "is longer than " + strconv.Itoa(maxBody) + " bytes"}
	}
	r := reader{b: b, budget: slackMemory + memoryPerByte*len(b)}
	if r.space(); r.i == len(b) {
		return r.fail("is empty")
	}
	if err := r.value(reflect.ValueOf(v).Elem(), 0); err != nil {
		return err
	}
	if r.space(); r.i < len(b) {
		return r.fail("goes on behind its end")
	}
	return nil
}

// A reader walks a body. It knows the text; dialect_decode.go knows where it goes.
type reader struct {
	b      []byte
	i      int
	budget int
}

func (r *reader) fail(why string) *BodyError { return &BodyError{At: r.i, Why: why} }

// within adds a member to the path of an error.
func within(err error, step string) error {
	if e, ok := errors.AsType[*BodyError](err); ok {
		if e.Path != "" && e.Path[0] != '[' {
			step += "."
		}
		e.Path = step + e.Path
	}
	return err
}

// charge takes n bytes from the budget.
func (r *reader) charge(n int) error {
	if r.budget -= n; r.budget < 0 {
		return r.fail("would take much more memory than it has bytes")
	}
	return nil
}

// space skips white space and comments, and gives the byte it stops at, 0 at the end.
func (r *reader) space() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.i++
		case c == '/' && bytes.HasPrefix(r.b[r.i:], []byte("//")):
			if n := bytes.IndexByte(r.b[r.i:], '\n'); n >= 0 {
				r.i += n
			} else {
				r.i = len(r.b)
			}
		case c == '/' && bytes.HasPrefix(r.b[r.i:], []byte("/*")):
			n := bytes.Index(r.b[r.i+2:], []byte("*/"))
			if n < 0 {
				return c
			}
			r.i += n + 4
		default:
			return c
		}
	}
	return 0
}

// str reads a string in either kind of quotes and gives its meaning. The result may
// alias b.
func (r *reader) str() ([]byte, error) {
	quote := r.b[r.i]
	start := r.i + 1
	for i := start; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == quote:
			r.i = i + 1
			raw := r.b[start:i:i]
			if bytes.IndexByte(raw, '\\') >= 0 {
				raw = appendUnescaped(make([]byte, 0, len(raw)), raw)
			}
			return raw, nil
		case c == '\\' && i+1 < len(r.b):
			if escaped[r.b[i+1]] == 0 && r.b[i+1] != 'u' {
				r.i = i
				return nil, r.fail("has an escape that does not exist")
			}
			i++
		}
	}
	r.i = len(r.b)
	return nil, r.fail("ends inside a string")
}

// bare marks what a word without quotes ends at.
func bareEnd(c byte) bool {
	return c <= ' ' || strings.IndexByte(`,:{}[]"'/`, c) >= 0
}

// word reads a number, true, false, null or a name without quotes.
func (r *reader) word() ([]byte, error) {
	start := r.i
	for r.i < len(r.b) && !bareEnd(r.b[r.i]) {
		r.i++
	}
	if r.i == start {
		if start == len(r.b) {
			return nil, r.fail("ends too early")
		}
		return nil, r.fail("has something that is no value")
	}
	return r.b[start:r.i:r.i], nil
}

// scalar reads a string or a word. quoted tells which; null is a word.
func (r *reader) scalar() (text []byte, quoted bool, err error) {
	if c := r.space(); c == '"' || c == '\'' {
		text, err = r.str()
		return text, true, err
	}
	text, err = r.word()
	return text, false, err
}

// isNull reads a null, if there is one.
func (r *reader) isNull() bool {
	r.space()
	end := r.i + len("null")
	if bytes.HasPrefix(r.b[r.i:], []byte("null")) && (end == len(r.b) || bareEnd(r.b[end])) {
		r.i = end
		return true
	}
	return false
}

// items walks the elements of a list or the entries of an object, whose bracket the
// reader stands on.
func (r *reader) items(end byte, each func() error) error {
	r.i++
	if r.space() == end {
		r.i++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		switch r.space() {
		case ',':
			r.i++
		case end:
			r.i++
			return nil
		default:
			return r.fail("misses a comma or the closing bracket")
		}
	}
}

// colon reads the colon between a key and a value.
func (r *reader) colon() error {
	if r.space() != ':' {
		return r.fail("misses a colon")
	}
	r.i++
	return nil
}

// skip walks over a value.
func (r *reader) skip(depth int) error {
	if depth > maxBodyDepth {
		return r.fail("is nested too deeply")
	}
	switch r.space() {
	case '[':
		return r.items(']', func() error { return r.skip(depth + 1) })
	case '{':
		return r.items('}', func() error {
			if err := r.skip(depth + 1); err != nil { // a key may be an object
				return err
			}
			if err := r.colon(); err != nil {
				return err
			}
			return r.skip(depth + 1)
		})
	}
	_, _, err := r.scalar()
	return err
}
