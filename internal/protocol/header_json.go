package protocol

import (
	"math"
	"strconv"
)

// decodeJSON reads a JSON header.
func (c *Command) decodeJSON(b []byte) error {
	s := scanner{b: b}
	c.OpaqueMissing = true
	if !c.scanHeader(&s) {
		return &HeaderError{Encoding: JSON, At: s.i, Why: s.why}
	}
	return nil
}

func (c *Command) scanHeader(s *scanner) bool {
	if s.space() != '{' {
		return s.fail("is not a JSON object")
	}
	s.i++
	if s.space() == '}' {
		s.i++
		return s.end()
	}
	for {
		key, escapes, ok := s.key()
		if !ok {
			return false
		}
		if escapes {
			key = appendUnescaped(nil, key)
		}
		if !c.scanMember(s, key) {
			return false
		}
		if done, ok := s.next('}'); !ok {
			return false
		} else if done {
			return s.end()
		}
	}
}

// end demands that only white space follows.
func (s *scanner) end() bool {
	if s.space(); s.i < len(s.b) {
		return s.fail("goes on behind the closing bracket")
	}
	return true
}

// scanMember reads the value of a key of the header.
func (c *Command) scanMember(s *scanner, key []byte) bool {
	switch string(key) {
	case "code":
		return s.int32(&c.Code)
	case "extFields":
		return c.scanExt(s)
	case "flag":
		return s.int32(&c.Flag)
	case "language":
		return c.scanLanguage(s)
	case "opaque":
		null := s.peek() == 'n'
		c.OpaqueMissing = null
		return s.int32(&c.Opaque)
	case "remark":
		return c.scanRemark(s)
	case "version":
		return s.int32(&c.Version)
	}
	return s.skip(1) // serializeTypeCurrentRPC too: the frame's second word tells it
}

// scanExt reads extFields. Values that are no strings become their text, null is
// like nothing.
func (c *Command) scanExt(s *scanner) bool {
	if s.peek() != '{' {
		if c.Ext.Reset(); s.peek() == 'n' {
			return s.skip(1)
		}
		return s.fail("has extFields that are not an object")
	}
	c.Ext.Reset() // a second extFields replaces the first
	c.Ext.present = true
	s.i++
	if s.space() == '}' {
		s.i++
		return true
	}
	for {
		c.Ext.fields = s.fastPairs(c.Ext.fields)
		key, escapes, ok := s.key()
		if !ok {
			return false
		}
		if escapes {
			key = c.Ext.keep(key)
		}
		f := Field{Key: key}
		if s.peek() == '"' {
			if f.Value, f.Escaped, ok = s.str(); !ok {
				return false
			}
			c.Ext.fields = append(c.Ext.fields, f)
		} else if !c.scanOddValue(s, f) {
			return false
		}
		if done, ok := s.next('}'); done || !ok {
			return ok
		}
	}
}

// fastPairs appends the "key":"value" pairs that the scanner stands on, as long as
// they are like all clients write them: strings without escapes, no white space, a
// comma behind. It stops before the first one that is different.
func (s *scanner) fastPairs(dst []Field) []Field {
	b, i := s.b, s.i
	for i+4 < len(b) && b[i] == '"' {
		colon := i + 2 // behind a key of one character, the most frequent ones
		if b[colon] != '"' || b[i+1] == '"' || b[i+1] == '\\' {
			colon = quoteOrEscape(b, i+1)
		}
		value := colon + 3
		if value > len(b) || b[colon] != '"' || b[colon+1] != ':' || b[colon+2] != '"' {
			break
		}
		end := quoteOrEscape(b, value)
		if end+1 >= len(b) || b[end] != '"' || b[end+1] != ',' {
			break
		}
		dst = append(dst, Field{Key: b[i+1 : colon : colon], Value: b[value:end:end]})
		i = end + 2
	}
	s.i = i
	return dst
}

// scanOddValue reads an ext value that is no string.
func (c *Command) scanOddValue(s *scanner, f Field) bool {
	start := s.i
	if !s.skip(2) {
		return false
	}
	f.Value = s.b[start:s.i:s.i]
	if string(f.Value) == "null" {
		c.Ext.Delete(string(f.Key))
		return true
	}
	c.Ext.fields = append(c.Ext.fields, f)
	return true
}

