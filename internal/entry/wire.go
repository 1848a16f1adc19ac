package entry

import (
	"fmt"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields are written in ascending order and left out when zero, so that equal
// commands have equal bytes.

func appendString(dst []byte, n protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, n, protowire.BytesType), s)
}

func appendInt(dst []byte, n protowire.Number, v int64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), uint64(v))
}

func appendBool(dst []byte, n protowire.Number, v bool) []byte {
	if !v {
		return dst
	}
	return appendInt(dst, n, 1)
}

// appendMap writes a string map as protobuf does, keys in order.
func appendMap(dst []byte, n protowire.Number, m map[string]string) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		var e []byte
		e = appendString(e, 1, k)
		e = appendString(e, 2, m[k])
		dst = protowire.AppendBytes(protowire.AppendTag(dst, n, protowire.BytesType), e)
	}
	return dst
}

func parseMapEntry(m map[string]string, b []byte) error {
	var k, v string
	err := fields(b, func(n protowire.Number, f field) {
		switch n {
		case 1:
			k = f.str()
		case 2:
			v = f.str()
		}
	})
	m[k] = v
	return err
}

// field is the value of one protobuf field, either a number or bytes.
type field struct {
	num   uint64
	bytes []byte
}

func (f field) int() int64   { return int64(f.num) }
func (f field) int32() int32 { return int32(f.num) }
func (f field) bool() bool   { return f.num != 0 }
func (f field) str() string  { return string(f.bytes) }

// fields calls fn for each field of a message.
func fields(b []byte, fn func(protowire.Number, field)) error {
	for len(b) > 0 {
		n, typ, k := protowire.ConsumeTag(b)
		if k < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(k))
		}
		b = b[k:]
		var f field
		switch typ {
		case protowire.VarintType:
			f.num, k = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, k = protowire.ConsumeBytes(b)
		default:
			k = protowire.ConsumeFieldValue(n, typ, b)
		}
		if k < 0 {
			return fmt.Errorf("%w: field %d: %w", ErrMalformed, n, protowire.ParseError(k))
		}
		b = b[k:]
		fn(n, f)
	}
	return nil
}
