package protocol

import (
	"encoding/binary"
	"math/bits"
)

// A Decoder decodes the frames of one reader, one after another. It remembers JSON
// headers: of two that follow each other, little but a number and a key differs, and
// what is equal is not parsed again. What it gives is what [Command.Decode] gives.
type Decoder struct {
	cmd   Command
	memos [memos]memo
}

// Decode reads a whole frame, like [Command.Decode]. The command is valid until the
// next call.
func (d *Decoder) Decode(frame []byte) (*Command, error) {
	c := &d.cmd
	header, err := c.open(frame)
	if err != nil {
		return nil, err
	}
	if c.Encoding != JSON || len(header) < memoLeast || len(header) > memoMost {
		if err := c.decodeHeader(header); err != nil {
			return nil, err
		}
		return c, nil
	}
	// The code stands in these bytes when it is the first member, as in Java's headers.
	m := &d.memos[(header[8]^header[9]<<1^header[10]<<2)%memos]
	if m.head != nil && m.decode(header, c) {
		m.patience = memoPatience
		return c, nil
	}
	c.reset()
	if err := c.decodeJSON(header); err != nil {
		return nil, err
	}
	if m.patience--; m.patience < 0 {
		m.patience = memoPatience
		m.learn(header)
	}
	return c, nil
}

const (
	memos        = 4
	memoLeast    = 32      // bytes of a header that is worth remembering
	memoMost     = 4 << 10 // the same, at most
	memoPatience = 16      // headers in a row that are different, before another one is remembered
	memoSlots    = 40
)

// memo is a header that was decoded, and where its values lie. Headers that differ in
// values alone are decoded along it: what lies between the values is compared, and
// values are read only where they differ.
type memo struct {
	head  []byte
	slots []slot
	// fields are lent to the commands that are decoded. Those that were equal are in head.
	fields  []Field
	changed uint64 // bits of the fields that were not, in the last command
	escaped uint64 // bits of the fields with escapes
	version int    // of head
	// patience is how many more headers may be different before another one is remembered.
	patience int
	// The members of the header; those that differ are read again.
	code, flag, opaque, vers int32
	language                 Language
	noOpaque, ext            bool
}

// slot is a value: of a member, or of an ext field.
type slot struct {
	start, end int // in head; of strings, the text between the quotes
	field      int // number of an ext field; below 0 a member
	escaped    bool
}

const (
	slotCode    = -1
	slotFlag    = -2
	slotOpaque  = -3
	slotVersion = -4
)

// decode reads b into c if it differs from the memo in values alone. Otherwise c is
// worth nothing.
func (m *memo) decode(b []byte, c *Command) bool {
	c.Code, c.Flag, c.Opaque, c.Version = m.code, m.flag, m.opaque, m.vers
	c.Language, c.OpaqueMissing, c.Ext.present = m.language, m.noOpaque, m.ext
	shift := 0 // by how much b is ahead of head
	same := commonPrefix(m.head, b)
	before := m.changed
	m.changed = 0
	for i := range m.slots {
		s := &m.slots[i]
		if s.end < same { // the value, and the byte behind it
			continue
		}
		if s.start > same { // something that is no value differs
			m.restore(before)
			return false
		}
		end, ok := m.changedValue(s, same, b, shift, c)
		if !ok {
			m.restore(before)
			return false
		}
		shift = end - s.end
		same = s.end + commonPrefix(m.head[s.end:], b[end:])
	}
	m.restore(before &^ m.changed)
	c.Ext.lend(m)
	return same == len(m.head) && same+shift == len(b)
}

// changedValue reads a value that differs from the memo's behind same, and says where it ends.
func (m *memo) changedValue(s *slot, same int, b []byte, shift int, c *Command) (end int, ok bool) {
	start := s.start + shift
	if s.field < 0 {
		at := scanner{b: b, i: start}
		v, n := at.smallInt()
		c.setMember(s.field, v)
		return start + n, n > 0
	}
	end, escaped := s.end+shift, s.escaped
	if !sameShape(m.head, s.start, s.end, same, b, shift) {
		at := scanner{b: b, i: start - 1}
		text, esc, ok := at.str()
		if !ok {
			return 0, false
		}
		end, escaped = start+len(text), esc
	}
	f := &m.fields[s.field]
	f.Value, f.Escaped = b[start:end:end], escaped
	m.changed |= 1 << s.field
	return end, true
}

// restore gives fields the values that they have in head.
func (m *memo) restore(fields uint64) {
	for i := 0; fields != 0 && i < len(m.slots); i++ {
		if s := &m.slots[i]; s.field >= 0 && fields>>s.field&1 != 0 {
			f := &m.fields[s.field]
			f.Value, f.Escaped = m.head[s.start:s.end:s.end], s.escaped
			fields &^= 1 << s.field
		}
	}
}

