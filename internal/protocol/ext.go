package protocol

import (
	"bytes"
	"math"
	"strconv"
)

// A Field is one entry of extFields.
type Field struct {
	Key, Value []byte
	// Escaped says that Value is the text between the quotes of a JSON string and
	// has a backslash in it. See [Ext.AppendUnescaped].
	Escaped bool
}

// An Ext is the list of a command's ext fields, in order of arrival. It is meant to
// be used again and again: after the first few commands it allocates nothing.
//
// What it returns aliases the frame or its own memory and is valid until
// [Ext.Reset], which Decode does first. An Ext must not be copied and both copies
// be changed: they would share memory.
type Ext struct {
	fields  []Field
	arena   []byte // unescaped and set values; never moved, only left behind when it grows
	present bool   // written even when empty
	memo    *memo  // whose fields these are, only to be read; own is what they stand in for
	own     []Field
}

// maxArena is the size up to which an arena is kept for the next command.
const maxArena = 64 << 10

// Reset empties e.
func (e *Ext) Reset() {
	if e.memo != nil {
		e.fields, e.own, e.memo = e.own, nil, nil
	}
	e.fields = e.fields[:0]
	if cap(e.arena) > maxArena {
		e.arena = nil
	}
	e.arena = e.arena[:0]
	e.present = false
}

// lend gives e the fields of a memo, until Reset or a change.
func (e *Ext) lend(m *memo) {
	e.own, e.fields, e.memo = e.fields, m.fields, m
}

// change makes sure that e's fields are its own.
func (e *Ext) change() {
	if e.memo != nil {
		e.fields, e.own, e.memo = append(e.own[:0], e.fields...), nil, nil
	}
}

// Len tells how many fields there are.
func (e *Ext) Len() int { return len(e.fields) }

// At gives field i.
func (e *Ext) At(i int) *Field { return &e.fields[i] }

// Get gives the value of a field; the last one counts when there are several.
func (e *Ext) Get(key string) (value []byte, ok bool) {
	for i := len(e.fields) - 1; i >= 0; i-- {
		if f := &e.fields[i]; string(f.Key) == key {
			return e.Value(f), true
		}
	}
	return nil, false
}

// Value gives the meaning of a field of e. An escaped one is unescaped in e's memory,
// and stays so unless the field is a memo's.
func (e *Ext) Value(f *Field) []byte {
	if !f.Escaped {
		return f.Value
	}
	start := len(e.arena)
	e.arena = appendUnescaped(e.arena, f.Value)
	value := e.arena[start:len(e.arena):len(e.arena)]
	if e.memo == nil {
		f.Value, f.Escaped = value, false
	}
	return value
}

// AppendUnescaped appends the meaning of a field to dst and leaves the field as it
// is: so a long escaped value goes to its destination with one copy.
func (e *Ext) AppendUnescaped(dst []byte, f *Field) []byte {
	if f.Escaped {
		return appendUnescaped(dst, f.Value)
	}
	return append(dst, f.Value...)
}

// Set gives a field a value, in place of the one it had. The strings are copied.
func (e *Ext) Set(key, value string) {
	f := e.slot(key)
	start := len(e.arena)
	e.arena = append(e.arena, value...)
	f.Value = e.arena[start:len(e.arena):len(e.arena)]
}

// SetBytes is Set for bytes, which are copied too.
func (e *Ext) SetBytes(key string, value []byte) {
	f := e.slot(key)
	start := len(e.arena)
	e.arena = append(e.arena, value...)
	f.Value = e.arena[start:len(e.arena):len(e.arena)]
}

// SetInt sets a field to a decimal number.
func (e *Ext) SetInt(key string, value int64) {
	f := e.slot(key)
	start := len(e.arena)
	e.arena = strconv.AppendInt(e.arena, value, 10)
	f.Value = e.arena[start:len(e.arena):len(e.arena)]
}

// SetBool sets a field to true or false.
func (e *Ext) SetBool(key string, value bool) { e.Set(key, strconv.FormatBool(value)) }

// setField copies a field of some Ext.
func (e *Ext) setField(key string, from *Field) {
	e.SetBytes(key, from.Value)
	e.find(key).Escaped = from.Escaped
}

// Delete removes a field.
func (e *Ext) Delete(key string) {
	e.change()
	kept := e.fields[:0]
	for _, f := range e.fields {
		if string(f.Key) != key {
			kept = append(kept, f)
		}
	}
	e.fields = kept
}

func (e *Ext) find(key string) *Field {
	for i := len(e.fields) - 1; i >= 0; i-- {
		if string(e.fields[i].Key) == key {
			return &e.fields[i]
		}
	}
	return nil
}

// slot finds or adds the field of a key.
func (e *Ext) slot(key string) *Field {
	e.change()
	if f := e.find(key); f != nil {
		f.Escaped = false
		return f
	}
	start := len(e.arena)
	e.arena = append(e.arena, key...)
	e.fields = append(e.fields, Field{Key: e.arena[start:len(e.arena):len(e.arena)]})
	return &e.fields[len(e.fields)-1]
}

// order appends the numbers of the fields to be written, sorted by key; of several
// with one key only the last.
func (e *Ext) order(dst []int) []int {
	for i := range e.fields {
		key := e.fields[i].Key
		at := len(dst)
		for at > 0 && bytes.Compare(e.fields[dst[at-1]].Key, key) > 0 {
			at--
		}
		if at > 0 && bytes.Equal(e.fields[dst[at-1]].Key, key) {
			dst[at-1] = i
			continue
		}
		dst = append(dst, 0)
		copy(dst[at+1:], dst[at:])
		dst[at] = i
	}
	return dst
}

// The readers of typed headers.

func (e *Ext) text(f *Field) string { return string(e.Value(f)) }

// int32 accepts what Java's Integer.parseInt does.
func (e *Ext) int32(f *Field, name string, into *int32) error {
	text := e.Value(f)
	v, ok := parseInt(text)
	if !ok || v < math.MinInt32 || v > math.MaxInt32 {
		return fieldError(name, "is not a 32-bit integer", text)
	}
	*into = int32(v)
	return nil
}

func (e *Ext) int64(f *Field, name string, into *int64) error {
	text := e.Value(f)
	v, ok := parseInt(text)
	if !ok {
		return fieldError(name, "is not a 64-bit integer", text)
	}
	*into = v
	return nil
}

// bool is Java's Boolean.parseBoolean: what is not "true" in any case is false.
func (e *Ext) bool(f *Field) bool {
	v := e.Value(f)
	return string(v) == "true" || len(v) == 4 && bytes.EqualFold(v, []byte("true"))
}

// parseInt reads a decimal number with an optional sign.
func parseInt(b []byte) (v int64, ok bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0]-'0' > 9 {
		v, err := strconv.ParseInt(string(b), 10, 64)
		return v, err == nil
	}
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if len(digits) < len(b) {
		v = -v
	}
	return v, true
}