// keep unescapes into e's memory.
func (e *Ext) keep(raw []byte) []byte {
	start := len(e.arena)
	e.arena = appendUnescaped(e.arena, raw)
	return e.arena[start:len(e.arena):len(e.arena)]
}

// scanLanguage takes a name, or the number that the binary header uses.
func (c *Command) scanLanguage(s *scanner) bool {
	if s.peek() == '"' {
		raw, escapes, ok := s.str()
		if escapes {
			raw = appendUnescaped(nil, raw)
		}
		c.Language = languageOf(raw)
		return ok
	}
	n := int32(LanguageUnknown)
	if !s.int32(&n) {
		return false
	}
	if c.Language = LanguageUnknown; n >= 0 && int(n) < len(languageNames) {
		c.Language = Language(n)
	}
	return true
}

func (c *Command) scanRemark(s *scanner) bool {
	if s.peek() == '"' {
		raw, escapes, ok := s.str()
		if escapes {
			raw = appendUnescaped(nil, raw)
		}
		c.Remark = string(raw)
		return ok
	}
	start := s.i
	if !s.skip(1) {
		return false
	}
	if c.Remark = string(s.b[start:s.i]); c.Remark == "null" {
		c.Remark = ""
	}
	return true
}

// int32 reads a number, also as a string. null leaves into as it is.
func (s *scanner) int32(into *int32) bool {
	// The common form: digits, and something else behind them.
	if v, n := s.smallInt(); n > 0 {
		s.i += n
		*into = v
		return true
	}
	text, escapes, ok := []byte(nil), false, false
	switch s.peek() {
	case '"':
		if text, escapes, ok = s.str(); escapes {
			text = appendUnescaped(nil, text)
		}
	case 'n':
		return s.skip(1)
	default:
		text, ok = s.number()
	}
	if !ok {
		return false
	}
	v, isInt := parseInt(text)
	if !isInt {
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
			return s.fail("has something other than a 32-bit integer")
		}
		v = int64(f)
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return s.fail("has an integer over 32 bits")
	}
	*into = int32(v)
	return true
}

// smallInt reads up to ten digits that are followed by a comma or bracket; n is 0
// when something else stands there, or more than 32 bits.
func (s *scanner) smallInt() (v int32, n int) {
	b := s.b[s.i:]
	wide := int64(0)
	for n < len(b) && n <= 10 {
		d := b[n] - '0'
		if d > 9 {
			if b[n] != ',' && b[n] != '}' || n > 1 && b[0] == '0' || wide > math.MaxInt32 {
				return 0, 0
			}
			return int32(wide), n
		}
		wide = wide*10 + int64(d)
		n++
	}
	return 0, 0
}

// appendJSON appends c's header, its keys sorted.
func (c *Command) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	if c.Ext.present || len(c.Ext.fields) > 0 {
		dst = append(dst, `,"extFields":`...)
		dst = c.Ext.appendJSON(dst)
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	if int(c.Language) < len(languageNames) {
		dst = append(dst, `,"language":"`...)
		dst = append(dst, languageNames[c.Language]...)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != "" {
		dst = append(dst, `,"remark":`...)
		dst = AppendJSONString(dst, c.Remark)
	}
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	dst = strconv.AppendInt(dst, int64(c.Version), 10)
	return append(dst, '}')
}

// sortedOnStack is how many ext fields are sorted without allocating.
const sortedOnStack = 48

func (e *Ext) appendJSON(dst []byte) []byte {
	var space [sortedOnStack]int
	dst = append(dst, '{')
	for n, i := range e.order(space[:0]) {
		if n > 0 {
			dst = append(dst, ',')
		}
		f := &e.fields[i]
		dst = AppendJSONString(dst, f.Key)
		dst = append(dst, ':')
		if f.Escaped { // as it came
			dst = append(dst, '"')
			dst = append(dst, f.Value...)
			dst = append(dst, '"')
		} else {
			dst = AppendJSONString(dst, f.Value)
		}
	}
	return append(dst, '}')
}