// before is what a typed header was decoded from last.
type before struct {
	memo    *memo
	version int
	changed uint64
}

// known tells which fields of e have the values that they had before, as bits; 0 is
// for none. It forgets what was before: only who has come through may remember.
func (b *before) known(e *Ext) (skip uint64) {
	if m := e.memo; m != nil && m == b.memo && m.version == b.version {
		skip = ^(b.changed | m.changed | m.escaped)
	}
	b.memo = nil
	return skip
}

// remember takes down what was decoded; ok says that no member was there twice.
func (b *before) remember(e *Ext, ok bool) {
	if m := e.memo; m != nil && ok {
		b.memo, b.version, b.changed = m, m.version, m.changed
	}
}

func (c *Command) setMember(kind int, v int32) {
	switch kind {
	case slotCode:
		c.Code = v
	case slotFlag:
		c.Flag = v
	case slotOpaque:
		c.Opaque = v
	case slotVersion:
		c.Version = v
	}
}

// sameShape reports whether the value h[start:end], which is equal to that in b up to
// from, has the same length and the same escapes there. b is ahead by shift.
func sameShape(h []byte, start, end, from int, b []byte, shift int) bool {
	if end+shift >= len(b) || b[end+shift] != '"' {
		return false
	}
	for i := from; i < end; {
		to := i
		for to < end && h[to] != b[to+shift] {
			to++
		}
		// What differs must neither be part of an escape nor end the value. The bytes
		// before it, where an escape may begin, are equal or have been looked at.
		before := max(i-longestEscape+1, start)
		if quoteOrEscape(h[:to], before) < to || quoteOrEscape(b[:to+shift], i+shift) < to+shift {
			return false
		}
		i = to + commonPrefix(h[to:end], b[to+shift:])
	}
	return true
}

const longestEscape = len(`\u0001`)

// commonPrefix is how many bytes a and b begin with that are equal.
func commonPrefix(a, b []byte) (n int) {
	for n+8 <= len(a) && n+8 <= len(b) {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// learn remembers a header that has been decoded without an error. It forgets all
// when the header has something that clients do not write.
func (m *memo) learn(b []byte) {
	head := m.head[:0]
	m.head = nil
	m.slots, m.fields, m.changed, m.escaped = m.slots[:0], m.fields[:0], 0, 0
	m.version++
	m.code, m.flag, m.opaque, m.vers, m.language = 0, 0, 0, 0, LanguageUnknown
	m.noOpaque, m.ext = true, false
	head = append(head, b...)
	s := scanner{b: head}
	if s.space() == '{' && m.learnMembers(&s) && s.end() {
		m.head = head
	}
}

// learnMembers walks over the header; the scanner stands on its bracket.
func (m *memo) learnMembers(s *scanner) bool {
	s.i++
	for {
		key, escapes, ok := s.key()
		if !ok || escapes || !m.learnMember(s, key) {
			return false
		}
		if done, ok := s.next('}'); done || !ok {
			return ok
		}
	}
}

func (m *memo) learnMember(s *scanner, key []byte) bool {
	switch string(key) {
	case "code":
		return m.learnInt(s, slotCode, &m.code)
	case "flag":
		return m.learnInt(s, slotFlag, &m.flag)
	case "opaque":
		m.noOpaque = false
		return m.learnInt(s, slotOpaque, &m.opaque)
	case "version":
		return m.learnInt(s, slotVersion, &m.vers)
	case "language":
		if s.peek() != '"' {
			return false
		}
		raw, escapes, ok := s.str()
		m.language = languageOf(raw)
		return ok && !escapes
	case "extFields":
		if m.ext || s.peek() != '{' {
			return false
		}
		m.ext = true
		return m.learnExt(s)
	case "remark":
		return false
	}
	return s.skip(1)
}

func (m *memo) learnInt(s *scanner, kind int, into *int32) bool {
	v, n := s.smallInt()
	m.slots = append(m.slots, slot{start: s.i, end: s.i + n, field: kind})
	s.i += n
	*into = v
	return n > 0
}

func (m *memo) learnExt(s *scanner) bool {
	s.i++
	if s.space() == '}' {
		s.i++
		return true
	}
	for {
		key, escapes, ok := s.key()
		if !ok || escapes || s.peek() != '"' || len(m.slots) > memoSlots {
			return false
		}
		start := s.i + 1
		text, escaped, ok := s.str()
		if !ok {
			return false
		}
		if escaped {
			m.escaped |= 1 << len(m.fields)
		}
		m.slots = append(m.slots, slot{start: start, end: start + len(text), field: len(m.fields), escaped: escaped})
		m.fields = append(m.fields, Field{Key: key, Value: text, Escaped: escaped})
		if done, ok := s.next('}'); done || !ok {
			return ok
		}
	}
}
