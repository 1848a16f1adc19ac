package protocol

import (
	"encoding/binary"
	"math/bits"
)

// maxSkipDepth bounds the nesting of values that nobody reads.
const maxSkipDepth = 64

// A scanner walks legal JSON in place. Raw control characters inside strings are let
// pass as well: they are unambiguous, and refusing them would cost a look at each
// byte.
type scanner struct {
	b   []byte
	i   int
	why string // what is wrong at i, when something is
}

func (s *scanner) fail(why string) bool {
	s.why = why
	return false
}

// space skips white space and gives the byte it stops at, 0 at the end.
func (s *scanner) space() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		s.i++
	}
	return 0
}

// marks sets the top bit of the lowest byte of w that is a " or \. Bytes above it may
// be marked without being one.
func marks(w uint64) uint64 {
	const (
		low  = 0x0101010101010101
		high = 0x8080808080808080
	)
	q, e := w^low*'"', w^low*'\\'
	return ((q-low)&^q | (e-low)&^e) & high
}

// quoteOrEscape finds the first " or \ of b at or behind i, eight bytes at a time.
// Without one it gives len(b).
func quoteOrEscape(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := marks(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			return i
		}
	}
	return i
}

// str reads a string; the scanner stands on its first quote. raw is the text between
// the quotes. The escapes have been checked.
func (s *scanner) str() (raw []byte, escapes, ok bool) {
	b, start := s.b, s.i+1
	i := quoteOrEscape(b, start)
	for i < len(b) && b[i] == '\\' {
		escapes = true
		if i+6 <= len(b) && b[i+1] == 'u' {
			if _, ok := hex4(b[i+2:]); !ok {
				s.i = i
				return nil, false, s.fail("has a bad \\u escape")
			}
			i += 6
			if i < len(b) && b[i] == '\\' {
				continue
			}
		} else {
			if i+1 >= len(b) || b[i+1] == '\'' || escaped[b[i+1]] == 0 {
				s.i = i
				return nil, false, s.fail("has an escape that does not exist")
			}
			i += 2
		}
		i = quoteOrEscape(b, i)
	}
	if i >= len(b) || b[i] != '"' {
		s.i = len(b)
		return nil, false, s.fail("ends inside a string")
	}
	s.i = i + 1
	return b[start:i:i], escapes, true
}

// number reads a number and gives its text.
func (s *scanner) number() (text []byte, ok bool) {
	start := s.i
	if s.peek() == '-' {
		s.i++
	}
	switch n := s.digits(); {
	case n == 0:
		return nil, s.fail("has a number without digits")
	case n > 1 && s.b[s.i-n] == '0':
		return nil, s.fail("has a number with a leading zero")
	}
	if s.peek() == '.' {
		s.i++
		if s.digits() == 0 {
			return nil, s.fail("has a number that ends in a point")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if s.digits() == 0 {
			return nil, s.fail("has a number without an exponent")
		}
	}
	return s.b[start:s.i:s.i], true
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) digits() (n int) {
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
		n++
	}
	return n
}

// word reads true, false or null.
func (s *scanner) word() (text []byte, ok bool) {
	for _, w := range [...]string{"true", "false", "null"} {
		if end := s.i + len(w); end <= len(s.b) && string(s.b[s.i:end]) == w {
			text, s.i = s.b[s.i:end:end], end
			return text, true
		}
	}
	return nil, s.fail("has something that is no value")
}

// skip walks over a value of any kind; the scanner stands on its first byte.
func (s *scanner) skip(depth int) (ok bool) {
	switch c := s.peek(); c {
	case '"':
		_, _, ok = s.str()
	case '{', '[':
		if depth >= maxSkipDepth {
			return s.fail("is nested too deeply")
		}
		ok = s.skipAll(c, depth+1)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		_, ok = s.number()
	default:
		_, ok = s.word()
	}
	return ok
}

// skipAll walks over an array or object; the scanner stands on its bracket.
func (s *scanner) skipAll(open byte, depth int) bool {
	end := open + 2 // ASCII: { | }, [ \ ]
	s.i++
	if s.space() == end {
		s.i++
		return true
	}
	for {
		if open == '{' {
			if _, _, ok := s.key(); !ok {
				return false
			}
		} else {
			s.space()
		}
		if !s.skip(depth) {
			return false
		}
		if done, ok := s.next(end); done || !ok {
			return ok
		}
	}
}

// key reads a key and its colon, and stops at the first byte of the value.
func (s *scanner) key() (raw []byte, escapes, ok bool) {
	if b, i := s.b, s.i; i < len(b) && b[i] == '"' { // the common form
		end := quoteOrEscape(b, i+1)
		if end+2 < len(b) && b[end] == '"' && b[end+1] == ':' && b[end+2] > ' ' {
			s.i = end + 2
			return b[i+1 : end : end], false, true
		}
	}
	if s.space() != '"' {
		return nil, false, s.fail("misses the quote of a key")
	}
	if raw, escapes, ok = s.str(); !ok {
		return nil, false, false
	}
	if s.space() != ':' {
		return nil, false, s.fail("misses a colon")
	}
	s.i++
	s.space()
	return raw, escapes, true
}

// next reads what stands behind a value: a comma, or the end.
func (s *scanner) next(end byte) (done, ok bool) {
	c := s.space()
	s.i++
	if c == ',' {
		return false, true
	}
	if c == end {
		return true, true
	}
	s.i--
	return false, s.fail("misses a comma or the closing bracket")
}
