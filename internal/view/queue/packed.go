package queue

import (
	"encoding/binary"
	"errors"

	"github.com/metaqio/metaq/message"
)

// In the store, a chunk is packed: the messages of a queue lie in ascending order in
// the log, and most of them have the size and tag of the one before. Each entry is
//
//	uvarint  (position - position before) << 2 | tag differs << 1 | size differs
//	uvarint  size, if it differs
//	varint   tag, if it differs
//
// where the entry before the first one is all zero.
const (
	packedSize = 1
	packedTag  = 2
)

// errPacked says that the value of a chunk is not what pack makes.
var errPacked = errors.New("a chunk of the queue index is damaged")

// pack appends the first n entries of a chunk to dst.
func (c *chunk) pack(dst []byte, n int) []byte {
	var last Entry
	for i := range n {
		e := c.get(i)
		head := uint64(e.Position-last.Position) << 2
		if e.Size != last.Size {
			head |= packedSize
		}
		if e.Tag != last.Tag {
			head |= packedTag
		}
		dst = binary.AppendUvarint(dst, head)
		if head&packedSize != 0 {
			dst = binary.AppendUvarint(dst, uint64(uint32(e.Size)))
		}
		if head&packedTag != 0 {
			dst = binary.AppendVarint(dst, e.Tag)
		}
		last = e
	}
	return dst
}

// unpack fills dst with the entries of a packed chunk that follow the first skip
// ones, as far as there are any.
func unpack(b []byte, skip int, dst []Entry) (n int, err error) {
	var e Entry
	for i := 0; len(b) > 0 && n < len(dst); i++ {
		head, w := binary.Uvarint(b)
		if w <= 0 {
			return 0, errPacked
		}
		b = b[w:]
		e.Position += message.Position(head >> 2)
		if head&packedSize != 0 {
			size, w := binary.Uvarint(b)
			if w <= 0 || size > 1<<31-1 {
				return 0, errPacked
			}
			e.Size, b = int32(size), b[w:]
		}
		if head&packedTag != 0 {
			tag, w := binary.Varint(b)
			if w <= 0 {
				return 0, errPacked
			}
			e.Tag, b = tag, b[w:]
		}
		if i >= skip {
			dst[n] = e
			n++
		}
	}
	return n, nil
}

// load fills the front of c from a packed chunk and says how many entries it has.
func (c *chunk) load(b []byte) (n int, err error) {
	var entries [chunkEntries]Entry
	if n, err = unpack(b, 0, entries[:]); err != nil {
		return 0, err
	}
	for i, e := range entries[:n] {
		c.put(i, e.Position, e.Size, e.Tag)
	}
	return n, nil
}
