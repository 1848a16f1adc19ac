package protocol

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

const lowerHex = "0123456789abcdef"

// plain marks the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	return t
}()

// AppendJSONString appends s as a JSON string with its quotes. Control characters,
// which separate the properties of a message, become \u0001 and so on; what is not
// ASCII stays UTF-8; bytes that are no UTF-8 become U+FFFD, so that the result is
// always legal.
func AppendJSONString[S ~string | ~[]byte](dst []byte, s S) []byte {
	return appendString(dst, s, false)
}

func appendString[S ~string | ~[]byte](dst []byte, s S, ascii bool) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		if s[i] < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[start:i]...), s[i])
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if ascii || r == utf8.RuneError && n == 1 {
			dst = appendUnicode(append(dst, s[start:i]...), r)
			start = i + n
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
}

func appendUnicode(dst []byte, r rune) []byte {
	if r > 0xFFFF {
		hi, lo := utf16.EncodeRune(r)
		return appendUnicode(appendUnicode(dst, hi), lo)
	}
	return append(dst, '\\', 'u', lowerHex[r>>12], lowerHex[r>>8&15], lowerHex[r>>4&15], lowerHex[r&15])
}

// appendUnescaped appends the meaning of the text between the quotes of a JSON
// string. A \ that begins no escape stands for itself: the scanners let none pass,
// and a caller who made one up loses nothing.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i:]
		if raw[1] == 'u' && len(raw) >= 6 {
			r, ok := hex4(raw[2:])
			if !ok {
				dst, raw = append(dst, '\\'), raw[1:]
				continue
			}
			raw = raw[6:]
			if r < utf8.RuneSelf {
				dst = append(dst, byte(r))
				continue
			}
			if utf16.IsSurrogate(r) {
				r, raw = surrogates(r, raw)
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		if c := escaped[raw[1]]; c != 0 {
			dst, raw = append(dst, c), raw[2:]
		} else {
			dst, raw = append(dst, '\\'), raw[1:]
		}
	}
}

// surrogates joins hi with a low surrogate that raw begins with; alone it is U+FFFD.
func surrogates(hi rune, raw []byte) (rune, []byte) {
	if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if lo, ok := hex4(raw[2:]); ok {
			if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
				return r, raw[6:]
			}
		}
	}
	return utf8.RuneError, raw
}

// escaped gives what a byte behind a \ stands for, 0 for none. \' is a courtesy to
// single-quoted text.
var escaped = [256]byte{
	'"': '"', '\'': '\'', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// hexValue gives the value of a hex digit, or 0xFF.
var hexValue = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xFF
	}
	for i := range byte(16) {
		t[lowerHex[i]] = i
		t["0123456789ABCDEF"[i]] = i
	}
	return t
}()

func hex4(b []byte) (rune, bool) {
	_ = b[3]
	v0, v1, v2, v3 := hexValue[b[0]], hexValue[b[1]], hexValue[b[2]], hexValue[b[3]]
	return rune(v0)<<12 | rune(v1)<<8 | rune(v2)<<4 | rune(v3), v0|v1|v2|v3 < 16
}
