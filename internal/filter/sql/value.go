package sql

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// kind is the type of a value.
type kind byte

const (
	null kind = iota
	boolean
	integer
	fraction
	text
	spoiled // a text was compared as a number and is none: the message does not match, whatever stands around
)

// value is what a part of an expression gives for a message.
type value struct {
	kind kind
	bits uint64 // boolean: 0 or 1; integer; fraction: as math.Float64bits
	text []byte
}

func truth(is bool) value {
	if is {
		return value{kind: boolean, bits: 1}
	}
	return value{kind: boolean}
}

func integerValue(n int64) value { return value{kind: integer, bits: uint64(n)} }

func fractionValue(f float64) value { return value{kind: fraction, bits: math.Float64bits(f)} }

func textValue(s []byte) value { return value{kind: text, text: s} }

// is says whether v is this truth value.
func (v value) is(what bool) bool { return v.kind == boolean && v.bits == 1 == what }

func (v value) isNumber() bool { return v.kind == integer || v.kind == fraction }

func (v value) integer() int64 { return int64(v.bits) }

func (v value) fraction() float64 {
	if v.kind == integer {
		return float64(v.integer())
	}
	return math.Float64frombits(v.bits)
}

// as makes of a text what it is compared with: a text is the only kind of property
// that there is. false: it cannot be made.
func (v value) as(k kind) (value, bool) {
	if v.kind != text || k == text {
		return v, true
	}
	switch k {
	case boolean:
		return truth(bytes.EqualFold(v.text, []byte("true"))), true
	case integer:
		n, ok := parseInteger(v.text)
		return integerValue(n), ok
	case fraction:
		f, ok := parseFraction(v.text)
		return fractionValue(f), ok
	}
	return v, true
}

// equal is =. What is missing on the left makes it NULL, what is missing on the right FALSE.
func equal(l, r value) value {
	switch {
	case l.kind == spoiled || r.kind == spoiled:
		return value{kind: spoiled}
	case l.kind == null && r.kind == null:
		return truth(true)
	case l.kind == null:
		return value{}
	case r.kind == null:
		return truth(false)
	}
	l, okL := l.as(r.kind)
	r, okR := r.as(l.kind)
	switch {
	case !okL || !okR:
		return value{kind: spoiled}
	case l.isNumber() && r.isNumber():
		return truth(compareNumbers(l, r) == 0)
	case l.kind != r.kind: // a number and a truth value
		return truth(false)
	case l.kind == text:
		return truth(bytes.Equal(l.text, r.text))
	}
	return truth(l.bits == r.bits)
}

// order compares two values, none of them missing, as numbers: negative, 0 or positive. false: they are none.
func order(l, r value) (int, bool) {
	want := r.kind
	if want == text {
		want = fraction // two properties
	}
	l, okL := l.as(want)
	r, okR := r.as(l.kind)
	if !okL || !okR || !l.isNumber() || !r.isNumber() {
		return 0, false
	}
	return compareNumbers(l, r), true
}

// compareNumbers orders whole numbers as such, and fractions as Java does: NaN is
// equal to itself and more than all others, and -0 is less than 0.
func compareNumbers(l, r value) int {
	if l.kind == integer && r.kind == integer {
		return cmp.Compare(l.integer(), r.integer())
	}
	a, b := l.fraction(), r.fraction()
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return cmp.Compare(rank(a), rank(b))
}

// rank orders what < and > leave equal or unordered.
func rank(f float64) int {
	switch {
	case f != f:
		return 2
	case f == 0 && math.Signbit(f):
		return 0
	}
	return 1
}

// parseInteger reads what Java's Long.parseLong reads: digits, with a sign or without.
func parseInteger(s []byte) (int64, bool) {
	digits, negative := s, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		digits, negative = s[1:], s[0] == '-'
	}
	if len(digits) == 0 {
		return 0, false
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	n := uint64(0)
	for _, c := range digits {
		d := uint64(c) - '0'
		if d > 9 || n > (limit-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return int64(n), true
}

// parseFraction reads what Java's Double.parseDouble reads: decimal or hexadecimal,
// with white space around and a letter for the type behind, NaN and Infinity.
func parseFraction(s []byte) (float64, bool) {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	number := s
	if len(number) > 0 && (number[0] == '-' || number[0] == '+') {
		number = number[1:]
	}
	switch string(number) {
	case "NaN", "Infinity":
	default:
		n := decimalLen(number)
		if len(number) > 1 && number[0] == '0' && number[1]|0x20 == 'x' {
			n = hexLen(number)
		}
		switch rest := number[n:]; {
		case n == 0, len(rest) > 1, len(rest) == 1 && rest[0]|0x20 != 'f' && rest[0]|0x20 != 'd':
			return 0, false
		default:
			s = s[:len(s)-len(rest)]
		}
	}
	f, _ := strconv.ParseFloat(string(s), 64) // what is too large is infinite, what is too small is 0
	return f, true
}

// decimalLen is the length of the decimal number that s begins with, 0 without one.
func decimalLen(s []byte) int {
	whole := digitsLen(s, isDigit)
	n, some := whole, whole > 0
	if n < len(s) && s[n] == '.' {
		part := digitsLen(s[n+1:], isDigit)
		n += 1 + part
		some = some || part > 0
	}
	if !some {
		return 0
	}
	if k := powerLen(s[n:], 'e'); k > 0 {
		n += k
	}
	return n
}

// hexLen is the length of the hexadecimal number, with its power of two, that s begins with, 0 without one.
func hexLen(s []byte) int {
	n := 2
	whole := digitsLen(s[n:], isHex)
	n += whole
	some := whole > 0
	if n < len(s) && s[n] == '.' {
		part := digitsLen(s[n+1:], isHex)
		n += 1 + part
		some = some || part > 0
	}
	k := powerLen(s[n:], 'p')
	if !some || k == 0 {
		return 0
	}
	return n + k
}

// powerLen is the length of an exponent that begins with a letter, 0 without one.
func powerLen(s []byte, letter byte) int {
	if len(s) == 0 || s[0]|0x20 != letter {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '-' || s[n] == '+') {
		n++
	}
	digits := digitsLen(s[n:], isDigit)
	if digits == 0 {
		return 0
	}
	return n + digits
}

func digitsLen(s []byte, is func(byte) bool) int {
	for i, c := range s {
		if !is(c) {
			return i
		}
	}
	return len(s)
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
