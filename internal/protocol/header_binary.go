package protocol

import (
	"encoding/binary"
	"math"
)

// binaryFixed is a binary header without remark and ext fields.
const binaryFixed = 2 + 1 + 2 + 4 + 4 + 4 + 4

// Request codes above 65535 do not fit the 16 bits of the code. Clients send the low
// half; the ones that can be meant by that are all 2000xx.
const (
	wrappedHigh  = 3 << 16
	firstWrapped = 200050 - wrappedHigh // 3442, POP_MESSAGE
	lastWrapped  = 200079 - wrappedHigh // 3471, TRIGGER_LITE_DISPATCH
	batchWrapped = 200151 - wrappedHigh // 3543, BATCH_ACK_MESSAGE
)

// decodeBinary reads a ROCKETMQ header.
func (c *Command) decodeBinary(b []byte) error {
	if len(b) < binaryFixed {
		return binaryError(0, "is shorter than its fixed part")
	}
	be := binary.BigEndian
	c.Code = int32(int16(be.Uint16(b)))
	c.Language = LanguageUnknown
	if int(b[2]) < len(languageNames) {
		c.Language = Language(b[2])
	}
	c.Version = int32(int16(be.Uint16(b[3:])))
	c.Opaque = int32(be.Uint32(b[5:]))
	c.Flag = int32(be.Uint32(b[9:]))
	if !c.IsResponse() && (c.Code >= firstWrapped && c.Code <= lastWrapped || c.Code == batchWrapped) {
		c.Code += wrappedHigh
	}
	n := int64(int32(be.Uint32(b[13:])))
	at := int64(17)
	if n < 0 || n > int64(len(b))-binaryFixed {
		return binaryError(13, "has a remark that does not fit")
	}
	if n > 0 {
		c.Remark = string(b[at : at+n])
	}
	at += n
	n = int64(int32(be.Uint32(b[at:])))
	at += 4
	if n != int64(len(b))-at {
		return binaryError(int(at-4), "has ext fields of another length than is left for them")
	}
	return c.scanBinaryExt(b, int(at))
}

// scanBinaryExt reads the entries from b[at] to its end. Like Java it takes an empty
// value for none at all.
func (c *Command) scanBinaryExt(b []byte, at int) error {
	be := binary.BigEndian
	for at < len(b) {
		if len(b)-at < 2 {
			return binaryError(at, "ends inside an ext field")
		}
		n := int(int16(be.Uint16(b[at:])))
		if n < 0 || n > len(b)-at-2-4 {
			return binaryError(at, "has a key that does not fit")
		}
		key := b[at+2 : at+2+n : at+2+n]
		at += 2 + n
		v := int64(int32(be.Uint32(b[at:])))
		if v < 0 || v > int64(len(b)-at-4) {
			return binaryError(at, "has a value that does not fit")
		}
		at += 4
		if end := at + int(v); v > 0 && n > 0 {
			c.Ext.fields = append(c.Ext.fields, Field{Key: key, Value: b[at:end:end]})
		}
		at += int(v)
	}
	return nil
}

func binaryError(at int, why string) error { return &HeaderError{Encoding: Binary, At: at, Why: why} }

// appendBinary appends c's header, its ext fields sorted.
func (c *Command) appendBinary(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(c.Code))
	language := c.Language
	if int(language) >= len(languageNames) {
		language = LanguageOther
	}
	dst = append(dst, byte(language))
	dst = be.AppendUint16(dst, uint16(c.Version))
	dst = be.AppendUint32(dst, uint32(c.Opaque))
	dst = be.AppendUint32(dst, uint32(c.Flag))
	dst = be.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var space [sortedOnStack]int
	for _, i := range c.Ext.order(space[:0]) {
		f := &c.Ext.fields[i]
		if len(f.Key) == 0 || len(f.Key) > math.MaxInt16 || len(f.Value) == 0 {
			continue // readers would not see it
		}
		dst = be.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		value := len(dst) + 4
		dst = append(dst, 0, 0, 0, 0)
		dst = c.Ext.AppendUnescaped(dst, f)
		be.PutUint32(dst[value-4:], uint32(len(dst)-value))
	}
	be.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}
